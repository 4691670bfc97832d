"""What an answer to `gradient_penalty` is tried on."""

from __future__ import annotations

import torch
from torch import nn

from course_utils.checks.data import Case
from course_utils.checks.scenes.numbers import seeded
from course_utils.checks.scenes.zoo import lived_in


class Flat(nn.Module):
    """Scores of shape (n,) from scores of shape (n, 1)."""

    def forward(self, scores: torch.Tensor) -> torch.Tensor:
        return scores.reshape(-1)


def critic_of(case: Case) -> nn.Sequential:
    """Return the case's critic."""
    if case.given["images"]:
        layers = [nn.Conv2d(2, 3, 3), nn.Tanh(), nn.Flatten(), nn.Linear(18, 1), Flat()]
    else:
        layers = [nn.Linear(3, 5), nn.ReLU() if case.given["dead"] else nn.Tanh(), nn.Dropout(0.5), nn.Linear(5, 1)]
    critic = nn.Sequential(*layers).double()
    lived_in(
        critic, critic[2]
    )  # dropout would differ from call to call; that one part of a model is in eval mode is usual
    seeded(critic, case.given["seed"])
    if case.given["images"]:  # norms so long that any bound on them shows
        critic[3].get_parameter("weight").data.mul_(1e4)
    if case.given["dead"]:  # whether a unit lets something through is then a matter of the point's sign
        with torch.no_grad():
            weight, bias = critic[0].parameters()
            weight.abs_()
            bias.mul_(0.1)
    if case.given["frozen"]:
        critic[0].requires_grad_(False)
    return critic
