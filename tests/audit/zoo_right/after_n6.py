"""Backwards with results that come from elsewhere on purpose, warm-ups that arrive, helpers that seed and measure."""

import torch
from torch import nn
from torch.nn import functional as F
from torch.optim.swa_utils import AveragedModel, update_bn

from tests.audit.parts import Dropping, batches, blobs, lines, mlp
from tests.audit.registry import right


def _fitted(function):
    x, y = lines(32)
    first, last, scale = nn.Linear(4, 8), nn.Linear(8, 1), nn.Parameter(torch.tensor(1.0))
    optimizer = torch.optim.SGD([*first.parameters(), *last.parameters(), scale], lr=0.01)
    for _ in range(6):
        optimizer.zero_grad()
        F.mse_loss(last(function.apply(first(x), scale)), y).backward()
        optimizer.step()


@right
def both_results_by_steps_in_place():
    class Product(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, scale):
            ctx.save_for_backward(x, scale)
            return x * scale

        @staticmethod
        def backward(ctx, grad_output):
            x, scale = ctx.saved_tensors
            for_x = torch.full_like(x, float(scale))
            for_x.mul_(grad_output)
            for_scale = x.clone()
            for_scale *= grad_output
            for_scale = for_scale.sum()
            return for_x, for_scale

    _fitted(Product)


@right
def a_loss_of_its_own_tied_to_what_goes_on():
    class Tied(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, scale):
            ctx.save_for_backward(scale)
            return x.clone()

        @staticmethod
        def backward(ctx, grad_output):
            (scale,) = ctx.saved_tensors
            return grad_output, 0.01 * scale

    _fitted(Tied)


@right
def a_loss_that_nothing_comes_after():
    class Tied(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, scale):
            ctx.save_for_backward(scale)
            return 2 * x

        @staticmethod
        def backward(ctx, grad_output):
            (scale,) = ctx.saved_tensors
            own = torch.ones_like(scale) * 0.01
            return 2 * grad_output, own

    _fitted(Tied)


@right
def results_of_a_graph_made_again():
    class Again(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, scale):
            ctx.save_for_backward(x, scale)
            return torch.tanh(x * scale)

        @staticmethod
        def backward(ctx, grad_output):
            x, scale = (it.detach().requires_grad_() for it in ctx.saved_tensors)
            with torch.enable_grad():
                out = torch.tanh(x * scale)
            torch.autograd.backward(out, grad_output)
            return x.grad, scale.grad

    _fitted(Again)


@right
def results_only_where_they_are_wanted():
    class Product(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, scale):
            ctx.save_for_backward(x, scale)
            return x * scale

        @staticmethod
        def backward(ctx, *grads):
            x, scale = ctx.saved_tensors
            for_x = for_scale = None
            if ctx.needs_input_grad[0]:
                for_x = grads[0] * scale
            if ctx.needs_input_grad[1]:
                for_scale = sum((a * b).sum() for a, b in zip(x, grads[0], strict=True))
            return for_x, for_scale

    _fitted(Product)


@right
def a_long_warm_up_to_a_rate_that_moves_all():
    torch.manual_seed(1)
    x, y = blobs(64)
    model = nn.Sequential(nn.Linear(4, 64), nn.SiLU(), nn.Linear(64, 3)).to(torch.bfloat16)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 0.01, 1.0, total_iters=30)
    for _ in range(8):
        for inputs, targets in batches(x, y, 8):
            optimizer.zero_grad()
            F.cross_entropy(model(inputs.bfloat16()).float(), targets).backward()
            optimizer.step()
            schedule.step()


@right
def a_rate_that_falls_to_nothing():
    torch.manual_seed(1)
    x, y = blobs(64)
    model = mlp(hidden=64).to(torch.bfloat16)
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 64)
    for _ in range(8):
        for inputs, targets in batches(x, y, 8):
            optimizer.zero_grad()
            F.cross_entropy(model(inputs.bfloat16()).float(), targets).backward()
            optimizer.step()
            schedule.step()


@right
def points_that_are_other_ones_each_time():
    def points(step):
        torch.manual_seed(step)
        return torch.rand(16, 1)

    model = mlp(1, 1)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for step in range(6):
        x = points(step)
        optimizer.zero_grad()
        F.mse_loss(model(x), torch.sin(3 * x)).backward()
        optimizer.step()


@right
def points_to_measure_with_are_the_same():
    @torch.no_grad()
    def error(model):
        torch.manual_seed(4)
        x = torch.rand(16, 1)
        return float(F.mse_loss(model(x), torch.sin(3 * x)))

    model = mlp(1, 1)
    generator = torch.Generator().manual_seed(1)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(6):
        x = torch.rand(16, 1, generator=generator)
        optimizer.zero_grad()
        F.mse_loss(model(x), torch.sin(3 * x)).backward()
        optimizer.step()
        error(model)


@torch.no_grad()
def _share(model, x, y):
    model.eval()
    return float((model(x).argmax(1) == y).float().mean())


@right
def mean_with_statistics_of_its_own():
    x, y = blobs()
    model = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 3))
    mean = AveragedModel(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(6):
        model.train()
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()
        mean.update_parameters(model)
    update_bn([x, x], mean)
    print(_share(model, x, y), _share(mean, x, y))


@right
def trainer_that_calls_train_in_its_loop():
    class Trainer:
        def __init__(self, model):
            self.model = model
            self.optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

        def fit(self, x, y):
            for _ in range(4):
                self.model.train()
                for inputs, targets in batches(x, y):
                    self.optimizer.zero_grad()
                    F.cross_entropy(self.model(inputs), targets).backward()
                    self.optimizer.step()
                _share(self.model, x, y)

    Trainer(Dropping()).fit(*blobs())


@right
def train_before_the_loop_and_after_each_evaluation():
    def measured(model, x, y):
        share = _share(model, x, y)
        model.train()
        return share

    x, y = blobs()
    model = Dropping()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model.train()
    for _ in range(4):
        for inputs, targets in batches(x, y):
            optimizer.zero_grad()
            F.cross_entropy(model(inputs), targets).backward()
            optimizer.step()
        measured(model, x, y)


@right
def body_trained_before_and_frozen_with_its_statistics():
    x, y = blobs(32)
    body = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU())
    model = nn.Sequential(body, nn.Linear(8, 3))

    def fit(optimizer, steps=5):
        for _ in range(steps):
            optimizer.zero_grad()
            F.cross_entropy(model(x), y).backward()
            optimizer.step()

    model.train()
    fit(torch.optim.Adam(model.parameters(), lr=0.01))
    model[1] = nn.Linear(8, 3)
    body.requires_grad_(False)
    model.eval()
    fit(torch.optim.Adam(model[1].parameters(), lr=0.01))
