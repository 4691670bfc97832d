"""Passes that are run for the gradient of an input, and leave gradients in the weights beside it."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from course_utils.audit.events import Pass
from course_utils.audit.lines import Spot
from course_utils.audit.source import function_around

_TIMES = 3
_SHARE = 0.8  # of an optimizer's steps


@dataclass(frozen=True)
class Left:
    """A line whose pass was for an input, the optimizer that moved along what it left, and how often."""

    spot: Spot
    trainer: int
    times: int


def is_for_input(event: Pass) -> bool:
    """Say whether a pass that has ended reached inputs that were made for it."""
    inputs = [slot for slot in event.received if slot.owner is None and not slot.is_parameter]
    return bool(inputs) and all(slot.received == 1 for slot in inputs)


class Attacks:
    """Which steps use gradients that a helper left which wanted the gradient of its input."""

    def __init__(self) -> None:
        self._mixed: Counter[tuple[Spot, int]] = Counter()

    def stepped(self, trainer: int, wanted: Iterable[Spot | None], others: Sequence[Spot | None]) -> None:
        """Count a step of an optimizer along gradients of passes for an input, and of ones that another function ran.

        Given are the lines of both kinds of passes.
        """
        for spot in set(wanted):
            if spot is not None and any(it is not None and _apart(it, spot) for it in others):
                self._mixed[spot, trainer] += 1

    def left(self, steps: Mapping[int, int]) -> Iterator[Left]:
        """Yield what helpers left for optimizers, given how many steps each of them made."""
        for (spot, trainer), times in self._mixed.items():
            if times >= max(_TIMES, _SHARE * steps.get(trainer, 0)) and _is_helper(spot):
                yield Left(spot, trainer, times)


def _apart(one: Spot, other: Spot) -> bool:
    return function_around(one) is not function_around(other)


def _is_helper(spot: Spot) -> bool:
    """Say whether a function runs a pass for the gradient of an input, and makes no step and clears nothing."""
    scope = function_around(spot)
    if not isinstance(scope, ast.FunctionDef):
        return False
    text = ast.unparse(scope)
    return ".grad" in text.replace(".zero_grad", "") and ".step(" not in text and "zero_grad" not in text
