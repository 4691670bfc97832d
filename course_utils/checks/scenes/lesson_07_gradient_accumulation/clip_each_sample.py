"""What an answer to `clip_each_sample` is tried on."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn.functional import linear, softplus

from course_utils.checks.data import Case
from course_utils.checks.scenes.lesson_07_gradient_accumulation.classifier import CLASSES
from course_utils.checks.scenes.numbers import numbers, seeded
from course_utils.checks.scenes.zoo import deep, steepen


class Images(nn.Module):
    """A convolution, a mean over positions, a linear layer whose weight is used under two names, a buffer, and a scale.

    One parameter takes no part.

    It flattens from dimension 1 on, as most models do, so that it takes no image without the batch's dimension.

    Its class counts the runs, those of copies, too.

    Nothing bounds its scores, so an image with large numbers can be so sure that its loss and its gradient are zero.
    """

    runs = 0

    def __init__(self) -> None:
        super().__init__()
        self.features = nn.Conv2d(2, 3, (2, 3))
        last = nn.Linear(3, CLASSES)
        self.last = deep(last)
        self.twin = nn.ParameterDict({"weight": last.weight})
        self.shift = nn.Buffer(torch.zeros(CLASSES))
        self.scale = nn.Parameter(torch.empty(CLASSES))
        self.spare = nn.Parameter(torch.empty(2))

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        Images.runs += 1
        hidden = softplus(self.features(images)).mean(dim=(-2, -1)).flatten(1)
        again = linear(hidden.square(), self.twin["weight"])
        scores: torch.Tensor = self.scale * (self.last(hidden) + again) + self.shift
        return scores


def image_batch(case: Case) -> tuple[Images, torch.Tensor, torch.Tensor]:
    """Return the image model with a batch of images and targets.

    The case's `sure` image has a gradient of zero. With `steep` gradients are long. All is in the case's dtype.
    """
    seed, count = case.given["seed"], case.given["count"]
    dtype = torch.float32 if case.given["single"] else torch.float64
    model = Images().to(dtype)
    seeded(model, seed)
    generator = torch.Generator().manual_seed(seed)
    images = numbers(seed + 9, count, 2, 4, 5).to(dtype)
    targets = torch.randint(CLASSES, (count,), generator=generator)
    if "steep" in case.given:
        steepen(model.features, case.given["steep"])
        images *= case.given["steep"]
    if "sure" in case.given:
        images[case.given["sure"]] *= 1e5
        with torch.no_grad():
            targets[case.given["sure"]] = model(images)[case.given["sure"]].argmax()
    return model, images, targets
