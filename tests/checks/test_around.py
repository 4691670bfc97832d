"""What a task leaves as it was stays so: a right answer that puts models into training, or takes hooks off, fails."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from torch import nn

from tests.answers import RIGHT
from tests.checks.verdicts import verdict_on

MODES = (
    *("train", "fewest_bytes", "fit_scale", "train_chunks", "two_updates", "split_at_trunk", "penalised_step"),
    *("gradient_penalty", "meta_gradient", "generator_step", "discriminator_step", "td_loss", "ema_update"),
    *("train_in_windows", "epoch_in_windows", "train_clipped", "accumulate", "fit_masked"),
)
HOOKS = (
    *("train", "fewest_bytes", "fit_scale", "train_chunks", "two_updates", "split_at_trunk", "penalised_step"),
    *("gradient_penalty", "meta_gradient", "generator_step", "discriminator_step", "td_loss"),
)


def models(items: Any) -> Iterator[nn.Module]:
    """Go through the models among the arguments of an answer, and in their lists."""
    for item in items:
        if isinstance(item, nn.Module):
            yield item
        elif isinstance(item, list | tuple):
            yield from models(item)


def slipping(answer: Callable[..., Any], slip: Callable[[nn.Module], object], *, first: bool) -> Callable[..., Any]:
    """Return an answer that does something to each model that it gets, before its work or after it."""

    def slipped(*given: Any) -> Any:
        if first:
            [slip(model) for model in models(given)]
        returned = answer(*given)
        if not first:
            [slip(model) for model in models(given)]
        return returned

    return slipped


def hookless(model: nn.Module) -> None:
    for part in model.modules():
        part._forward_hooks.clear()


@pytest.mark.parametrize("first", [True, False], ids=["before", "after"])
@pytest.mark.parametrize("name", MODES)
def test_modes_stay(name: str, first: bool) -> None:
    answer = next(it for it in RIGHT[name] if callable(it))
    assert verdict_on(name, slipping(answer, nn.Module.train, first=first)).outcome == "incorrect"


@pytest.mark.parametrize("name", HOOKS)
def test_hooks_stay(name: str) -> None:
    answer = next(it for it in RIGHT[name] if callable(it))
    assert verdict_on(name, slipping(answer, hookless, first=False)).outcome == "incorrect"
