"""Calls of what is something else than its writer thought; integers where real numbers are computed."""

import torch
from torch import nn
from torch.nn import functional as F
from torch.optim import SGD, Adam
from torch.optim.lr_scheduler import LambdaLR

from tests.explain.provoked import case


@case("name-taken", "`loss` is a tensor now", "criterion")
def loss_takes_the_name_of_its_function():
    loss, net = nn.MSELoss(), nn.Linear(2, 1)
    for _ in range(2):
        loss = loss(net(torch.ones(1, 2)), torch.ones(1, 1))  # the name changes its meaning, raised here
        loss.backward()


@case("step-given-loss", "`optimizer.step()` was given `loss`", "closure")
def step_is_given_the_loss():
    net = nn.Linear(2, 1)
    optimizer = SGD(net.parameters(), lr=0.1)
    loss = net(torch.ones(1, 2)).sum()
    loss.backward()
    optimizer.step(loss)  # raised here


@case("other-owner", "`loss` is a tensor", "optimizer.step()")
def step_of_the_loss():
    net = nn.Linear(2, 1)
    loss = net(torch.ones(1, 2)).sum()
    loss.backward()
    loss.step()  # raised here


@case("other-owner", "`optimizer` is an optimizer", "loss.backward()")
def backward_of_the_optimizer():
    net = nn.Linear(2, 1)
    optimizer = Adam(net.parameters())
    optimizer.backward()  # raised here


@case("class-for-model", "`Net` is a class", "model = Net()")
def class_is_given_the_input():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(2, 2)

    x = torch.ones(1, 2)
    return Net(x)  # raised here


@case("class-for-model", "on the class")
def parameters_of_the_class():
    class Net(nn.Module):
        pass

    return SGD(Net.parameters(), lr=0.1)  # raised here


@case("function-called", "`Square.apply`")
def forward_of_a_function_by_hand():
    class Square(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

    x = torch.ones(2, requires_grad=True)
    return Square.forward(x)  # raised here


@case("optimizer-setting", "momentum", "betas")
def momentum_for_adam():
    net = nn.Linear(2, 2)
    return Adam(net.parameters(), momentum=0.9)  # raised here


@case("scheduler-setting", "a float", "lambda")
def number_for_lambda_lr():
    optimizer = SGD(nn.Linear(2, 2).parameters(), lr=0.1)
    return LambdaLR(optimizer, 0.95)  # raised here


@case("not-a-tensor", "`net(x)` is None", "forward")
def forward_returns_nothing():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(2, 2)

        def forward(self, x):
            self.layer(x)

    net, x = Net(), torch.ones(1, 2)
    return net(x).sum()  # raised here


@case("grad-is-none", "`w.grad` is None", certain=False)
def zeros_like_no_gradient():
    w = torch.ones(2, requires_grad=True)
    return torch.zeros_like(w.grad)  # raised here


@case("dtype-mismatch", "`pred`", "int64", "float()")
def loss_of_integers():
    pred, target = torch.tensor([1, 2]), torch.tensor([1, 3])
    return F.mse_loss(pred, target)  # raised here


@case("dtype-mismatch", "uint8", "/ 255")
def image_bytes_for_a_convolution():
    conv = nn.Conv2d(1, 1, 3)
    x = torch.zeros(1, 1, 5, 5, dtype=torch.uint8)
    return conv(x)  # raised here


@case("index-dtype", "`order`", ".long()")
def index_of_floats():
    x, order = torch.ones(3), torch.tensor([0.0, 1.0])
    return x[order]  # raised here


@case("index-dtype", "`labels`", ".long()")
def one_hot_of_floats():
    labels = torch.tensor([0.0, 1.0])
    return F.one_hot(labels)  # raised here


@case("not-one-number", "`torch.tensor` was given tensors", "torch.stack([a, b])")
def tensor_of_tensors():
    a, b = torch.ones(2, requires_grad=True), torch.ones(2)
    return torch.tensor([a, b])  # raised here


@case("not-one-number", "`out` holds 3")
def float_of_several():
    out = nn.Linear(2, 3)(torch.ones(1, 2))
    return float(out)  # raised here


@case("no-rsample", "Categorical", "gumbel_softmax")
def rsample_of_classes():
    policy = torch.distributions.Categorical(logits=torch.zeros(2, requires_grad=True))
    return policy.rsample()  # raised here


@case("resize-refused", "`w`")
def resize_of_a_weight():
    w = torch.ones(2, requires_grad=True)
    return w.resize_(3)  # raised here


@case("leaf-in-place", "p['weight']")
def write_into_an_entry():
    p = {"weight": torch.ones(2, requires_grad=True)}
    p["weight"].sub_(1)  # raised here


@case("leaf-in-place", "`ws[1]`")
def write_into_one_of_a_list():
    ws = [torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True)]
    ws[1] -= 0.1  # raised here


@case("save-for-backward", "was given an int")
def int_is_saved():
    class Times(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, n):
            ctx.save_for_backward(x, n)  # raised here
            return x * n

        @staticmethod
        def backward(ctx, grad):
            return grad, None

    return Times.apply(torch.ones(2, requires_grad=True), 3)


@case("not-one-number", "any(b is it for it in seen)", "`in` compares `b`")
def tensor_in_a_list():
    a, b = torch.ones(2), torch.zeros(2)
    seen = [a]
    if b not in seen:  # raised here
        seen.append(b)


@case("element-count", "x.flatten(1)")
def last_batch_by_a_number():
    x = torch.ones(3, 2, 4)
    return x.view(5, 8)  # raised here


@case("element-count", "has 1 element, which does not fill", "print(g.sum().shape)", certain=False)
def sum_over_all():
    g = torch.ones(2, 3)
    return g.sum().reshape(2, 3)  # raised here


@case("grad-is-none", "another hook on it emptied it", certain=False)
def hook_on_both_names():
    p = torch.ones(2, requires_grad=True)

    def step(leaf):
        leaf.data.sub_(leaf.grad)  # raised here
        leaf.grad = None

    for name in (p, p):
        name.register_post_accumulate_grad_hook(step)
    p.sum().backward()
