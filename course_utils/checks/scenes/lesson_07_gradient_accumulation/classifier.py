"""A classifier, its batches and its optimizer."""

from __future__ import annotations

import torch
from torch import nn

from course_utils.checks.data import Case
from course_utils.checks.scenes.batches import Batch
from course_utils.checks.scenes.numbers import numbers, seeded
from course_utils.checks.scenes.zoo import deep, in_groups, lived_in, steepen

FEATURES, CLASSES = 3, 4


class Classifier(nn.Module):
    """Two layers. The first one's bias is frozen, and the spare layer takes no part: its gradients stay None.

    The last one's weight belongs to a second layer as well, which is not called. Two parameters are in no layer: a
    number that scales the scores, and one that counts 0 times, whose gradient is zero.
    """

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(FEATURES, 5)
        self.bend = nn.Tanh()
        last = nn.Linear(5, CLASSES)
        self.last = deep(last)
        self.spare = nn.Linear(2, 3)
        self.twin = nn.Linear(5, CLASSES, bias=False)
        self.twin.weight = last.weight
        self.first.bias.requires_grad_(False)
        self.tilt, self.still = nn.Parameter(torch.empty(())), nn.Parameter(torch.empty(2))

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        scores: torch.Tensor = self.tilt * self.last(self.bend(self.first(inputs)))
        return scores + 0 * self.still.sum()


def classifier(case: Case) -> Classifier:
    """Return the classifier with the case's numbers, in float64. With `steep` its first gradient is long.

    Where the case has `sure` batches, the scores lie far apart.
    """
    model = Classifier().double()
    seeded(model, case.given["seed"], 0.8)
    steepen(model.first, case.given.get("steep", 1.0))
    if "sure" in case.given:
        model.tilt.data.mul_(1e8)
    lived_in(model, model.bend)
    return model


def batches_of(case: Case) -> list[Batch]:
    """Return one batch of inputs and targets for each of the case's sizes. The `sure` ones teach nothing."""
    seed, sizes = case.given["seed"], case.given["sizes"]
    scale = 2 * case.given.get("steep", 1.0)
    inputs = [scale * numbers(seed + 50 + n, size, FEATURES).double() for n, size in enumerate(sizes)]
    generator = torch.Generator().manual_seed(seed)
    batches = [(given, torch.randint(CLASSES, (len(given),), generator=generator)) for given in inputs]
    for given, targets in batches[: case.given.get("sure", 0)]:
        targets.copy_(classifier(case)(given).argmax(1))
    return batches


def stale(model: nn.Module, case: Case) -> None:
    """Leave gradients of some earlier pass in the model, where the case asks for them: "all", or of what is used.

    One of what takes no part is zero.
    """
    asked = case.given.get("stale")
    if asked:
        for offset, (name, parameter) in enumerate(model.named_parameters()):
            if asked == "all" or (parameter.requires_grad and "spare" not in name):
                old = numbers(case.given["seed"] + 200 + offset, *parameter.shape).double()
                parameter.grad = old * (name != "spare.bias")


def optimizer_of(model: nn.Module, case: Case) -> torch.optim.Optimizer:
    """Return SGD with the case's momentum and weight decay, over all parameters, in two groups."""
    given, groups = case.given, in_groups(model.parameters())
    return torch.optim.SGD(groups, lr=given["lr"], momentum=given["momentum"], weight_decay=given["decay"])
