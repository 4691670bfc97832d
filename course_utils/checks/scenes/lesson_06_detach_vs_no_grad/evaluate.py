"""What an answer to `evaluate` is tried on."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import nn

from course_utils.checks.data import Case
from course_utils.checks.scenes.batches import Batch
from course_utils.checks.scenes.lesson_06_detach_vs_no_grad.left_over import remember, stale
from course_utils.checks.scenes.numbers import numbers, seeded
from course_utils.checks.scenes.turning import Turning
from course_utils.checks.scenes.zoo import OwnError, Stopped


class BadBatch(OwnError):
    """What a batch that cannot be read raises."""


# What stands in the place of a batch that cannot be read.
ERRORS: dict[str, type[BaseException]] = {"an error": BadBatch, "a stop": Stopped}


class Forked(nn.Module):
    """A model with parts inside parts, one in two places, a bias that two share, and at its end a given layer."""

    def __init__(self, last: nn.Module) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(4, 6), nn.BatchNorm1d(6), nn.Sequential(nn.Tanh(), nn.Dropout(0.4)))
        self.body[1].bias = self.body[0].bias
        self.again = nn.Linear(6, 6)
        self.head = nn.ModuleDict({"drop": nn.Dropout(0.3), "out": nn.Linear(6, 3), "last": last, "also": self.again})

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = self.again(self.again(self.body(x)).tanh())
        result: torch.Tensor = self.head["last"](self.head["out"](self.head["drop"](h)))
        return result


def evaluated(case: Case) -> tuple[Forked, list[Batch]]:
    """Return the case's model, in the modes that the case says, and its batches."""
    seed = case.given["seed"]
    model = Forked(Turning(seed + 70) if case.given["turns"] else nn.Identity())
    seeded(model, seed)
    remember(model.body[1], seed + 7, 4)
    stale(model, seed + 30)
    model.again.bias.requires_grad_(not case.given["live inputs"])
    for name, module in model.named_modules():
        in_head, numbered_one = name.startswith("head"), "1" in name
        module.training = {"train": True, "eval": False, "mixed": not numbered_one, "head": in_head}[
            case.given["modes"]
        ]
    batches = []
    for number, size in enumerate(case.given["sizes"]):
        inputs = numbers(seed + 40 + number, size, 4).requires_grad_(case.given["live inputs"])
        targets = (torch.arange(size) + number) % 3
        if case.given["shares"]:  # so many numbers for each sample
            targets = nn.functional.one_hot(targets, 3) * 0.7 + 0.1
        if case.given["several"]:  # fewer for those of later batches
            targets = (targets.unsqueeze(1) + torch.arange(3 - number)) % 3
        batches.append((inputs, targets))
    return model, batches


def loss_of(predictions: torch.Tensor, targets: torch.Tensor, reduction: str = "mean") -> torch.Tensor:
    """Return the cross entropy, where a sample has several classes for its targets the mean of theirs."""
    if targets.dim() == 2 and not targets.is_floating_point():
        predictions = predictions.unsqueeze(2).expand(*predictions.shape, targets.shape[1])
    return nn.functional.cross_entropy(predictions, targets, reduction=reduction)


def readable(batches: list[Batch], bad: str) -> Iterator[Batch]:
    """Yield the batches. Where `bad` names one of `ERRORS`, the second batch raises it, or a stop the first."""
    unreadable = 0 if bad == "a stop" else 1
    for number, batch in enumerate(batches):
        if bad and number == unreadable:
            raise ERRORS[bad](f"batch {number} cannot be read")
        yield batch
