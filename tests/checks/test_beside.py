"""An answer that is right but for what it leaves behind in one case is told that, and no idea that it has not."""

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


def leaves(given: Any) -> Iterator[torch.Tensor]:
    if isinstance(given, torch.Tensor) and given.is_leaf and given.is_floating_point():
        yield given
    elif isinstance(given, nn.Module):
        yield from given.parameters()
    elif isinstance(given, list | tuple):
        for part in given:
            yield from leaves(part)


def modules(given: Any) -> Iterator[nn.Module]:
    return (it for it in given if isinstance(it, nn.Module))


def a_gradient(given: Any) -> None:
    for leaf in leaves(given):
        leaf.grad = torch.ones_like(leaf)


def a_flag(given: Any) -> None:
    for leaf in leaves(given):
        leaf.requires_grad_(not leaf.requires_grad)
        return


def a_mode(given: Any) -> None:
    for module in modules(given):
        module.train(not module.training)


def a_hook(given: Any) -> None:
    for module in modules(given):
        module.register_forward_hook(lambda *seen: None)


def a_pass(given: Any) -> None:
    with torch.enable_grad():
        torch.ones(1, requires_grad=True).sum().backward()


# What is true of an answer that leaves such a thing.
TRUE: dict[Callable[[Any], None], dict[str, set[str]]] = {
    a_gradient: {
        "parameter_gradients": {"writes into .grad"},
        "backward_engine": {"AccumulateGrad is called"},
        "jacobian": {"the rows pile up in .grad"},
        "loss_gradients": {"traces in .grad"},
        "generator_step": {"gradients left behind"},
        "clip_each_sample": {"written to .grad"},
        "gradient_log": {"gradients left behind"},
        "saliency": {"parameters got gradients"},
    },
    a_flag: {
        "generator_step": {"frozen for good"},
        "through_frozen": {"thawed"},
        "step_in_backward": {"gradients left"},  # no pass brings a gradient to what is frozen, nor takes it away
    },
    a_mode: {"evaluate": {"left evaluating", "all to training"}},
    a_hook: {"checkup": {"hooks left behind"}},
    a_pass: {"without_gradient": {"ran backward"}, "backward_engine": {"PyTorch's engine"}},
}


def leaving(slip: Callable[[Any], None], answer: Callable[..., Any], at: int, calls: list[int]) -> Callable[..., Any]:
    def left(*given: Any) -> Any:
        returned = answer(*given)
        if calls[0] == at:
            slip(given)
        calls[0] += 1
        return returned

    return left


@pytest.mark.parametrize("slip", TRUE, ids=lambda slip: slip.__name__)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_no_other_idea_is_named(name: str, slip: Callable[[Any], None]) -> None:
    answer = next(it for it in RIGHT[name] if callable(it))
    for at in range(_CALLS):
        calls = [0]
        verdict = verdict_on(name, leaving(slip, answer, at, calls))
        assert set(verdict.misconceptions) <= TRUE[slip].get(name, set()), (at, verdict.messages)
        if calls[0] <= at:
            break
    assert at > 0, "no case was tried"
