"""What an answer to `through_frozen` is tried on."""

from __future__ import annotations

import torch
from torch import nn

from course_utils.checks.data import Case
from course_utils.checks.scenes.lesson_06_detach_vs_no_grad.left_over import stale
from course_utils.checks.scenes.numbers import numbers, seeded
from course_utils.checks.scenes.zoo import OwnError, Stopped, deep


class Breaking(nn.Module):
    """tanh, which raises an error of an own kind once it has one."""

    error: type[BaseException] | None = None

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        if self.error is not None:
            raise self.error("this part is broken")
        return inputs.tanh()


# What the broken part raises.
ERRORS: dict[str, type[BaseException]] = {"an error": OwnError, "a stop": Stopped}


def crossed(case: Case) -> tuple[nn.Sequential, torch.Tensor]:
    """Return a layer that counts what it sees, with a weight that two parts share, and the leaf behind its input."""
    seed = case.given["seed"]
    shared, last = nn.Linear(5, 5), nn.Linear(5, 5)
    last.weight = shared.weight
    layer = nn.Sequential(nn.Linear(3, 5), nn.BatchNorm1d(5), shared, Breaking(), deep(last))
    seeded(layer, seed)
    stale(layer, seed + 20)
    if case.given["flags"] != "all":
        for number, parameter in enumerate(layer.parameters()):
            parameter.requires_grad_(case.given["flags"] == "some" and number % 2 == 0)
    if case.given["eval"]:
        layer.eval()
    if case.given["own hook"]:
        layer.register_forward_hook(_scaled)
    return layer, numbers(seed + 9, 7, 3).requires_grad_()


def _scaled(module: nn.Module, given: object, result: torch.Tensor) -> torch.Tensor:
    return 1.5 * result
