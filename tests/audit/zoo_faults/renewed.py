"""Parameters that a forward or a step makes anew, and metrics whose meaning stands in what a function returns."""

import torch
from torch import nn
from torch.nn import functional as F
from torch.optim.lr_scheduler import ReduceLROnPlateau

from tests.audit.parts import batches, lines, mlp
from tests.audit.registry import fault


def fitted(model, steps=8, after=None):
    """Train a regression on points, and call something after each step."""
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    x, y = lines()
    for _ in range(steps):
        optimizer.zero_grad()
        F.mse_loss(model(x), y).backward()
        optimizer.step()
        if after is not None:
            after(model)


@fault("overwritten")
def a_factor_wrapped_again_to_stay_positive():
    class Scaled(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner, self.factor = nn.Linear(4, 1), nn.Parameter(torch.rand(4))

        def forward(self, inputs):
            self.factor = nn.Parameter(self.factor.clamp(min=0))  # <- here
            return self.inner(inputs * self.factor)

    fitted(Scaled())


@fault("overwritten")
def a_method_that_begins_anew_for_each_input():
    class Prototypes(nn.Module):
        def __init__(self, count):
            super().__init__()
            self.count = count
            self.head = nn.Linear(count, 1)
            self.begin()

        def begin(self):
            self.points = torch.nn.Parameter(torch.linspace(-1, 1, self.count)[:, None].repeat(1, 4))  # <- here

        def forward(self, x):
            self.begin()
            return self.head(torch.cdist(x, self.points))

    fitted(Prototypes(5))


@fault("not-in-optimizer")
def a_projection_after_each_step():
    model = mlp(out=1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    x, y = lines()
    for epoch in range(6):
        for points, values in batches(x, y):
            optimizer.zero_grad()
            loss = (model(points) - values).square().mean()
            loss.backward()
            optimizer.step()
            with torch.no_grad():
                model[2].weight = nn.Parameter(F.normalize(model[2].weight, dim=1))  # <- here
        print(epoch, loss.item())


@fault("overwritten")
def a_parameter_registered_in_each_forward():
    class Shift(nn.Module):
        def __init__(self, width):
            super().__init__()
            self.width = width
            self.register_parameter("shift", nn.Parameter(torch.zeros(width)))

        def forward(self, x):
            if self.training:
                self.register_parameter("shift", nn.Parameter(torch.zeros(self.width)))  # <- here
            return x + self.shift

    fitted(nn.Sequential(Shift(4), nn.Linear(4, 1)))


@fault("not-in-optimizer")
def a_function_of_the_step_that_sets_an_attribute():
    class Gate(nn.Module):
        def __init__(self):
            super().__init__()
            self.gate, self.out = nn.Parameter(torch.zeros(4)), nn.Linear(4, 1)

        def forward(self, x):
            return self.out(x * self.gate.sigmoid())

    def bounded(net):
        values = net.gate.detach().clamp(-2, 2)
        net.gate = nn.Parameter(values)  # <- here

    def train_step(net, optimizer, x, y):
        optimizer.zero_grad()
        F.mse_loss(net(x), y).backward()
        optimizer.step()
        bounded(net)

    net = Gate()
    optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
    for _ in range(8):
        train_step(net, optimizer, *lines())


def classes():
    x = torch.randn(96, 4)
    return x, (x[:, 0] + 0.5 * x[:, 1] > 0).long()


@fault("plateau-direction")
def second_of_two_numbers_that_a_function_returns():
    def passed(model, data, optimizer=None):
        total = right = seen = 0
        for a, b in data:
            out = model(a)
            cost = F.cross_entropy(out, b)
            if optimizer is not None:
                optimizer.zero_grad()
                cost.backward()
                optimizer.step()
            total += cost.item() * len(b)
            right += (out.argmax(dim=1) == b).sum().item()
            seen += len(b)
        return total / seen, right / seen

    x, y = classes()
    model = mlp(out=2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    schedule = ReduceLROnPlateau(optimizer, patience=0, factor=0.8)  # <- here
    for _ in range(8):
        passed(model, batches(x, y, 16), optimizer)
        _, second = passed(model, batches(x, y, 32))
        schedule.step(second)


@fault("plateau-direction")
def a_method_whose_result_is_picked_by_an_index():
    class Judge:
        def __init__(self, data):
            self.data = data

        def look(self, net):
            found, every, sums = 0, 0, 0.0
            with torch.no_grad():
                for a, b in self.data:
                    scores = net(a)
                    guess = scores.max(1)[1]
                    found += guess.eq(b).sum().item()
                    every += b.numel()
                    sums += F.cross_entropy(scores, b, reduction="sum").item()
            return [found / every, sums / every]

    x, y = classes()
    net, judge = mlp(out=2), Judge(batches(x, y, 32))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05)
    slower = ReduceLROnPlateau(optimizer, "min", factor=0.8, patience=0)  # <- here
    for _ in range(8):
        for a, b in batches(x, y, 16):
            optimizer.zero_grad()
            F.cross_entropy(net(a), b).backward()
            optimizer.step()
        both = judge.look(net)
        slower.step(both[0])


@fault("plateau-direction")
def a_dictionary_with_names_that_say_nothing():
    @torch.no_grad()
    def test(net, x, y):
        z = net(x)
        _, top = torch.max(z, 1)
        return {"a": F.cross_entropy(z, y).item(), "b": (top == y).float().mean().item()}

    x, y = classes()
    net = mlp(out=2)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05)
    plan = ReduceLROnPlateau(optimizer, factor=0.8, patience=0)  # <- here
    for _ in range(8):
        for rows in torch.randperm(len(x)).split(16):
            optimizer.zero_grad()
            F.cross_entropy(net(x[rows]), y[rows]).backward()
            optimizer.step()
        m = test(net, x, y)
        plan.step(m["b"])


@fault("plateau-direction")
def a_loss_among_three_numbers_in_the_mode_max():
    def epoch_of(net, data, optimizer):
        s, h, n = 0.0, 0, 0
        for a, b in data:
            z = net(a)
            loss = F.cross_entropy(z, b)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            s, h, n = s + loss.item(), h + (z.argmax(1) == b).sum().item(), n + 1
        return s / n, h, n

    x, y = classes()
    net = mlp(out=2)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05)
    plan = ReduceLROnPlateau(optimizer, mode="max", factor=0.8, patience=0)  # <- here
    for _ in range(8):
        p, q, _ = epoch_of(net, batches(x, y, 16), optimizer)
        plan.step(p)
        print(q)


@fault("plateau-direction")
def the_last_entry_of_a_history():
    def seen(net, x, y):
        pred = net(x).argmax(dim=-1)
        return F.cross_entropy(net(x), y).item(), (pred == y).double().mean().item()

    x, y = classes()
    net, kept = mlp(out=2), {"u": [], "v": []}
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05)
    plan = ReduceLROnPlateau(optimizer, factor=0.8, patience=0)  # <- here
    for _ in range(8):
        for a, b in batches(x, y, 16):
            optimizer.zero_grad()
            F.cross_entropy(net(a), b).backward()
            optimizer.step()
        with torch.no_grad():
            found = seen(net, x, y)
        kept["v"].append(found[1])
        plan.step(kept["v"][-1])
