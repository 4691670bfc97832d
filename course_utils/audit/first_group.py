"""Schedules by hand that write the rate of an optimizer's first group, where there are more."""

from __future__ import annotations

import ast

import torch

from course_utils.audit.lines import Spot
from course_utils.audit.mentions import is_rate
from course_utils.audit.source import nearest, tree_of

_RATES = 4  # as many rates of the first group, one after the other, are a schedule


class FirstGroup:
    """The rates with which an optimizer of several groups makes its steps."""

    def __init__(self) -> None:
        self.rates: list[float] = []  # of the first group, each where it changed
        self.others: set[float] = set()  # of all other groups
        self.steps = 0

    def note(self, optimizer: torch.optim.Optimizer) -> None:
        if len(self.others) > 1 or any("initial_lr" in group for group in optimizer.param_groups):
            return  # another group's rate changed, or will: a schedule of PyTorch's has all groups
        first, *others = (float(group.get("lr") or 0.0) for group in optimizer.param_groups)
        self.steps += 1
        self.others.update(others)
        if not self.rates or (self.rates[-1] != first and len(self.rates) < _RATES):
            self.rates.append(first)

    def line(self, made: Spot | None) -> Spot | None:
        """Return the line that writes the first group's rate, where nothing ever changed that of another group.

        Of several such lines it is one in the function that makes the optimizer, if any is.
        """
        still = len(self.others) == 1 and 0.0 not in self.others
        if made is None or not still or len(self.rates) < _RATES:
            return None
        return nearest(_writes_first(made.file), made)


def _writes_first(file: str) -> list[Spot]:
    """Return the lines of a file that write a rate by the number 0; none if another line writes one otherwise."""
    tree = tree_of(file)
    assigned = [it for it in (ast.walk(tree) if tree else ()) if isinstance(it, ast.Assign | ast.AugAssign)]
    targets = [to for it in assigned for to in (it.targets if isinstance(it, ast.Assign) else [it.target])]
    rates = [it for it in targets if is_rate(it)]
    first = [it for it in rates if _is_first(it)]
    return sorted(Spot(file, it.lineno) for it in first) if len(first) == len(rates) else []


def _is_first(target: ast.expr) -> bool:
    """Say whether what is written is `...param_groups[0]["lr"]`."""
    group = target.value if isinstance(target, ast.Subscript) else None
    return (
        isinstance(group, ast.Subscript)
        and isinstance(group.slice, ast.Constant)
        and group.slice.value == 0
        and ast.unparse(group.value).endswith("param_groups")
    )
