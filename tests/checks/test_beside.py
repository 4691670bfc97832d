"""An answer that is right but for what it leaves in `.grad` in one case is told that, and no idea that it has not."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch import nn

from course_utils.checks.registry import exercises
from tests.answers import RIGHT
from tests.checks.verdicts import verdict_on

FUNCTIONS = [name for name, exercise in exercises().items() if exercise.call not in (None, exercise.name)]
_CALLS = 14  # of an answer, at most, before which one the slip is made
# What is true of an answer that leaves something in `.grad`.
TRUE = {
    "parameter_gradients": {"writes into .grad"},
    "backward_engine": {"AccumulateGrad is called"},
    "jacobian": {"the rows pile up in .grad"},
    "loss_gradients": {"traces in .grad"},
    "generator_step": {"gradients left behind"},
    "clip_each_sample": {"written to .grad"},
    "gradient_log": {"gradients left behind"},
    "saliency": {"parameters got gradients"},
}


def leaves(given: Any) -> Iterator[torch.Tensor]:
    if isinstance(given, torch.Tensor) and given.is_leaf and given.is_floating_point():
        yield given
    elif isinstance(given, nn.Module):
        yield from given.parameters()
    elif isinstance(given, list | tuple):
        for part in given:
            yield from leaves(part)


def leaving_a_gradient(answer: Callable[..., Any], at: int, calls: list[int]) -> Callable[..., Any]:
    def left(*given: Any) -> Any:
        returned = answer(*given)
        if calls[0] == at:
            for leaf in leaves(given):
                leaf.grad = torch.ones_like(leaf)
        calls[0] += 1
        return returned

    return left


@pytest.mark.parametrize("name", FUNCTIONS)
def test_no_other_idea_is_named(name: str) -> None:
    answer = next(it for it in RIGHT[name] if callable(it))
    for at in range(_CALLS):
        calls = [0]
        verdict = verdict_on(name, leaving_a_gradient(answer, at, calls))
        assert set(verdict.misconceptions) <= TRUE.get(name, set()), (at, verdict.messages)
        if calls[0] <= at:
            break
    assert at > 0, "no case was tried"
