"""LambdaLR with a function that returns the rate itself, where a factor of it is asked for."""

from __future__ import annotations

import ast
import weakref
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from torch.optim import lr_scheduler

from course_utils.audit.book import Book
from course_utils.audit.checks.rates import bodies
from course_utils.audit.lines import Spot

_STEPS = 8
_SMALL = 0.1
_RISEN = 0.75  # of the schedule: a warm-up that still rises has its largest factor before it
_LEAST, _MOST = 0.5, 2.0  # the largest factor, as a share of the rate that it multiplies


@dataclass
class Asked:
    """A schedule, and the factors that it gave to its first group."""

    scheduler: weakref.ref[Any]
    base: float
    made: Spot | None
    returned: Spot | None  # the last line of its function that gives a value
    times: int = 0
    largest: float = 0.0
    first_of_largest: int = 0


class Factors:
    """The factors of schedules against the rates: one that is never near 1, and that is like the rate, is the rate."""

    def __init__(self) -> None:
        self._asked: dict[int, Asked] = {}

    def scheduled(self, book: Book, scheduler: Any) -> None:
        if not isinstance(scheduler, lr_scheduler.LambdaLR) or not float(scheduler.base_lrs[0]):
            return
        asked = self._asked.get(id(scheduler))
        if asked is None or asked.scheduler() is not scheduler:
            asked = Asked(
                weakref.ref(scheduler),
                float(scheduler.base_lrs[0]),
                book.made.get(scheduler),
                _returned(scheduler),
            )
            self._asked[id(scheduler)] = asked
        factor = float(scheduler.optimizer.param_groups[0]["lr"]) / asked.base
        asked.times += 1
        if factor > asked.largest * (1 + 1e-6):
            asked.largest, asked.first_of_largest = factor, asked.times

    def that_are_rates(self) -> Iterator[Asked]:
        """Yield the schedules whose largest factor is like their rate, and came well before the end."""
        for asked in self._asked.values():
            rising = asked.first_of_largest > _RISEN * asked.times
            alike = _LEAST * asked.base <= asked.largest <= _MOST * asked.base
            if asked.times >= _STEPS and asked.largest < _SMALL and alike and not rising:
                yield asked


def _returned(scheduler: lr_scheduler.LambdaLR) -> Spot | None:
    """Return the last line that gives the value of a schedule's function."""
    for file, body in bodies(scheduler):
        if isinstance(body, ast.Lambda):
            return Spot(file, body.body.lineno)
        return Spot(file, max((node.lineno for node in ast.walk(body) if isinstance(node, ast.Return)), default=1))
    return None
