"""Right loops that look as if an optimizer or a schedule were told the wrong thing."""

import torch
from torch import nn
from torch.nn import functional as F

from tests.audit.parts import batches, blobs, lines, mlp
from tests.audit.registry import right


@right
def decay_for_matrices_alone():
    x, y = blobs(24)
    model = nn.Sequential(nn.Linear(4, 8), nn.LayerNorm(8), nn.ReLU(), nn.Linear(8, 3))
    groups = [
        {"params": [p for p in model.parameters() if p.ndim < 2], "weight_decay": 0.0},
        {"params": [p for p in model.parameters() if p.ndim >= 2], "weight_decay": 0.1},
    ]
    optimizer = torch.optim.AdamW(groups, lr=0.01)
    for inputs, targets in batches(x, y):
        optimizer.zero_grad()
        F.cross_entropy(model(inputs), targets).backward()
        optimizer.step()


@right
def biases_alone_are_tuned_and_decay():
    x, y = blobs(24)
    model = mlp()
    for name, p in model.named_parameters():
        p.requires_grad_(name.endswith("bias"))
    groups = [
        {"params": [p for p in model.parameters() if p.ndim < 2], "weight_decay": 0.01},
        {"params": [p for p in model.parameters() if p.ndim >= 2], "weight_decay": 0.0},
    ]
    optimizer = torch.optim.AdamW(groups, lr=0.05)
    for inputs, targets in batches(x, y):
        optimizer.zero_grad()
        F.cross_entropy(model(inputs), targets).backward()
        optimizer.step()


@right
def names_within_each_module_sorted():
    x, y = blobs(24)
    model = nn.Sequential(nn.Linear(4, 8), nn.LayerNorm(8), nn.ReLU(), nn.Linear(8, 3))
    shrunk, plain = [], []
    for module in model.modules():
        for name, p in module.named_parameters(recurse=False):
            (shrunk if name == "weight" and isinstance(module, nn.Linear) else plain).append(p)
            if name == "weight" and p.ndim == 1:
                nn.init.ones_(p)
    optimizer = torch.optim.AdamW([{"params": shrunk, "weight_decay": 0.1}, {"params": plain, "weight_decay": 0.0}])
    for inputs, targets in batches(x, y):
        optimizer.zero_grad()
        F.cross_entropy(model(inputs), targets).backward()
        optimizer.step()


@right
def gates_that_are_to_become_small():
    class Gated(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner, self.outer, self.gates = nn.Linear(4, 8), nn.Linear(8, 1), nn.Parameter(torch.ones(8))

        def forward(self, x):
            return self.outer(self.inner(x).tanh() * self.gates)

    x, y = lines(24)
    model = Gated()
    rest = [p for name, p in model.named_parameters() if name != "gates"]
    optimizer = torch.optim.SGD([{"params": rest}, {"params": [model.gates], "weight_decay": 0.05}], lr=0.05)
    for inputs, targets in batches(x, y):
        optimizer.zero_grad()
        F.mse_loss(model(inputs), targets).backward()
        optimizer.step()


@right
def factors_whose_biases_are_pulled_to_the_mean():
    class Factors(nn.Module):
        def __init__(self):
            super().__init__()
            self.user, self.item = nn.Embedding(6, 3), nn.Embedding(5, 3)
            self.user_bias, self.item_bias = nn.Parameter(torch.zeros(6)), nn.Parameter(torch.zeros(5))

        def forward(self, user, item):
            return (self.user(user) * self.item(item)).sum(1) + self.user_bias[user] + self.item_bias[item]

    user, item, rating = torch.randint(6, (24,)), torch.randint(5, (24,)), torch.randn(24)
    model = Factors()
    groups = [
        {"params": [model.user.weight, model.item.weight]},
        {"params": [model.user_bias, model.item_bias], "weight_decay": 0.02},
    ]
    optimizer = torch.optim.SGD(groups, lr=0.05)
    for _ in range(5):
        optimizer.zero_grad()
        F.mse_loss(model(user, item), rating).backward()
        optimizer.step()


def _fit(told, mode, epochs=12, noisy=False, lr=0.2):
    """Train, and tell a schedule what `told` makes of the loss and the accuracy after each epoch."""
    x = torch.randn(48, 4)
    y = torch.randint(3, (48,)) if noisy else (x[:, 0] > 0).long() + (x[:, 1] > 0).long()
    model = mlp(hidden=32)
    optimizer = torch.optim.SGD(model.parameters(), lr=lr)
    scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, mode, factor=0.8, patience=1)
    for _ in range(epochs):
        for inputs, targets in batches(x[:32], y[:32], 8):
            optimizer.zero_grad()
            F.cross_entropy(model(inputs), targets).backward()
            optimizer.step()
        with torch.no_grad():
            scores = model(x[32:])
        told(scheduler, F.cross_entropy(scores, y[32:]).item(), (scores.argmax(1) == y[32:]).float().mean().item())


@right
def a_schedule_for_losses_and_one_for_accuracies():
    _fit(lambda scheduler, loss, acc: scheduler.step(loss), "min")
    _fit(lambda scheduler, loss, acc: scheduler.step(acc), "max")


@right
def minus_the_loss_is_to_rise():
    def told(scheduler, loss, acc):
        score = -loss
        scheduler.step(score)

    _fit(told, "max")


@right
def errors_that_fall_under_an_accuracy_s_name():
    _fit(lambda scheduler, loss, acc: scheduler.step(1 - acc), "min")


@right
def a_loss_of_validation_that_rises_from_the_start():
    _fit(lambda scheduler, loss, acc: scheduler.step(loss), "min", epochs=25, noisy=True, lr=0.5)


@right
def an_accuracy_that_falls_from_the_start():
    _fit(lambda scheduler, loss, acc: scheduler.step(acc), "max", epochs=25, noisy=True, lr=0.5)


@right
def a_metric_without_a_name_that_rises():
    _fit(lambda scheduler, loss, acc: scheduler.step(metrics=[acc, loss][0]), "max")


def _sum(make, lr, bound=None):
    x, y = lines(64)
    model = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 1))
    optimizer = make(model.parameters(), lr=lr)
    for _ in range(12):
        for inputs, targets in batches(x, y, 32):
            loss = F.mse_loss(model(inputs), targets, reduction="sum")
            optimizer.zero_grad()
            loss.backward()
            if bound is not None:
                nn.utils.clip_grad_norm_(model.parameters(), bound)
            optimizer.step()


@right
def a_sum_at_a_small_rate():
    _sum(torch.optim.SGD, 5e-4)


@right
def a_sum_for_adam():
    _sum(torch.optim.Adam, 0.02)


@right
def a_sum_with_bounded_steps():
    _sum(torch.optim.SGD, 0.05, bound=1.0)
