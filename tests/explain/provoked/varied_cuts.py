"""Graphs that are cut, as other people write it. Written without sight of the rules."""

import math
from types import SimpleNamespace

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

from tests.explain.provoked import case, cells


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(3, 4), nn.ReLU())
        self.head = nn.Linear(4, 2)

    def forward(self, x):
        features = self.body(x).detach()  # cut here
        return self.head(features)


@case("no-graph-no-grad", "no_grad")
def decorated_function():
    model = nn.Linear(3, 1)

    @torch.no_grad()  # cut here
    def predict(x):
        return model(x)

    loss = predict(torch.ones(2, 3)).mean()
    loss.backward()  # raised here


class Frozen(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Linear(3, 4)
        self.head = nn.Linear(4, 1)
        self.requires_grad_(False)  # freezes here

    def forward(self, x):
        return self.head(torch.relu(self.encoder(x)))


@case("no-graph-frozen", "net")
def all_of_a_module_frozen():
    net = Frozen()
    criterion = nn.MSELoss()
    for batch in torch.randn(2, 5, 3):
        criterion(net(batch), torch.zeros(5, 1)).backward()  # raised here


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 4)

    def forward(self, x):
        return self.fc(x).argmax(-1).float()  # cut here


@case("no-graph-argmax", "argmax")
def argmax_inside_forward():
    model = Classifier()
    loss = F.mse_loss(model(torch.randn(5, 3)), torch.zeros(5))
    loss.backward()  # raised here


@case("no-graph-argmax", "> 0.5")
def threshold():
    model = nn.Linear(3, 1)
    hits = (torch.sigmoid(model(torch.randn(5, 3))) > 0.5).float()  # cut here
    (1 - hits.mean()).backward()  # raised here


@case("no-graph-item", "item()")
def sum_of_items_in_a_comprehension():
    model = nn.Linear(3, 1)
    losses = [model(x).pow(2).mean().item() for x in torch.randn(4, 2, 3)]  # cut here
    loss = torch.tensor(losses, requires_grad=False).mean()
    loss.backward()  # raised here


@case("no-graph-item", "math.exp")
def python_math():
    w = torch.tensor(0.5, requires_grad=True)
    value = math.exp(w)  # cut here
    torch.tensor(value).backward()  # raised here


@case("no-graph-numpy", "p.detach()")
def numpy_in_the_loss():
    model = nn.Linear(3, 1)
    p = torch.sigmoid(model(torch.randn(5, 3)))
    loss = -torch.from_numpy(np.log(p.detach().numpy())).mean()  # cut here
    loss.backward()  # raised here


@case("no-graph-new-tensor", "torch.tensor")
def loss_rebuilt():
    model = nn.Linear(3, 1)
    out = model(torch.randn(5, 3)).mean()
    loss = torch.tensor([out])  # cut here
    loss.backward()  # raised here


def mse(a, b):
    return ((a - b) ** 2).mean()


@case("no-graph-detach", ".data")
def data_passed_to_a_function():
    model = nn.Linear(3, 1)
    pred = model(torch.randn(5, 3))
    mse(pred.data, torch.zeros(5, 1)).backward()  # cut here, raised here


def do_backward(objective):
    objective.backward()  # raised here


@case("no-graph-detach", "detach")
def backward_in_a_helper():
    model = nn.Linear(3, 1)
    score = model(torch.randn(5, 3)).detach().mean()  # cut here
    do_backward(score)


class Accelerator:
    def backward(self, loss):
        loss.backward()  # raised here


@case("no-graph-no-grad", "no_grad")
def backward_by_an_accelerator():
    accelerator, model = Accelerator(), nn.Linear(3, 1)
    with torch.no_grad():  # cut here
        out = model(torch.randn(2, 3))
    loss = out.square().mean()
    accelerator.backward(loss)


@case("no-graph-no-grad", "set_grad_enabled", certain=False)
def phases_of_a_tutorial():
    model = nn.Linear(3, 1)
    for phase in ["val", "train"]:
        with torch.set_grad_enabled(phase == "train"):  # cut here
            loss = model(torch.randn(2, 3)).mean()
        if phase == "val":
            loss.backward()  # raised here


@case("not-a-tensor", "outputs.loss", "labels", certain=False)
def huggingface_without_labels():
    class ModelOutput(SimpleNamespace):
        pass

    model = nn.Linear(3, 2)
    outputs = ModelOutput(loss=None, logits=model(torch.randn(2, 3)))
    loss = outputs.loss
    loss.backward()  # raised here


