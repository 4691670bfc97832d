"""What an answer to `make_model` is tried on."""

from __future__ import annotations

import torch

from course_utils.checks.data import Case
from course_utils.checks.scenes.lesson_09_practical_checklist.training import double

APART = 1e-9


def near(case: Case) -> torch.Tensor:
    """Return inputs in float64 so near to the mean that float32 would lose what sets them apart."""
    mean: torch.Tensor = case.given["mean"].tensor().double()
    return mean + 1e-4 * double(case.given["seed"] + 4, 6, len(mean))


def barely_moved(case: Case) -> tuple[torch.Tensor, torch.Tensor]:
    """Return inputs in float64 that are far from the mean, and the same moved by less than float32 can tell."""
    mean: torch.Tensor = case.given["mean"].tensor().double()
    inputs = mean + double(case.given["seed"] + 5, 6, len(mean))
    return inputs, inputs + APART * double(case.given["seed"] + 6, 6, len(mean))
