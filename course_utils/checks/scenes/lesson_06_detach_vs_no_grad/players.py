"""Two players of a game."""

from __future__ import annotations

import torch
from torch import nn

from course_utils.checks.data import Case
from course_utils.checks.scenes.lesson_06_detach_vs_no_grad.left_over import stale
from course_utils.checks.scenes.numbers import seeded
from course_utils.checks.scenes.zoo import deep, lived_in, steepen


def players(case: Case) -> tuple[nn.Sequential, nn.Sequential]:
    """Return the case's generator and discriminator, with gradients in both from earlier steps."""
    seed = case.given["seed"]
    # Dropout evaluates in both: who puts a whole player into training changes what it says.
    generator, discriminator = _player(3, 5, 2, nn.LeakyReLU(0.2)), _player(2, 6, 1, nn.Tanh())
    for model, own in ((generator, seed), (discriminator, seed + 1)):
        seeded(model, own)
        lived_in(model, model[2])
        stale(model, own + 50)
    steep = case.given["steep"]  # what is said stays as it is; points and noise are far from 0, first gradients long
    for player in (generator, discriminator):
        steepen(player[0], steep)
    with torch.no_grad():
        for parameter in generator[3].parameters():
            parameter.mul_(steep)
    if case.given["frozen"]:
        discriminator[0].bias.requires_grad_(False)
        discriminator.eval()
    # So sure of all points that the sigmoid of its logits is rounded to 1, or to 0.
    discriminator.get_parameter("3.0.0.bias").data.add_(case.given["sure"])
    return generator, discriminator


def _player(inside: int, width: int, outside: int, bend: nn.Module) -> nn.Sequential:
    """Return a player with a bias that two layers share, and an activation that sits in two parts of it."""
    first, hidden, last = nn.Linear(inside, width), nn.Linear(width, width), nn.Linear(width, outside)
    hidden.bias = first.bias
    middle = nn.Sequential(bend, nn.Sequential(hidden, bend))
    return nn.Sequential(first, middle, nn.Dropout(0.4), deep(last))
