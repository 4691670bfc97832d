"""Kinds of errors that strangers' scripts had and the first lists had not."""

import torch
from torch import nn
from torch.nn import functional as F

from tests.explain.provoked import case


@case("carried-state", "`hidden` may still hold", "hidden = hidden.detach()", certain=False)
def state_beside_the_output():
    gru = nn.GRU(2, 3)
    hidden = torch.zeros(1, 1, 3)
    for chunk in torch.ones(3, 4, 1, 2):
        out, hidden = gru(chunk, hidden)  # carried over here
        loss = out.pow(2).mean()
        loss.backward()  # second pass here


class Remembers(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell = nn.LSTMCell(2, 3)
        self.state = None
        self.seen = None

    def forward(self, x):
        h, c = self.cell(x, self.state)
        self.seen = h
        self.state = h.detach(), c  # carried over here
        return h


@case("carried-state", "tuple(t.detach() for t in net.state)", certain=False)
def half_of_a_state_detached():
    net = Remembers()
    for _ in range(2):
        loss = net(torch.ones(1, 2)).sum()
        loss.backward()  # second pass here


@case("computed-once", "`weights` is computed once", certain=False)
def weights_made_before_the_loop():
    temperature = torch.zeros(1, requires_grad=True)
    weights = torch.softmax(torch.ones(3) / temperature.exp(), 0)  # computed here, once
    for _ in range(2):
        loss = (weights * torch.rand(3)).sum()
        loss.backward()  # second pass here


class Penalised:
    def __init__(self):
        self.w = torch.ones(3, requires_grad=True)
        self.penalty = self.w.pow(2).sum()  # computed here, once

    def step(self):
        total = (self.w - 2).pow(2).sum() + self.penalty
        total.backward()  # second pass here


@case("computed-once", "`self.penalty`", certain=False)
def a_term_of_the_constructor():
    it = Penalised()
    it.step()
    it.step()


class Validates:
    def fit(self):
        self.loss = torch.ones(2, requires_grad=True).pow(2).sum()
        self.loss.backward()  # first pass here

    def validate(self):
        self.loss.backward()  # second pass here


@case("same-loss-twice", "may have gone", certain=False)
def a_loss_kept_as_an_attribute():
    it = Validates()
    it.fit()
    it.validate()


@case("same-loss-twice", "loss = p.pow(2).sum()", certain=False)
def a_loss_outside_of_the_closure():
    p = torch.ones(2, requires_grad=True)
    optimizer = torch.optim.LBFGS([p])
    loss = p.pow(2).sum()  # computed here, once

    def closure():
        optimizer.zero_grad()
        loss.backward()  # second pass here
        return loss

    optimizer.step(closure)


@case("second-time", "torch.autograd.grad(out[i], x, retain_graph=True)", certain=False)
def rows_of_a_jacobian():
    x = torch.ones(3, requires_grad=True)
    out = x.exp()
    return [torch.autograd.grad(out[i], x)[0] for i in range(3)]  # second pass here


@case("second-time", "create_graph=True)", certain=False)
def a_derivative_that_goes_into_the_loss():
    x = torch.ones(3, requires_grad=True)
    u = x.exp()
    (du,) = torch.autograd.grad(u.sum(), x)  # first pass here
    loss = (du + u).pow(2).sum()
    loss.backward()  # second pass here


def norm_of_gradients(value, parameters):
    grads = torch.autograd.grad(value, parameters)  # first pass here
    return sum(g.norm() for g in grads)


def logged(value, parameters):
    return norm_of_gradients(value, parameters)


@case("second-time", "retain_graph=True)", certain=False)
def a_norm_logged_before_backward():
    w = torch.ones(3, requires_grad=True)
    loss = w.exp().sum()
    logged(loss, [w])
    loss.backward()  # second pass here


buffer = []


@case("carried-state", "`buffer`", "empty buffer", certain=False)
def a_list_that_is_never_emptied():
    w = torch.ones(3, requires_grad=True)
    buffer.clear()
    for _ in range(2):
        buffer.append((1.0, w.exp()))
        update()


def update():
    loss = sum(v.sum() for _, v in buffer)
    loss.backward()  # second pass here


def shake(model):
    with torch.no_grad():
        for p in model.parameters():
            p.add_(1)  # writes into parameters


@case("in-place", "`shake` writes", certain=False)
def parameters_changed_by_a_function():
    model = nn.Sequential(nn.Linear(2, 3), nn.ELU(), nn.Linear(3, 1))
    loss = model(torch.ones(1, 2)).sum()
    shake(model)
    loss.backward()  # needed here


def clip(module, args, output):
    output.clamp_(0.1, 0.9)  # overwritten here


@case("in-place", "hook `clip`", "output = output.clamp(0.1, 0.9)", certain=False)
def a_forward_hook_that_writes():
    model = nn.Sequential(nn.Linear(2, 3), nn.Sigmoid())
    model[1].register_forward_hook(clip)
    out = model(torch.ones(1, 2))
    out.sum().backward()  # needed here


@case("input-not-a-tensor", "given a str", "forward hook")
def a_forward_hook_that_returns_a_name():
    model = nn.Sequential(nn.Linear(2, 3), nn.Linear(3, 1))
    model[0].register_forward_hook(lambda module, args, output: "first")
    model(torch.ones(1, 2))  # raised here


@case("input-not-a-tensor", "(output, state)")
def a_recurrent_layer_in_a_sequential():
    model = nn.Sequential(nn.LSTM(2, 3), nn.Linear(3, 1))
    model(torch.ones(4, 1, 2))  # raised here


@case("input-not-a-tensor", "torch.as_tensor(rows, dtype=torch.float32)")
def an_array_for_a_layer():
    rows = torch.ones(2, 2).numpy()
    nn.Linear(2, 1)(rows)  # raised here


class Rounds(torch.autograd.Function):
    def forward(self, ctx, x):
        return x.round()


@case("function-not-static", "def forward(ctx, x)")
def a_forward_that_is_a_method():
    Rounds.apply(torch.ones(2, requires_grad=True))  # raised here


class Passes(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x


@case("function-called", "Passes.apply")
def an_object_of_a_function_as_a_tensor():
    h = Passes()
    nn.Linear(2, 1)(h)  # raised here


@case("gradient-shape", "(grad.t() @ x).t()")
def a_gradient_that_is_transposed():
    class Multiply(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, w):
            ctx.save_for_backward(x, w)
            return x @ w

        @staticmethod
        def backward(ctx, grad):
            x, w = ctx.saved_tensors
            return grad @ w.t(), grad.t() @ x  # returned here

    x, w = torch.ones(4, 3, requires_grad=True), torch.ones(3, 2, requires_grad=True)
    Multiply.apply(x, w).sum().backward()  # raised here


@case("hook-result", "2 gradients for 1 input")
def a_module_hook_with_too_many():
    layer = nn.Linear(2, 1)
    layer.register_full_backward_hook(lambda module, inputs, outputs: (inputs[0], None))
    layer(torch.ones(1, 2, requires_grad=True)).sum().backward()  # raised here


@case("hook-incomplete", "register_full_backward_hook", warns=True)
def an_old_module_hook():
    model = nn.Sequential(nn.Linear(2, 3), nn.ReLU())
    model.register_backward_hook(lambda module, inputs, outputs: None)
    model(torch.ones(1, 2, requires_grad=True))


@case("scheduler-of-no-optimizer", "StepLR(optimizer, 2)")
def a_scheduler_of_a_model():
    net = nn.Linear(2, 1)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    assert optimizer
    torch.optim.lr_scheduler.StepLR(net, 2)  # raised here


@case("kl-div-mean", "batchmean", warns=True)
def kl_div_of_all_elements():
    F.kl_div(torch.ones(2, 3).log_softmax(1), torch.ones(2, 3).softmax(1))  # raised here


@case("dropout-without-effect", "dropout=0.5", warns=True)
def dropout_in_one_layer():
    nn.LSTM(2, 3, dropout=0.5)


@case("checkpoint-inputs", "may have cut it", "use_reentrant=False", certain=False)
def a_checkpoint_without_a_graph():
    layer = nn.Linear(2, 1)
    y = torch.utils.checkpoint.checkpoint(layer, torch.ones(1, 2), use_reentrant=True)  # checkpointed here
    y.sum().backward()  # raised here


@case("input-without-grad", "`mixed`")
def a_penalty_at_a_point_that_needs_no_gradient():
    critic = nn.Linear(2, 1).requires_grad_(False)
    mixed = torch.ones(1, 2)
    score = critic(mixed)
    torch.autograd.grad(score.sum(), mixed)  # raised here


@case("no-graph-new-tensor", "torch.tensor(total)")
def a_name_given_anew_from_itself():
    def penalised():
        total = w.pow(2).sum()
        total = torch.tensor(total)  # cut here
        return total

    w = torch.ones(3, requires_grad=True)
    loss = penalised()
    loss.backward()  # raised here


@case("hidden-shape", "`h0`", "(1, 1, 6)")
def a_state_for_another_batch():
    rnn = nn.GRU(5, 6, batch_first=True)
    h0 = torch.zeros(1, 1, 6)
    rnn(torch.ones(4, 7, 5), h0)  # raised here


@case("device-mismatch", "`layer` is on device meta")
def a_layer_without_numbers():
    layer = nn.Linear(4, 2, device="meta")
    layer(torch.ones(1, 4))  # raised here


@case("target-shape", "masks = masks.squeeze(1)")
def masks_with_a_channel():
    logits, masks = torch.zeros(2, 5, 4, 4), torch.zeros(2, 1, 4, 4, dtype=torch.int64)
    F.cross_entropy(logits, masks)  # raised here


@case("scheduler-groups", "2 functions for 1 groups")
def two_functions_for_one_group():
    optimizer = torch.optim.SGD(nn.Linear(2, 1).parameters(), lr=0.1)
    torch.optim.lr_scheduler.LambdaLR(optimizer, [lambda e: 1.0, lambda e: 0.5])  # raised here


@case("closure-missing", "`closure` returns no loss")
def a_closure_that_returns_nothing():
    w = torch.ones(3, requires_grad=True)
    optimizer = torch.optim.LBFGS([w])

    def closure():
        w.pow(2).sum().backward()

    optimizer.step(closure)  # raised here


@case("hook-result", "returned a numpy.ndarray")
def a_hook_that_returns_an_array():
    w = torch.ones(3, requires_grad=True)
    w.register_hook(lambda grad: grad.numpy())
    w.sum().backward()  # raised here


@case("carried-state", "`c` may still hold", "c = c.detach()", certain=False)
def one_half_of_a_state_detached_in_the_loop():
    cell = nn.LSTMCell(2, 4)
    h, c = torch.zeros(1, 4), torch.zeros(1, 4)
    for x in torch.ones(3, 1, 2):
        h, c = cell(x, (h, c))  # carried over here
        loss = h.pow(2).mean()
        loss.backward()  # second pass here
        h = h.detach()


@case("index-dtype", "`a.unsqueeze(1)` has another dtype", "a.unsqueeze(1).long()")
def actions_that_are_floats():
    a = torch.ones(3)
    torch.ones(3, 2).gather(1, a.unsqueeze(1))  # raised here


@case("index-dtype", "mask.bool()")
def a_mask_of_floats():
    mask = torch.ones(2, 2)
    torch.ones(2, 2).masked_fill(mask, 0.0)  # raised here


class Collects:
    def __init__(self):
        self.w = torch.ones(2, requires_grad=True)
        self.losses = []

    def step(self):
        self.losses.append(self.w.exp().sum())
        loss = torch.stack(self.losses).sum()
        loss.backward()  # second pass here


@case("carried-state", "`self.losses` keeps tensors", certain=False)
def an_attribute_that_is_never_emptied():
    it = Collects()
    it.step()
    it.step()


class Rounded(nn.Module):
    def forward(self, prediction, y):
        picked = torch.round(prediction).long()  # cut here
        return (picked - y).abs().float().mean()


@case("no-graph-integers", "without .long()", "without round(), too")
def a_loss_without_a_name():
    net = nn.Linear(3, 1)
    Rounded()(net(torch.ones(1, 3)), torch.ones(1, 1)).backward()  # raised here


def similarity(z):
    sim = torch.exp(z @ z.T)  # saved here
    sim.fill_diagonal_(0)  # overwritten here
    return sim.sum()


@case("in-place", "sim = sim.clone().fill_diagonal_(0)", certain=False)
def a_method_without_another_form():
    loss = similarity(torch.ones(2, 2, requires_grad=True))
    loss.backward()  # needed here
