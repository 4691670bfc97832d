"""Groups that were given rates of their own, and a schedule that writes one rate into all of them."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

import torch
from torch.optim import lr_scheduler

from course_utils.audit.book import Book
from course_utils.audit.events import Step
from course_utils.audit.lines import Spot
from course_utils.audit.mentions import is_rate
from course_utils.audit.source import nearest, tree_of
from course_utils.explain.source import names_of

_CYCLES = (lr_scheduler.OneCycleLR, lr_scheduler.CyclicLR)  # they write the bounds that they are given into each group


class Levels:
    """The steps of an optimizer whose groups began with different rates and have one in common since."""

    def __init__(self, first: list[Any]) -> None:
        self.first = first
        self.times = 0
        self._rates: set[float] = set()
        self.by: Spot | None = None  # the line that made a cycle

    def note(self, event: Step, optimizer: torch.optim.Optimizer) -> None:
        rates = [group["lr"] for group in optimizer.param_groups]
        if len(rates) == len(self.first) and len(set(map(float, rates))) == 1:
            self.times += 1
            self._rates.add(float(rates[0]))

    def scheduled(self, book: Book, scheduler: Any) -> None:
        if isinstance(scheduler, _CYCLES):
            self.by = self.by or book.made.get(scheduler)

    def line(self, step: Spot | None) -> Spot | None:
        """Return what writes one rate into all groups, and not always the same: a line of a schedule."""
        if len(self._rates) < 2 or step is None:
            return None
        return self.by or nearest(sorted(_written_for_all(step.file)), step)


def _written_for_all(file: str) -> Iterator[Spot]:
    """Yield the lines that write a group's rate, in a loop over the groups, from nothing that is the group's own."""
    tree = tree_of(file)
    for loop in ast.walk(tree) if tree else ():
        if not isinstance(loop, ast.For) or "param_groups" not in ast.unparse(loop.iter):
            continue
        own = {it.id for it in ast.walk(loop) if isinstance(it, ast.Name) and isinstance(it.ctx, ast.Store)}
        for node in ast.walk(loop):
            if not isinstance(node, ast.Assign) or names_of(node.value) & own:
                continue
            for target in node.targets:
                if is_rate(target) and names_of(target) & own:
                    yield Spot(file, target.lineno)
