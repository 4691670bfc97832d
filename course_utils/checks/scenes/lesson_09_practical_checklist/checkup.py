"""What an answer to `checkup` is tried on."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from course_utils.checks.data import Case
from course_utils.checks.scenes.lesson_09_practical_checklist.training import RATE, Optimizer, double, sgd
from course_utils.checks.scenes.numbers import seeded
from course_utils.checks.scenes.zoo import deep


class Gain(nn.Module):
    """Multiplies by a number, which is a parameter without dimensions."""

    def __init__(self) -> None:
        super().__init__()
        self.by = nn.Parameter(torch.empty(()))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.by * x


class Patient(nn.Module):
    """Three layers and a gain. The scenes break different ones."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        self.first = nn.Linear(4, 5)
        self.middle = nn.Linear(5, 5)
        self.last = nn.Linear(5, 3)
        self.gain = deep(Gain())
        self.register_buffer("steps", torch.zeros(1))  # changes in each step, and is no parameter
        seeded(self.double(), seed)


def patient(case: Case) -> tuple[Patient, Optimizer, Callable[[], None]]:
    """Return the case's model, its optimizer, and a function that runs one training step."""
    seed, scene = case.given["seed"], case.given["scene"]
    model = Patient(seed)
    inputs, targets = double(seed + 1, 6, 4), double(seed + 2, 6, 3)
    held = copy.deepcopy(model) if scene == "a copy is held" else model
    if scene == "a copy is held":
        model.first.weight.data = held.get_parameter("first.weight").data  # other parameters, and in part one memory
    parameters = [parameter for name, parameter in held.named_parameters() if not scene.startswith("left out: " + name)]
    optimizer: Optimizer = torch.optim.SGD(parameters, lr=RATE, momentum=0.9)
    if scene == "two groups":
        groups: list[dict[str, Any]] = [{"params": parameters[:2]}, {"params": parameters[2:], "lr": RATE / 2}]
        optimizer = torch.optim.SGD(groups, lr=RATE)
    skips = scene in ("skipped", "stale", "cleared at the end", "frozen and moving")
    if scene == "replaced":
        model.last = nn.Linear(5, 3).double()
        seeded(model.last, seed + 9)
    if scene.startswith("tied"):
        model.middle.weight = model.first.weight = nn.Parameter(double(seed + 8, 5, 5))
        inputs = double(seed + 1, 6, 5)
        optimizer = sgd(model)
        if scene == "tied, left out":
            optimizer = torch.optim.SGD([it for it in model.parameters() if it is not model.first.weight], lr=RATE)
    if scene == "with hooks":
        model.first.weight.register_hook(lambda gradient: 2 * gradient)
        model.middle.eval()
    if scene.startswith("frozen"):
        model.first.requires_grad_(False)
    if scene == "frozen, moved by data":
        model.middle.bias.requires_grad_(False)
    if scene == "frozen, not held":
        optimizer = torch.optim.SGD(parameters[2:], lr=RATE)
    if scene == "old NaN":
        model.first.weight.grad = torch.full_like(model.first.weight, torch.nan)
    if scene in ("stale", "frozen and moving"):
        layer = model.middle if scene == "stale" else model.first
        layer.weight.grad = double(seed + 3, *layer.weight.shape)

    def step() -> None:
        if scene not in ("stale", "frozen and moving", "cleared at the end", "old NaN"):
            optimizer.zero_grad()
        if scene.startswith("two passes"):
            (model.middle.bias[:1] * (1 if scene == "two passes, then NaN" else torch.inf)).sum().backward()
        if scene == "two passes":
            optimizer.zero_grad()
        model.get_buffer("steps").add_(1)
        hidden = model.first(inputs).tanh()
        if scene == "cleared at the end":  # without its bias
            hidden = (hidden @ model.middle.weight).tanh()
        elif not skips:
            hidden = model.middle(hidden).tanh()
        if scene == "raises":
            hidden = hidden[:, :2]
        if scene == "rounded":
            hidden = hidden.round()
        result = model.gain(model.last(hidden))
        loss = (result - targets).pow(2).mean()
        if scene.startswith("root"):  # the last of the bias's gradients is -infinity, or NaN
            root = (model.middle.bias - model.middle.bias.detach())[-1:].sqrt().sum()
            loss = loss - (root if scene == "root" else 0 * root)
        if scene == "huge":
            loss = 1e200 * loss
            loss = loss + 1.5e308 * (model.last.bias - model.last.bias.detach()).sum()  # finite each, not their sum
        loss.backward()
        if scene == "two passes, then NaN":
            (model.middle.bias * torch.nan).sum().backward()
        if scene == "root, hidden":
            for parameter in model.parameters():
                if parameter.grad is not None:
                    parameter.grad.nan_to_num_(0.0, 0.0, 0.0)
        optimizer.step()
        if scene == "cleared at the end":
            optimizer.zero_grad()
        if scene == "frozen, moved by data":
            model.first.weight.data[0, 0] += 1e-12
            model.middle.bias.data[0] += 1e-12
            model.first.bias.data.mul_(1.0)
            model.first.bias.detach().mul_(1.0)
        if scene == "frozen, rows exchanged":
            model.first.weight.data.copy_(model.first.weight.flip(0))
            model.first.bias.data.copy_(model.first.bias.flip(0))

    return model, optimizer, step
