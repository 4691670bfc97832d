"""Optimizers and schedules that are told the wrong thing."""

import torch
from torch import nn
from torch.nn import functional as F

from tests.audit.parts import batches, blobs, lines, mlp
from tests.audit.registry import fault


def _normed():
    return nn.Sequential(nn.Linear(4, 8), nn.LayerNorm(8), nn.ReLU(), nn.Linear(8, 3))


@fault("decay-on-vectors")
def decay_for_all_whose_name_says_bias_or_norm():
    x, y = blobs(24)
    model = nn.ModuleDict({"inner": nn.Linear(4, 8), "norm": nn.BatchNorm1d(8), "outer": nn.Linear(8, 3)})
    without = ("bias", "norm")
    one = [p for name, p in model.named_parameters() if any(it in name for it in without)]  # <- here
    two = [p for name, p in model.named_parameters() if not any(it in name for it in without)]
    groups = [dict(params=two, weight_decay=0.0), dict(params=one, weight_decay=0.1)]
    optimizer = torch.optim.SGD(groups, lr=0.05, momentum=0.9)
    for inputs, targets in batches(x, y):
        scores = model["outer"](model["norm"](model["inner"](inputs)).relu())
        loss = F.cross_entropy(scores, targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


@fault("decay-on-vectors")
def decay_by_default_where_the_matrices_are_taken_out():
    x, y = blobs(24)
    model = _normed()
    flat = [p for p in model.parameters() if p.ndim == 1]  # <- here
    rest = [p for p in model.parameters() if p.ndim > 1]
    optimizer = torch.optim.AdamW([{"params": flat}, {"params": rest, "weight_decay": 0}], lr=0.01)
    for inputs, targets in batches(x, y):
        optimizer.zero_grad()
        F.cross_entropy(model(inputs), targets).backward()
        optimizer.step()


@fault("decay-on-vectors")
def a_class_that_sorts_its_parameters_the_wrong_way():
    class Trainer:
        def __init__(self, model, decay):
            self.model = model
            plain, shrunk = set(), set()
            for module in model.modules():
                for name, p in module.named_parameters(recurse=False):
                    if name == "weight" and isinstance(module, nn.Linear):
                        plain.add(p)
                    else:
                        shrunk.add(p)  # <- here
            self.optimizer = torch.optim.Adam(
                [{"params": list(plain)}, {"params": list(shrunk), "weight_decay": decay}], lr=0.01
            )

        def fit(self, data):
            for inputs, targets in data:
                self.optimizer.zero_grad()
                F.cross_entropy(self.model(inputs), targets).backward()
                self.optimizer.step()

    Trainer(_normed(), 1e-2).fit(batches(*blobs(24)))


def _evaluate(model, x, y):
    with torch.no_grad():
        scores = model(x)
        return F.cross_entropy(scores, y).item(), (scores.argmax(1) == y).float().mean().item()


def _learnable(count=48):
    x = torch.randn(count, 4)
    return x, (x[:, 0] > 0).long() + (x[:, 1] > 0).long()


@fault("plateau-direction")
def accuracy_told_to_a_schedule_for_losses():
    x, y = _learnable()
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.2)
    scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, factor=0.9, patience=1)  # <- here
    for _ in range(14):
        for inputs, targets in batches(x, y, 8):
            optimizer.zero_grad()
            F.cross_entropy(model(inputs), targets).backward()
            optimizer.step()
        model.eval()
        _, acc = _evaluate(model, x, y)
        model.train()
        scheduler.step(acc)


@fault("plateau-direction")
def a_mean_loss_told_to_a_schedule_for_scores():
    class Fit:
        def __init__(self, model):
            self.model = model
            self.optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
            options = {"mode": "max", "patience": 2, "factor": 0.8}
            self.plateau = torch.optim.lr_scheduler.ReduceLROnPlateau(self.optimizer, **options)  # <- here
            self.history = []

        def epoch(self, data):
            total = 0.0
            for inputs, targets in data:
                self.optimizer.zero_grad()
                loss = F.mse_loss(self.model(inputs), targets)
                loss.backward()
                self.optimizer.step()
                total += loss.item()
            self.history.append(total / len(data))

        def run(self, data):
            for _ in range(12):
                self.epoch(data)
                self.plateau.step(self.history[-1])

    Fit(mlp(out=1)).run(batches(*lines(32), 8))


@fault("plateau-direction")
def a_function_that_lets_any_schedule_go_on():
    def go_on(schedule, metric):
        if isinstance(schedule, torch.optim.lr_scheduler.ReduceLROnPlateau):
            schedule.step(metrics=metric)
        else:
            schedule.step()

    x, y = _learnable()
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.3, momentum=0.9)
    schedule = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, "max", factor=0.7, patience=0)  # <- here
    for _ in range(10):
        for inputs, targets in batches(x, y, 8):
            optimizer.zero_grad()
            F.cross_entropy(model(inputs), targets).backward()
            optimizer.step()
        val_loss, _ = _evaluate(model, x, y)
        go_on(schedule, val_loss)


def _far(count=64):
    """Return points and classes of which none is far from the others."""
    x = 2 * torch.randn(count, 4)
    return x, (x[:, 0] * x[:, 1] > 0).long() + (x[:, 2] > 0).long()


@fault("summed-loss")
def a_summed_cross_entropy_at_a_usual_rate():
    x, y = _far()
    model = mlp(hidden=16)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.2, momentum=0.9)
    criterion = nn.CrossEntropyLoss(reduction="sum")  # <- here
    for _ in range(12):
        for inputs, targets in batches(x, y, 32):
            optimizer.zero_grad()
            criterion(model(inputs), targets).backward()
            optimizer.step()


@fault("summed-loss")
def squares_added_up_by_hand():
    x, y = lines(64)
    model = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for _ in range(12):
        for inputs, targets in batches(x, y, 32):
            loss = (model(inputs) - targets).pow(2).sum()  # <- here
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
