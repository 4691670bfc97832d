"""What an answer to `saliency` is tried on."""

from __future__ import annotations

import torch
from torch import nn

from course_utils.checks.data import Case
from course_utils.checks.scenes.numbers import numbers, seeded
from course_utils.checks.scenes.turning import Turning
from course_utils.checks.scenes.zoo import deep


class Dropping(nn.Module):
    """Drops numbers in training mode, and is no kind of dropout that anybody knows."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return nn.functional.dropout(x, 0.5, self.training)


def scorer_of_images(case: Case) -> tuple[nn.Module, torch.Tensor, torch.Tensor]:
    """Return a model in training mode, images with five channels, and labels.

    Two layers evaluate, and one of them stands in two places, each inside a part that trains, beside one that trains
    and stands there, too. A bias has a second name.
    Where the case turns, the model multiplies by another number in each run.
    """
    seed, count = case.given["seed"], case.given["count"]
    bend, same, norm = nn.Tanh().eval(), nn.Identity(), nn.BatchNorm2d(3)
    model = nn.Sequential(
        *(nn.Conv2d(5, 3, 3), deep(norm), nn.Sequential(bend, same)),
        *(nn.Conv2d(3, 4, 2), nn.BatchNorm2d(4).eval(), nn.Sequential(bend, same)),
        *(nn.Flatten(), Dropping() if case.given["drops"] else nn.Dropout(0.0), nn.Linear(24, 4)),
        *([Turning(seed + 70)] if case.given["turns"] else []),
    )
    model[6].register_parameter("again", model[0].get_parameter("bias"))
    seeded(model, seed)
    for offset, buffer in enumerate(model.buffers()):
        buffer.copy_(numbers(seed + 50 + offset, *buffer.shape).abs() if buffer.dim() else torch.tensor(3))
    if case.given["frozen"]:  # it evaluates as a whole, and a part of it trains
        model.requires_grad_(False).eval()
        norm.train()
        with torch.no_grad():  # long gradients
            model[8].get_parameter("weight").mul_(1e5)
    if case.given["drops"]:
        model[0].get_parameter("bias").requires_grad_(False)
    labels = torch.tensor([2, 0, 3, 1, 2][:count])
    return model.double(), numbers(seed + 1, count, 5, 5, 6, dtype=torch.float64), labels
