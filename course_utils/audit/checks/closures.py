"""Closures that compute another loss each time: an optimizer that searches along a line compares what cannot be."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import ClassVar

import torch

from course_utils.audit.book import sampled
from course_utils.audit.check import Check, Found
from course_utils.audit.events import Call, Step
from course_utils.audit.lines import Spot
from course_utils.audit.source import function_around
from course_utils.explain.source import called

_STEPS, _TIMES = 4, 2  # steps with a closure that are looked at, and those in which it must have drawn
_DRAWING = frozenset(
    {
        *("randint", "randperm", "rand", "randn", "rand_like", "randn_like", "normal", "multinomial", "next"),
        *("sample", "choice", "choices", "permutation", "uniform", "uniform_", "normal_", "random_"),
    }
)


class Closures(Check):
    """What a model is given in each evaluation of one step's closure."""

    codes: ClassVar = ("closure-draws",)

    def __init__(self, *args: object) -> None:
        super().__init__(*args)  # type: ignore[arg-type]
        self._steps = 0
        self._inside = False
        self._given: list[torch.Tensor] = []  # in the evaluation that runs
        self._first: torch.Tensor | None = None  # in the first evaluation of the step
        self._spots: tuple[Spot, ...] = ()
        self._differ: dict[int, Spot] = {}  # by step

    def step_begins(self, event: Step) -> None:
        self._inside = event.closure and self._steps < _STEPS
        self._steps += event.closure
        self._given, self._first = [], None

    def called(self, event: Call) -> None:
        # What has a graph was computed of the parameters, which a search along a line moves: a loss is given scores.
        if self._inside and event.grad and event.given is not None and event.given.grad_fn is None:
            self._given.append(sampled(event.given))
            self._spots = event.spots

    def evaluated(self, event: Step) -> None:
        given, self._given = self._given, []
        if not self._inside or len(given) != 1:  # a sum over several batches may take them in any order
            return
        if self._first is None:
            self._first = given[0]
        elif given[0].shape != self._first.shape or not torch.equal(given[0], self._first):
            self._differ.setdefault(self._steps, _drawn(self._spots))

    def step_ended(self, event: Step) -> None:
        self._inside = False

    def found(self) -> Iterator[Found]:
        if len(self._differ) < _TIMES:
            return
        yield self.say(
            "closure-draws",
            next(iter(self._differ.values())),
            "the closure gives the model other data each time that the optimizer calls it in one step",
            "An optimizer with a closure calls it several times for one step, and compares the losses and gradients "
            "that come back. From other data comes another function: what it learns of the curvature is noise.",
            "batch = ...  # drawn before optimizer.step(closure)",
            certain=False,
            times=len(self._differ),
        )


def _drawn(spots: tuple[Spot, ...]) -> Spot:
    """Return the line that draws, in the functions that led to a call; else the outermost line."""
    for spot in spots:
        scope = function_around(spot)
        for part in ast.walk(scope) if scope is not None else ():
            if isinstance(part, ast.Call) and called(part) in _DRAWING and part.lineno <= spot.line:
                return Spot(spot.file, part.lineno)
    return spots[-1]
