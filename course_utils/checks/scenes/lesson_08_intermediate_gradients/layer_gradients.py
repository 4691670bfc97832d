"""What an answer to `layer_gradients` is tried on."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import nn

from course_utils.checks.data import Case
from course_utils.checks.scenes.lesson_08_intermediate_gradients.planned import Planned
from course_utils.checks.scenes.numbers import numbers, seeded


class Tied(nn.Module):
    """One layer is used twice, has two names, and shares its bias with another."""

    def __init__(self) -> None:
        super().__init__()
        self.enter, self.shared, self.leave = nn.Linear(3, 5), nn.Linear(5, 5), nn.Linear(5, 2)
        self.same = self.shared
        self.shared.bias = self.enter.bias

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = self.shared(self.enter(x).tanh()).tanh()
        result: torch.Tensor = self.leave(self.shared(h).tanh())
        return result


class Branches(nn.Module):
    """First and last layer are frozen, in the second one the bias. One layer goes past the others.

    One head's result is not used, one's counts 0 times, one layer never runs, one part evaluates.
    """

    def __init__(self) -> None:
        super().__init__()
        self.frozen = nn.Linear(3, 4).requires_grad_(False)
        self.trunk, self.spare = nn.Linear(4, 5), nn.Linear(5, 3)
        self.head = nn.Linear(5, 2).requires_grad_(False)
        self.idle, self.zero = nn.Linear(5, 3), nn.Linear(5, 2)
        self.past = nn.Linear(3, 2)
        self.trunk.bias.requires_grad_(False)
        self.louder, self.evaluating = Louder(), Louder().eval()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = self.evaluating(self.louder(self.trunk(self.frozen(x)).tanh()))
        self.spare(h)
        result: torch.Tensor = self.head(h) + 0 * self.zero(h) + self.past(x)
        return result


class Louder(nn.Module):
    """Doubles numbers in training mode: it tells in which mode it ran, and draws nothing."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return 2 * x if self.training else x


def _bends(module: nn.Module, given: object, result: torch.Tensor) -> torch.Tensor:
    return result.exp()


class Failing(nn.Module):
    """A layer that raises."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        raise Planned("the model fails here")


def layered(case: Case, in_place: bool = True) -> tuple[nn.Module, torch.Tensor]:
    """Return the case's model and a batch. `in_place` says how its ReLUs work where it has some."""
    seed = case.given["seed"]
    models: dict[str, Callable[[], nn.Module]] = {
        "plain": lambda: nn.Sequential(nn.Linear(3, 5), nn.Tanh(), nn.Linear(5, 4), nn.Sigmoid(), nn.Linear(4, 2)),
        "in place": lambda: nn.Sequential(
            nn.Sequential(nn.Linear(3, 6), nn.ReLU(inplace=in_place)),
            *(nn.Linear(6, 5), nn.ReLU(inplace=in_place), nn.Linear(5, 2)),
        ),
        "tied": Tied,
        "branches": Branches,
        "failing": lambda: nn.Sequential(nn.Linear(3, 5), nn.Tanh(), Failing(), nn.Linear(5, 2)),
    }
    model = seeded(models[case.given["scene"]](), seed).double()
    if case.given["scene"] == "tied":  # what a module returns has been through its own hooks
        model.get_submodule("leave").register_forward_hook(_bends)
    return model, numbers(seed + 1, case.given["rows"], 3, dtype=torch.float64)


def weighed(output: torch.Tensor) -> torch.Tensor:
    """Return a loss to which each number of the output adds something else, and all of them much."""
    weights = 1e4 * torch.arange(1, output.numel() + 1, dtype=output.dtype).reshape(output.shape) / output.numel()
    return (weights * output.square()).sum()
