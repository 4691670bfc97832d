"""Shapes, losses, state and optimizers, as other people write them. Written without sight of the rules."""

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

from tests.explain.provoked import case


class ConvNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.MaxPool2d(2))
        self.classifier = nn.Linear(4 * 14 * 14, 10)

    def forward(self, x):
        x = self.features(x)
        return self.classifier(x.flatten(1))  # raised here


@case("matrix-shapes", "self.classifier", "676", "784")
def classifier_of_the_wrong_width():
    return ConvNet()(torch.randn(2, 1, 28, 28))


@case("channels", "net.features[0]", "1 channels")
def colour_pictures_to_a_grey_net():
    net = ConvNet()
    return net.features(torch.randn(2, 3, 28, 28))  # raised here


@case("matrix-shapes", "model[2]")
def sequential_that_does_not_fit():
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(6, 2))
    for (x,) in DataLoader(TensorDataset(torch.randn(4, 4)), batch_size=2):
        model(x)  # raised here


@case("dtype-mismatch", "float64")
def numpy_data_into_a_model():
    data = torch.from_numpy(__import__("numpy").random.rand(8, 4))
    model = nn.Sequential(nn.Linear(4, 2))
    return [model(row) for row in data.split(4)]  # raised here


@case("target-dtype", "y", "float32")
def labels_from_a_float_tensor():
    criterion = nn.CrossEntropyLoss()
    loader = DataLoader(TensorDataset(torch.randn(4, 3), torch.zeros(4)), batch_size=2)
    model = nn.Linear(3, 2)
    for x, y in loader:
        criterion(model(x), y)  # raised here


@case("target-range", "2", "labels")
def classes_numbered_from_one():
    model, labels = nn.Linear(3, 2), torch.tensor([1, 2, 1])
    return nn.CrossEntropyLoss()(model(torch.randn(3, 3)), labels)  # raised here


@case("target-shape", "(4, 1)", "squeeze")
def logits_with_one_dimension_more():
    model = nn.Linear(3, 1)
    y = torch.randint(0, 2, (4,)).float()
    criterion = nn.BCEWithLogitsLoss()
    return criterion(model(torch.randn(4, 3)), y)  # raised here


@case("target-broadcast", "(4, 1)", "(4,)", warns=True)
def regression_that_broadcasts():
    model, y = nn.Linear(3, 1), torch.randn(4)
    criterion = nn.L1Loss()
    return criterion(model(torch.randn(4, 3)), y)


@case("target-unit-range", "with_logits")
def forgotten_sigmoid():
    model = nn.Linear(3, 1)
    with torch.no_grad():
        model.bias += 5
    return nn.BCELoss()(model(torch.randn(4, 3)), torch.ones(4, 1))  # raised here


@case("index-range", "self.emb", "50")
def token_beyond_the_vocabulary():
    class Tagger(nn.Module):
        def __init__(self):
            super().__init__()
            self.emb = nn.Embedding(50, 8)

        def forward(self, tokens):
            return self.emb(tokens)  # raised here

    return Tagger()(torch.tensor([[1, 50]]))


@case("shapes", "q", "k")
def attention_without_transpose():
    q, k = torch.randn(2, 5, 8), torch.randn(2, 7, 8)
    return q + k  # raised here


@case("matrix-shapes", "q", "k", "transpose")
def batched_attention_without_transpose():
    q, k = torch.randn(2, 5, 8), torch.randn(2, 7, 8)
    return torch.bmm(q, k)  # raised here


@case("element-count", "x", "view")
def flatten_by_hand():
    x = torch.randn(3, 4, 4)
    return x.view(x.size(0), 8)  # raised here


@case("batch-norm-one-value", "net[1]")
def last_batch_of_one():
    net = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4))
    for (x,) in DataLoader(TensorDataset(torch.randn(5, 3)), batch_size=4):
        net(x)  # raised here


@case("state-keys", "_orig_mod.")
def state_of_a_compiled_model():
    class Wrapper(nn.Module):
        def __init__(self, inner):
            super().__init__()
            self._orig_mod = inner

    saved = Wrapper(nn.Linear(2, 2)).state_dict()
    model = nn.Linear(2, 2)
    model.load_state_dict(saved)  # raised here


@case("state-keys", "ckpt['state_dict']")
def state_inside_a_checkpoint():
    ckpt = {"epoch": 1, "state_dict": nn.Linear(2, 2).state_dict()}
    net = nn.Linear(2, 2)
    net.load_state_dict(ckpt)  # raised here


@case("state-shape", "fc.weight", "(10, 4)")
def head_of_another_size():
    def build(classes):
        return nn.ModuleDict({"fc": nn.Linear(4, classes)})

    old, new = build(10), build(3)
    new.load_state_dict(old.state_dict())  # raised here


