"""What lesson 06's answers are tried on: pairs of models, a layer to go through, batches to evaluate."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import nn

from course_utils.checks.data import Case
from course_utils.checks.observing.batches import Batch
from course_utils.checks.observing.models import numbers, seeded


class BadBatch(Exception):
    """What a batch that cannot be read raises."""


def stale(model: nn.Module, seed: int) -> None:
    """Leave a gradient in each parameter, as an earlier step would."""
    for offset, parameter in enumerate(model.parameters()):
        parameter.grad = numbers(seed + offset, *parameter.shape)


def flags(model: nn.Module) -> dict[str, bool]:
    """Return each parameter's requires_grad."""
    return {name: parameter.requires_grad for name, parameter in model.named_parameters()}


# Two players.


def players(case: Case) -> tuple[nn.Sequential, nn.Sequential]:
    """Return the case's generator and discriminator, with gradients in both from earlier steps."""
    seed = case.given["seed"]
    generator = nn.Sequential(nn.Linear(3, 5), nn.LeakyReLU(0.2), nn.Linear(5, 2))
    discriminator = nn.Sequential(nn.Linear(2, 6), nn.Tanh(), nn.Linear(6, 1))
    for model, own in ((generator, seed), (discriminator, seed + 1)):
        seeded(model, own)
        stale(model, own + 50)
    if case.given["frozen"]:
        discriminator[0].bias.requires_grad_(False)
        discriminator.eval()
    return generator, discriminator


def q_networks(case: Case) -> tuple[nn.Sequential, nn.Sequential]:
    """Return a network that values three actions, and its older copy."""
    seed = case.given["seed"]
    live, old = (nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 3)) for _ in range(2))
    seeded(live, seed)
    seeded(old, seed + 1)
    if case.given["frozen"]:
        old[0].bias.requires_grad_(False)
    return live, old


# An average of a model.


def averaged(case: Case, seed: int) -> nn.Module:
    """Return a model with a weight that two layers share, and with batch norm's buffers."""
    shared = nn.Linear(5, 5)
    model = nn.Sequential(nn.Linear(3, 5), nn.BatchNorm1d(5), shared, nn.Tanh(), nn.Linear(5, 5), nn.Linear(5, 2))
    model[4].weight = shared.weight
    seeded(model, seed)
    _remember(model[1], seed + 7, seed % 90 + 3)
    return model


def _remember(norm: Any, seed: int, batches: int) -> None:
    """Give batch norm statistics as if it had seen some batches."""
    norm.running_mean.copy_(numbers(seed, norm.num_features))
    norm.running_var.copy_(numbers(seed + 1, norm.num_features).abs())
    norm.num_batches_tracked.fill_(batches)


def average_pair(case: Case) -> tuple[nn.Module, nn.Module]:
    """Return the average and the model that it follows."""
    target, source = averaged(case, case.given["seed"]), averaged(case, case.given["seed"] + 1)
    stale(target, case.given["seed"] + 4)
    stale(source, case.given["seed"] + 2)
    for number, (mine, its) in enumerate(zip(target.parameters(), source.parameters(), strict=True)):
        mine.requires_grad_({"all": True, "none": False, "some": number % 2 == 0}[case.given["live"]])
        its.requires_grad_(case.given["live"] != "some" or number % 3 == 0)
    return target, source


# A model to evaluate.


class Forked(nn.Module):
    """A model with parts inside parts, one of them used twice."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(4, 6), nn.BatchNorm1d(6), nn.Sequential(nn.Tanh(), nn.Dropout(0.4)))
        self.again = nn.Linear(6, 6)
        self.head = nn.ModuleDict({"drop": nn.Dropout(0.3), "out": nn.Linear(6, 3)})

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = self.again(self.again(self.body(x)).tanh())
        result: torch.Tensor = self.head["out"](self.head["drop"](h))
        return result


def evaluated(case: Case) -> tuple[Forked, list[Batch]]:
    """Return the case's model, in the modes that the case says, and its batches."""
    seed = case.given["seed"]
    model = Forked()
    seeded(model, seed)
    _remember(model.body[1], seed + 7, 4)
    stale(model, seed + 30)
    for name, module in model.named_modules():
        in_head, numbered_one = name.startswith("head"), "1" in name
        module.training = {"train": True, "eval": False, "mixed": not numbered_one, "head": in_head}[
            case.given["modes"]
        ]
    batches = []
    for number, size in enumerate(case.given["sizes"]):
        inputs = numbers(seed + 40 + number, size, 4).requires_grad_(case.given["live inputs"])
        batches.append((inputs, (torch.arange(size) + number) % 3))
    return model, batches


class Batches:
    """Batches to go through once, as a DataLoader has them: no list, no indexing. One of them may be unreadable."""

    def __init__(self, batches: list[Batch], bad: int | None = None) -> None:
        self._batches = batches
        self._bad = bad

    def __iter__(self) -> Iterator[Batch]:
        for number, batch in enumerate(self._batches):
            if number == self._bad:
                raise BadBatch(f"batch {number} cannot be read")
            yield batch

    def __len__(self) -> int:
        return len(self._batches)


# A layer to go through.


def crossed(case: Case) -> tuple[nn.Sequential, torch.Tensor]:
    """Return a layer that counts what it sees, with a weight that two parts share, and the leaf behind its input."""
    seed = case.given["seed"]
    layer = nn.Sequential(nn.Linear(3, 5), nn.BatchNorm1d(5), nn.Linear(5, 5), nn.Tanh(), nn.Linear(5, 5))
    layer[4].weight = layer[2].weight
    seeded(layer, seed)
    stale(layer, seed + 20)
    if case.given["flags"] != "all":
        for number, parameter in enumerate(layer.parameters()):
            parameter.requires_grad_(case.given["flags"] == "some" and number % 2 == 0)
    if case.given["eval"]:
        layer.eval()
    width = 2 if case.given["wrong width"] else 3
    return layer, numbers(seed + 9, 7, width).requires_grad_()


def buffers(model: nn.Module) -> dict[str, Any]:
    """Return copies of a model's buffers."""
    return {name: buffer.clone() for name, buffer in model.named_buffers()}
