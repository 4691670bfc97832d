"""What an answer to `ema_update` is tried on."""

from __future__ import annotations

from torch import nn

from course_utils.checks.data import Case
from course_utils.checks.scenes.lesson_06_detach_vs_no_grad.left_over import remember, stale
from course_utils.checks.scenes.numbers import numbers, seeded
from course_utils.checks.scenes.zoo import deep, lived_in


def averaged(case: Case, seed: int) -> nn.Module:
    """Return a model with a weight that two layers share, batch norm's buffers, and one that is not in its state."""
    shared = nn.Linear(5, 5)
    norm = nn.BatchNorm1d(5)
    model = nn.Sequential(nn.Linear(3, 5), deep(norm), shared, nn.Tanh(), nn.Linear(5, 5), deep(nn.Linear(5, 2)))
    model[4].weight = shared.weight
    seeded(model, seed)
    lived_in(model, model[3])
    remember(norm, seed + 7, seed % 90 + 3)
    model[3].register_buffer("mask", numbers(seed + 11, 5), persistent=False)
    return model


def average_pair(case: Case) -> tuple[nn.Module, nn.Module]:
    """Return the average and the model that it follows, where nothing is live with some numbers equal already."""
    target, source = averaged(case, case.given["seed"]), averaged(case, case.given["seed"] + 1)
    if case.given["live"] == "none":
        for name in ("1.0.0.running_mean", "3.mask"):
            target.get_buffer(name).data = source.get_buffer(name).clone()
        target.get_parameter("5.0.0.bias").data = source.get_parameter("5.0.0.bias").detach().clone()
    stale(target, case.given["seed"] + 4)
    stale(source, case.given["seed"] + 2)
    for number, (mine, its) in enumerate(zip(target.parameters(), source.parameters(), strict=True)):
        mine.requires_grad_({"all": True, "none": False, "some": number % 2 == 0}[case.given["live"]])
        its.requires_grad_(case.given["live"] != "some" or number % 3 == 0)
    return target, source
