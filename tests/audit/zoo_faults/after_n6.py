"""Faults whose line is not where they show: backwards with several results, long warm-ups, helpers that are asked."""

import random

import torch
from torch import nn
from torch.nn import functional as F
from torch.optim.swa_utils import AveragedModel

from tests.audit.parts import Dropping, batches, blobs, lines, mlp
from tests.audit.registry import fault


def _fitted(model, steps=6):
    x, y = lines(32)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for _ in range(steps):
        optimizer.zero_grad()
        F.mse_loss(model(x), y).backward()
        optimizer.step()


class _Applied(nn.Module):
    """Two layers with a Function between them that has a parameter of its own."""

    def __init__(self, function):
        super().__init__()
        self.first, self.last = nn.Linear(4, 8), nn.Linear(8, 1)
        self.scale = nn.Parameter(torch.tensor(1.0))
        self.function = function

    def forward(self, x):
        return self.last(self.function.apply(self.first(x), self.scale))


@fault("ignores-incoming")
def one_of_two_results_without_what_comes_in():
    class Gate(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, scale):
            ctx.save_for_backward(x, scale)
            return x * torch.sigmoid(scale * x)

        @staticmethod
        def backward(ctx, grad_out):
            x, scale = ctx.saved_tensors
            s = torch.sigmoid(scale * x)
            for_x = s + scale * x * s * (1 - s)  # <- here
            for_scale = (grad_out * x * x * s * (1 - s)).sum()
            return for_x, for_scale

    _fitted(_Applied(Gate))


@fault("ignores-incoming")
def the_weight_of_a_product_without_what_comes_in():
    class Product(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, scale):
            ctx.save_for_backward(x, scale)
            return x * scale

        @staticmethod
        def backward(ctx, grad_output):
            x, scale = ctx.saved_tensors
            return grad_output * scale, x.sum()  # <- here

    _fitted(_Applied(Product))


@fault("ignores-incoming")
def what_comes_in_is_copied_and_then_forgotten():
    class Cut(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, scale):
            ctx.save_for_backward(x)
            return x.clamp(min=0) * scale

        @staticmethod
        def backward(ctx, grad_output):
            (x,) = ctx.saved_tensors
            grad_input = grad_output.clone()
            with torch.no_grad():
                grad_input = (x > 0).float()
            return grad_input, (grad_output * x.clamp(min=0)).sum()  # <- here

    _fitted(_Applied(Cut))


@fault("update-lost")
def steps_rounded_away_after_a_long_warm_up():
    torch.manual_seed(1)
    x, y = blobs(64)
    model = nn.Sequential(nn.Linear(4, 64), nn.SiLU(), nn.Linear(64, 3)).to(torch.bfloat16)  # <- here
    optimizer = torch.optim.SGD(model.parameters(), lr=3e-4, momentum=0.9)
    schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 0.1, 1.0, total_iters=40)
    for _ in range(7):
        for inputs, targets in batches(x, y, 8):
            optimizer.zero_grad()
            F.cross_entropy(model(inputs.bfloat16()).float(), targets).backward()
            optimizer.step()
            schedule.step()


@fault("update-lost")
def rate_raised_by_hand_and_still_too_small():
    torch.manual_seed(1)
    x, y = blobs(64)
    model = mlp(hidden=64).bfloat16()  # <- here
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-5)
    for step in range(48):
        optimizer.param_groups[0]["lr"] = 1e-5 * min(1 + step, 30)
        rows = slice(8 * (step % 8), 8 * (step % 8) + 8)
        optimizer.zero_grad()
        F.cross_entropy(model(x[rows].bfloat16()).float(), y[rows]).backward()
        optimizer.step()


@fault("seed-repeats")
def points_drawn_by_a_function_that_seeds():
    def points():
        torch.manual_seed(4)  # <- here
        return torch.rand(16, 1)

    model = mlp(1, 1)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(6):
        x = points()
        optimizer.zero_grad()
        F.mse_loss(model(x), torch.sin(3 * x)).backward()
        optimizer.step()


@fault("seed-repeats")
def order_by_a_function_that_seeds():
    def order(count):
        """Return an order."""
        random.seed(3)  # <- here
        rows = list(range(count))
        random.shuffle(rows)
        return rows

    x, y = lines(24)
    model = mlp(out=1)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(5):
        rows = order(len(x))
        for at in range(0, 24, 6):
            batch = torch.tensor(rows[at : at + 6])
            optimizer.zero_grad()
            F.mse_loss(model(x[batch]), y[batch]).backward()
            random.random()
            optimizer.step()


@fault("seed-repeats")
def epoch_that_seeds_itself():
    x, y = blobs(32)
    model = Dropping()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def epoch():
        torch.manual_seed(0)  # <- here
        for rows in torch.randperm(len(x)).split(8):
            optimizer.zero_grad()
            F.cross_entropy(model(x[rows]), y[rows]).backward()
            optimizer.step()

    for _ in range(5):
        epoch()


def _normed():
    return nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 3))


def _averaged(x, y):
    model = _normed()
    mean = AveragedModel(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(6):
        model.train()
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()
        mean.update_parameters(model)
    return model, mean


@torch.no_grad()
def _share(model, x, y):
    model.eval()
    return float((model(x).argmax(1) == y).float().mean())


@fault("stale-statistics")
def mean_given_to_a_function_that_measures():
    x, y = blobs()
    model, mean = _averaged(x, y)
    print(_share(model, x, y))
    print(_share(mean, x, y))  # <- here


@fault("stale-statistics")
def mean_given_on_from_function_to_function():
    def report(model, x, y):
        return f"right: {_share(model, x, y)}"

    x, y = blobs()
    _, mean = _averaged(x, y)
    print(report(mean, x, y))  # <- here


@fault("stale-statistics")
def mean_set_to_evaluation_and_given_to_a_loop():
    def losses(model, parts):
        with torch.no_grad():
            return [float(F.cross_entropy(model(x), y)) for x, y in parts]

    x, y = blobs()
    _, mean = _averaged(x, y)
    mean.eval()  # <- here
    print(losses(mean, batches(x, y)))


@fault("left-in-eval")
def trainer_that_calls_train_before_its_loop():
    class Trainer:
        def __init__(self, model):
            self.model = model
            self.optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

        def fit(self, x, y):
            self.model.train()  # <- here
            for _ in range(4):
                for inputs, targets in batches(x, y):
                    self.optimizer.zero_grad()
                    F.cross_entropy(self.model(inputs), targets).backward()
                    self.optimizer.step()
                self.validate(x, y)

        def validate(self, x, y):
            self.model.eval()
            with torch.no_grad():
                return float((self.model(x).argmax(1) == y).float().mean())

    Trainer(Dropping()).fit(*blobs())


@fault("left-in-eval")
def train_before_the_loop_and_a_function_that_evaluates():
    x, y = blobs()
    model = Dropping()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    model.train()  # <- here
    step = 0
    while step < 12:
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()
        if step % 4 == 3:
            _share(model, x, y)
        step += 1


@fault("left-in-eval")
def put_back_by_nobody_where_train_has_no_loop():
    def epoch(model, optimizer, x, y):
        for inputs, targets in batches(x, y):
            optimizer.zero_grad()
            F.cross_entropy(model(inputs), targets).backward()
            optimizer.step()

    def measured(model, x):
        model.eval()  # <- here
        with torch.no_grad():
            return model(x).argmax(1)

    x, y = blobs()
    model = Dropping()
    model.train()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    epoch(model, optimizer, x, y)
    measured(model, x)
    epoch(model, optimizer, x, y)