@case("optimizer-of-no-tensors", "net")
def module_instead_of_parameters():
    net = nn.Linear(2, 2)
    return torch.optim.Adam(net, lr=1e-3)  # raised here


@case("closure-missing", "LBFGS")
def lbfgs_in_an_ordinary_loop():
    net = nn.Linear(2, 1)
    optim = torch.optim.LBFGS(net.parameters(), lr=0.1)
    for _ in range(2):
        optim.zero_grad()
        net(torch.ones(1, 2)).sum().backward()
        optim.step()  # raised here


@case("metrics-missing", "sched")
def plateau_in_an_ordinary_loop():
    opt = torch.optim.SGD(nn.Linear(2, 1).parameters(), lr=0.1)
    sched = torch.optim.lr_scheduler.ReduceLROnPlateau(opt, "min")
    for _ in range(2):
        opt.step()
        sched.step()  # raised here


@case("module-before-init", "Encoder")
def dataclass_like_module():
    class Encoder(nn.Module):
        def __init__(self, width):
            self.width = width
            self.proj = nn.Linear(width, width)  # raised here

    return Encoder(4)


class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, scale):
        ctx.save_for_backward(x)
        return scale * x**2

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return 2 * x * grad_output  # returned here


@case("gradient-count", "Square", "2")
def function_with_a_constant():
    x = torch.ones(3, requires_grad=True)
    Square.apply(x, 3.0).sum().backward()  # raised here


class RowSum(torch.autograd.Function):
    @staticmethod
    def forward(ctx, m):
        ctx.rows = m.shape[0]
        return m.sum(1)

    @staticmethod
    def backward(ctx, g):
        return g  # returned here


@case("gradient-shape", "RowSum", "(2,)", "(2, 3)")
def function_that_forgets_to_expand():
    model = nn.Linear(3, 3)
    loss = RowSum.apply(model(torch.randn(2, 3))).mean()
    loss.backward()  # raised here


@case("hook-without-graph", "frozen.weight")
def hook_on_a_frozen_weight():
    frozen = nn.Linear(2, 2).requires_grad_(False)
    frozen.weight.register_hook(print)  # raised here


@case("hook-without-graph", "layer.weight.register_hook(print)  # layer.weight.data is another tensor")
def hook_on_the_data_of_a_weight():
    layer = nn.Linear(2, 2)
    layer.weight.data.register_hook(print)  # raised here


@case("retain-grad-refused", "hidden.retain_grad()  # hidden.detach() is another tensor")
def retain_grad_on_what_was_detached():
    hidden = nn.Linear(2, 2)(torch.randn(3, 2))
    hidden.detach().retain_grad()  # raised here


@case("retain-grad-refused", "batch")
def retain_grad_on_an_input():
    batch = torch.randn(2, 2)
    batch.retain_grad()  # raised here
    return nn.Linear(2, 2)(batch)


@case("grad-assigned", "p.grad")
def gradients_put_back():
    net = nn.Linear(2, 3)
    grads = [torch.zeros(2, 3), torch.zeros(3)]
    for p, g in zip(net.parameters(), grads, strict=True):
        p.grad = g  # raised here


@case("nan-in-backward", "norm", certain=False)
def norm_of_zeros():
    x = torch.zeros(2, 3, requires_grad=True)
    with torch.autograd.set_detect_anomaly(True):
        d = F.normalize(x).sum() + (x - x.detach()).pow(2).sum().sqrt()  # made here
        d.backward()  # raised here


@case("distribution-values", "scale", "softplus")
def gaussian_policy():
    net = nn.Linear(2, 2)
    with torch.no_grad():
        net.bias -= 10
    mean, scale = net(torch.ones(1, 2)).chunk(2, -1)
    return torch.distributions.Normal(mean, scale)  # raised here


@case("deepcopy-non-leaf", "self.cache", certain=True)
def model_that_caches_its_output():
    import copy

    class Caching(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = nn.Linear(2, 2)

        def forward(self, x):
            self.cache = self.fc(x)  # kept here
            return self.cache

    model = Caching()
    model(torch.ones(1, 2))
    best = copy.deepcopy(model)  # raised here
    return best


@case("vmap-item", "item()")
def per_sample_gradient_with_item():
    def loss(w, x):
        return (w * x).sum() * x[0].item()  # raised here

    return torch.func.vmap(torch.func.grad(loss), (None, 0))(torch.ones(2), torch.ones(3, 2))


@case("checkpoint-reentrant", warns=True)
def checkpoint_of_a_block():
    block = nn.Sequential(nn.Linear(2, 2), nn.Tanh())
    return torch.utils.checkpoint.checkpoint(block, torch.ones(1, 2, requires_grad=True))
