"""Passes that are run for the gradient of an input, and leave gradients in the weights beside it."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from course_utils.audit.events import Pass, Step
from course_utils.audit.lines import Spot
from course_utils.audit.source import function_around

_TIMES = 3
_SHARE = 0.8  # of an optimizer's steps
_MOST = 64


@dataclass(frozen=True)
class Left:
    """A line whose pass was for an input, the optimizer that moved along what it left, and how often."""

    spot: Spot
    trainer: int
    times: int


class Attacks:
    """Which steps use gradients that a helper left which wanted the gradient of its input."""

    def __init__(self) -> None:
        self._wanted: dict[int, Spot] = {}  # passes that reached inputs made for them, by number
        self._spots: dict[int, Spot | None] = {}
        self._mixed: Counter[tuple[Spot, int]] = Counter()

    def passed(self, event: Pass) -> None:
        """Take note of a pass that has ended."""
        self._spots[event.number] = event.spot
        inputs = [slot for slot in event.received if slot.owner is None and not slot.is_parameter]
        if event.spot is not None and inputs and all(slot.received == 1 for slot in inputs):
            self._wanted[event.number] = event.spot
        for known in (self._spots, self._wanted):
            while len(known) > _MOST:
                del known[next(iter(known))]

    def stepped(self, event: Step) -> None:
        """Count a step along the gradients of such a pass and of one that another function ran."""
        numbers = {number for slot in event.fresh for number in slot.content}
        for spot in {self._wanted[number] for number in numbers & self._wanted.keys()}:
            others = [self._spots.get(number) for number in numbers - self._wanted.keys()]
            if _is_helper(spot) and any(it is not None and _apart(it, spot) for it in others):
                self._mixed[spot, event.trainer.key] += 1

    def left(self, steps: Mapping[int, int]) -> Iterator[Left]:
        """Yield what was left for optimizers, given how many steps each of them made."""
        for (spot, trainer), times in self._mixed.items():
            if times >= max(_TIMES, _SHARE * steps.get(trainer, 0)):
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
