"""Parameters that are made once, or are held anew, and schedules that are told what they wait for."""

import torch
from torch import nn
from torch.nn import functional as F
from torch.optim.lr_scheduler import ReduceLROnPlateau

from tests.audit.parts import batches, lines, mlp
from tests.audit.registry import right
from tests.audit.zoo_faults.renewed import classes, fitted


@right
def a_parameter_made_in_the_first_forward():
    class Late(nn.Module):
        def __init__(self):
            super().__init__()
            self.factor, self.inner = None, nn.Linear(4, 1)

        def forward(self, x):
            if self.factor is None:
                self.factor = nn.Parameter(torch.ones(x.shape[1]))
            return self.inner(x * self.factor)

    model = Late()
    model(lines()[0])
    fitted(model)


@right
def a_projection_that_writes_into_the_parameter():
    def projected(model):
        with torch.no_grad():
            model[2].weight.copy_(F.normalize(model[2].weight, dim=1))
            model[0].weight.data = model[0].weight.data.clamp(-1, 1)

    fitted(mlp(out=1), after=projected)


@right
def a_constant_that_is_no_parameter_to_train():
    class Shifted(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = nn.Linear(4, 1)

        def forward(self, x):
            self.mean = nn.Parameter(x.detach().mean(0), requires_grad=False)
            return self.inner(x - self.mean)

    fitted(Shifted())


@right
def a_head_made_anew_with_its_optimizer():
    model = mlp(out=1)
    for _ in range(3):
        model[2].weight = nn.Parameter(torch.randn(1, 8) / 3)
        optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
        for _ in range(4):
            x, y = lines()
            optimizer.zero_grad()
            F.mse_loss(model(x), y).backward()
            optimizer.step()


@right
def weights_reset_between_two_trainings():
    class Again(nn.Module):
        def __init__(self):
            super().__init__()
            self.reset()

        def reset(self):
            self.weight = nn.Parameter(torch.zeros(4, 1))

        def forward(self, x):
            return x @ self.weight

    model = Again()
    for _ in range(2):
        model.reset()
        fitted(model)


def waiting(measure, given, mode="min"):
    """Train a classifier whose schedule is told a part of what `measure` returns."""
    x, y = classes()
    net = mlp(out=2)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05)
    plan = ReduceLROnPlateau(optimizer, mode, factor=0.8, patience=0)
    for _ in range(8):
        for a, b in batches(x, y, 16):
            optimizer.zero_grad()
            F.cross_entropy(net(a), b).backward()
            optimizer.step()
        plan.step(given(measure(net, x, y)))


@right
def the_loss_of_two_numbers():
    @torch.no_grad()
    def measured(net, x, y):
        s, n, h = 0.0, 0, 0
        for a, b in batches(x, y, 32):
            z = net(a)
            s += F.cross_entropy(z, b, reduction="sum").item()
            h += (z.argmax(1) == b).sum().item()
            n += len(b)
        return s / n, h / n

    x, y = classes()
    net = mlp(out=2)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05)
    least, most = ReduceLROnPlateau(optimizer, patience=0), ReduceLROnPlateau(optimizer, "max", patience=0)
    for _ in range(8):
        for a, b in batches(x, y, 16):
            optimizer.zero_grad()
            F.cross_entropy(net(a), b).backward()
            optimizer.step()
        va, vb = measured(net, x, y)
        least.step(va)
        most.step(vb)


@right
def the_share_of_what_is_missed():
    @torch.no_grad()
    def measured(net, x, y):
        hit = (net(x).argmax(1) == y).float().mean().item()
        return len(y), 1 - hit

    x, y = classes()
    net = mlp(out=2)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05)
    plan = ReduceLROnPlateau(optimizer, factor=0.8, patience=0)
    for _ in range(8):
        for a, b in batches(x, y, 16):
            optimizer.zero_grad()
            F.cross_entropy(net(a), b).backward()
            optimizer.step()
        _, second = measured(net, x, y)
        plan.step(second)


@right
def hits_for_the_mode_max():
    def measured(net, x, y):
        with torch.no_grad():
            return {"n": len(y), "v": (net(x).argmax(1) == y).float().mean().item()}

    waiting(measured, lambda found: found["v"], mode="max")