@case("not-a-tensor", "tuple")
def loss_with_a_comma():
    model = nn.Linear(3, 1)
    loss = (model(torch.randn(2, 3)).mean(),)
    loss.backward()  # raised here


@case("not-a-tensor", "float")
def sum_of_an_empty_list():
    loss = sum([], 0.0)
    loss.backward()  # raised here


@case("grad-is-none", "layer.weight.grad", certain=False)
def print_a_norm_too_early():
    layer = nn.Linear(2, 1)
    layer(torch.ones(1, 2)).sum()
    print(f"{layer.weight.grad.norm():.3f}")  # raised here


@case("grad-is-none", "p.grad", certain=False)
def norm_of_all_with_an_unused_one():
    model = nn.ModuleDict({"used": nn.Linear(2, 1), "unused": nn.Linear(2, 1)})
    model["used"](torch.ones(1, 2)).sum().backward()
    return sum(p.grad.norm() ** 2 for p in model.parameters())  # raised here


@case("numpy-of-graph", "model(x)")
def plot_of_a_prediction():
    model, x = nn.Linear(1, 1), torch.ones(3, 1)
    return model(x).numpy().ravel()  # raised here


@case("numpy-of-graph", "loss")
def append_of_an_array():
    w = torch.ones(1, requires_grad=True)
    history = []
    loss = (w * 3).sum()
    history.append(np.asarray(loss))  # raised here


@case("grad-of-non-leaf", "x", warns=True)
def leaf_moved_to_a_dtype():
    x = torch.randn(3, requires_grad=True).double()  # computed here
    (x * 2).sum().backward()
    return x.grad  # read here


@case("optimizer-non-leaf", "w")
def scaled_initialisation():
    w = torch.rand(2, 3, requires_grad=True) / 10  # made here
    b = torch.zeros(3, requires_grad=True)
    return torch.optim.Adam([w, b], lr=1e-3)  # raised here


@case("optimizer-of-nothing", "layers")
def layers_in_a_dict():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = {"a": nn.Linear(2, 2)}  # kept here

    net = Net()
    return torch.optim.AdamW(net.parameters(), lr=1e-3)  # raised here


@case("optimizer-of-nothing", certain=False)
def filter_that_lets_none_through():
    net = nn.Linear(2, 2).requires_grad_(False)
    return torch.optim.SGD(filter(lambda p: p.requires_grad, net.parameters()), lr=0.1)  # raised here


case("no-graph-detach", "detach", certain=True)(
    cells(
        "cut_in_an_earlier_cell",
        "import torch\nfrom torch import nn\nmodel = nn.Linear(2, 1)\n",
        "features = model(torch.ones(3, 2)).detach()  # cut here\n",
        "loss = features.mean()\n",
        "loss.backward()  # raised here\n",
    )
)
case("same-loss-twice", "loss", remembered=True)(
    cells(
        "the_same_cell_again",
        "import torch\nw = torch.ones(2, requires_grad=True)\nloss = w.exp().sum()\n",
        "loss.backward()  # first pass here\n",
        "loss.backward()  # second pass here\n",
    )
)
case("carried-state", "h", remembered=True)(
    cells(
        "state_from_cell_to_cell",
        "import torch\ncell = torch.nn.RNNCell(2, 2)\nh = torch.zeros(1, 2)\n",
        "for t in range(2):\n"
        "    h = cell(torch.ones(1, 2), h)  # carried over here\n"
        "    h.sum().backward()  # second pass here\n",
    )
)
case("in-place", "hidden", certain=True)(
    cells(
        "written_in_another_cell",
        "import torch\nw = torch.ones(3, requires_grad=True)\nhidden = w.tanh()  # saved here\n",
        "hidden.mul_(2)  # overwritten here\n",
        "hidden.sum().backward()  # needed here\n",
    )
)
case("in-place-by-step", "opt.step()")(
    cells(
        "step_in_another_cell",
        "import torch\nfrom torch import nn\nnet = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 1))\n"
        "opt = torch.optim.SGD(net.parameters(), lr=0.1)\nout = net(torch.ones(1, 2))\n",
        "out.sum().backward(retain_graph=True)\nopt.step()  # overwritten here\n",
        "out.sum().backward()  # needed here\n",
    )
)
case("no-graph-no-grad", "switched off")(
    cells(
        "gradients_left_switched_off",
        "import torch\nmodel = torch.nn.Linear(2, 1)\n"
        "_before = torch.set_grad_enabled(False)  # switches gradients off\n",
        "loss = model(torch.ones(1, 2)).sum()\nloss.backward()  # raised here\n",
    )
)
