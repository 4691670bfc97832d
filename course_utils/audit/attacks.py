"""Passes that are run for the gradient of an input, and leave gradients in the weights beside it."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from course_utils.audit.events import Pass
from course_utils.audit.expressions import assigned_value
from course_utils.audit.lines import Spot
from course_utils.audit.source import function_around, statement
from course_utils.explain.source import called, names_of

_TIMES = 3
_SHARE = 0.8  # of an optimizer's steps
_PARTS = re.compile(r"clean|nat(ural)?_|orig|benign|standard|std|total", re.I)
_ATTACKS = re.compile(r"adv|attack|pert|pgd|fgsm|probe|salien|inner|score|objective", re.I)
_MEANS = re.compile(r"adv|attack|pert|pgd|fgsm|probe|salien|^delta|^eta$|^(x|img|inp)_?a$", re.I)
_HELD = re.compile(r"(^|_)(val|valid|validation|held|heldout|holdout|dev|test|probe|eval|monitor)(_|$)", re.I)


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
    """Which steps use gradients of passes that were run for something else than the training."""

    def __init__(self) -> None:
        self._mixed: Counter[tuple[Spot, int]] = Counter()
        self._beside: Counter[tuple[Spot, Spot, int]] = Counter()  # within one function, with the training's own pass
        self._judging: Counter[tuple[Spot, Spot, int]] = Counter()  # two passes, and none of them for an input

    def stepped(self, trainer: int, wanted: Sequence[Spot | None], others: Sequence[Spot | None]) -> None:
        """Count a step of an optimizer along gradients of passes for an input, and of ones that were not for one.

        Given are the lines of both kinds of passes, in their order.
        """
        own = others[-1] if others else None
        for spot in set(wanted):
            if spot is not None and any(it is not None and _apart(it, spot) for it in others):
                self._mixed[spot, trainer] += 1
            elif spot is not None and own is not None and spot != own:
                self._beside[spot, own, trainer] += 1
        if not wanted and len(others) == 2 and others[0] != own and others[0] is not None and own is not None:
            self._judging[others[0], own, trainer] += 1

    def left(self, steps: Mapping[int, int]) -> Iterator[Left]:
        """Yield what passes for an input left for optimizers, given how many steps each of them made."""
        for (spot, trainer), times in self._mixed.items():
            if times >= max(_TIMES, _SHARE * steps.get(trainer, 0)) and _is_helper(spot):
                yield Left(spot, trainer, times)
        for (spot, own, trainer), times in self._beside.items():
            if times >= max(_TIMES, _SHARE * steps.get(trainer, 0)) and _is_for_grad(spot, own):
                yield Left(spot, trainer, times)

    def judged(self, steps: Mapping[int, int]) -> Iterator[Left]:
        """Yield the passes over rows that are held out whose gradients a step uses beside those of the training."""
        for (spot, own, trainer), times in self._judging.items():
            if times >= max(_TIMES, _SHARE * steps.get(trainer, 0)) and _is_held_out(spot, own):
                yield Left(spot, trainer, times)


def _apart(one: Spot, other: Spot) -> bool:
    return function_around(one) is not function_around(other)


def _is_for_grad(spot: Spot, own: Spot) -> bool:
    """Say whether only the input's gradient is wanted of a pass: `.grad` is read, and its loss is not shown or kept.

    A loss that has a name of its own may be meant to be a part of the training, as that of the inputs as they are.
    """
    scope, name = function_around(spot), _loss_of(spot)
    made = assigned_value(spot, name) if name else statement(spot)
    inputs = _grads_read(scope) & names_of(made) if scope is not None else set()
    if scope is None or _PARTS.search(name) or not any(_is_means(scope, it) for it in inputs):
        return False
    if name and not _ATTACKS.search(name):
        bound = sorted(it.lineno for it in _named(scope, name, ast.Store))
        last = max((it for it in bound if it <= spot.line), default=0)
        after = min((it for it in bound if it > spot.line), default=0)
        read = [it for it in _named(scope, name, ast.Load) if last < it.lineno and (not after or it.lineno < after)]
        return name == _loss_of(own) and len(read) == 1 and last > 0
    return True


def _is_means(scope: ast.AST, name: str) -> bool:
    """Say whether an input is only there for its gradient: its name tells so, or stands for the moved input then."""
    return _MEANS.search(name) is not None or any(
        isinstance(it, ast.Assign) and name in map(ast.unparse, it.targets) and f"{name}.grad" in ast.unparse(it.value)
        for it in ast.walk(scope)
    )


def _grads_read(scope: ast.AST) -> set[str]:
    """Return the names of which `.grad` is read."""
    slopes = [it for it in ast.walk(scope) if isinstance(it, ast.Attribute) and it.attr == "grad"]
    return {it.value.id for it in slopes if isinstance(it.value, ast.Name) and isinstance(it.ctx, ast.Load)}


def _named(scope: ast.AST, name: str, kind: type[ast.expr_context]) -> list[ast.Name]:
    return [it for it in ast.walk(scope) if isinstance(it, ast.Name) and it.id == name and isinstance(it.ctx, kind)]


def _loss_of(spot: Spot) -> str:
    """Return the name of what a line runs a pass of: "" where it has none, or the line does something else."""
    line = statement(spot)
    call = line.value if isinstance(line, ast.Expr) else None
    owner = call.func.value if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) else None
    return owner.id if isinstance(owner, ast.Name) and called(call) == "backward" else ""


def _is_held_out(spot: Spot, own: Spot) -> bool:
    """Say whether names tell that one loss is of rows that are held out, and the other is not; `.grad` is read."""
    scope = function_around(spot)
    text = ast.unparse(scope).replace(".zero_grad", "") if scope is not None else ""
    return ".grad" in text and _is_of_held_out(spot) and not _is_of_held_out(own)


def _is_of_held_out(spot: Spot) -> bool:
    name = _loss_of(spot)
    value = assigned_value(spot, name) if name else statement(spot)
    return any(_HELD.search(it) for it in (*names_of(value), name))


def _is_helper(spot: Spot) -> bool:
    """Say whether a function runs a pass for the gradient of an input, and makes no step and clears nothing."""
    scope = function_around(spot)
    if not isinstance(scope, ast.FunctionDef):
        return False
    text = ast.unparse(scope)
    return ".grad" in text.replace(".zero_grad", "") and ".step(" not in text and "zero_grad" not in text
