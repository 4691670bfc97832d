"""`view` and `reshape` where axes were meant to change places: the numbers keep their order, and get other meanings."""

from __future__ import annotations

import ast
import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import ClassVar

import torch

from course_utils.audit.check import Check, Found
from course_utils.audit.checks.flat_pairs import FlatPairs
from course_utils.audit.events import Op, Pass, node_behind, number_of
from course_utils.audit.lines import Spot
from course_utils.audit.source import assigned, function_around, statement

_RESHAPES = frozenset({"view", "reshape", "view_as", "reshape_as"})
_LOSSES = frozenset({"cross_entropy", "nll_loss"})
_TIMES = 2
_MOST = 300


@dataclass
class _Moved:
    """One line that gives an axis another place by reshaping."""

    before: tuple[int, ...]
    after: tuple[int, ...]
    numbers: set[int] = field(default_factory=set)
    passes: int = 0
    given: int = 0  # times that it was done to what a model is given
    proved: bool = False

    @property
    def image(self) -> bool:
        """Whether the colours of an image were to come first: once is enough."""
        return _is_image(self.before, self.after)


class Reshaping(Check):
    """Reshapes after which an axis of the same size stands where other numbers come together."""

    codes: ClassVar = ("view-not-transpose",)
    functions: ClassVar = _RESHAPES | _LOSSES | FlatPairs.functions

    def __init__(self, *args: object) -> None:
        super().__init__(*args)  # type: ignore[arg-type]
        self._lines: dict[Spot, _Moved] = {}
        self._still: set[tuple[tuple[int, ...], tuple[int, ...]]] = set()  # shapes between which no axis moves
        self._classes: dict[int, tuple[Spot, tuple[int, ...]]] = {}  # by a view's node: of what shape it was
        self._flattened = FlatPairs()
        self._plain: set[tuple[int, tuple[int, ...], tuple[int, ...]]] = set()  # reshapes of what has no graph

    def function(self, event: Op) -> None:
        self._flattened.function(event)
        if event.name in _LOSSES:
            self._compare(event)
        if event.name not in _RESHAPES:
            return
        given, out = event.args[0], event.out
        if not isinstance(given, torch.Tensor) or not isinstance(out, torch.Tensor) or given.dim() < 3:
            return
        before, after = tuple(given.shape), tuple(out.shape)
        if (before, after) in self._still:
            return
        moved = _moved(before, after)
        if not moved and len(self._still) < _MOST:
            self._still.add((before, after))
        spot = event.spot if moved else None
        if spot is None:
            return
        scope = function_around(spot)
        # What a model is given has no graph yet. A target is not reshaped in a forward.
        image = _is_image(before, after)
        if not out.requires_grad and getattr(scope, "name", "") != "forward" and not image:
            self._plain.add((id(scope), before, after))
            return
        if event.ended > event.began:
            if len(self._classes) > _MOST:
                self._classes.clear()
            self._classes[event.ended - 1] = spot, before
        if spot not in self._lines:
            if not image and not _is_meant(spot, moved, before, after, event.name):
                return
            self._lines[spot] = _Moved(before, after)
        self._lines[spot].numbers.update(range(event.began, event.ended))
        self._lines[spot].given += not out.requires_grad and torch.is_grad_enabled()

    def _compare(self, event: Op) -> None:
        """Take note of scores whose class axis was made by a reshape: the target says what shape they came in."""
        scores, target = event.argument(0, "input"), event.argument(1, "target")
        node = node_behind(scores) if isinstance(scores, torch.Tensor) else None
        spot, before = self._classes.get(number_of(node), (None, ())) if node is not None else (None, ())
        if spot is None or not isinstance(target, torch.Tensor) or target.is_floating_point():
            return
        if before[:-1] == tuple(target.shape) and before != tuple(scores.shape) and scores.dim() == len(before):
            moved = self._lines.setdefault(spot, _Moved(before, tuple(scores.shape)))
            moved.proved = True
            moved.numbers.add(number_of(node))

    def pass_begins(self, event: Pass) -> None:
        if self._lines and event.accumulate:
            for moved in self._lines.values():
                if moved.numbers:
                    moved.passes += bool(moved.numbers & event.graph.numbers)
                    moved.numbers.clear()

    def found(self) -> Iterator[Found]:
        for pair, times in self._flattened.crossed.items():
            if times >= _TIMES:
                yield self.say(
                    "view-not-transpose",
                    pair.spot,
                    f"scores of {pair.scores} and targets of {pair.target} are compared when both are flat: the "
                    "first two axes stand the other way round",
                    "Both come in the order of their memory, one step by step, the other sample by sample. Each score "
                    "is compared with the target of another place, and the shapes agree all the same.",
                    "loss_fn(scores.transpose(0, 1).reshape(-1, scores.shape[-1]), target.reshape(-1))",
                    level="error",
                    times=times,
                )
        for pair, times in self._flattened.classes.items():
            if times >= _TIMES:
                yield self.say(
                    "view-not-transpose",
                    pair.spot,
                    f"scores of {pair.scores} are flattened to rows of {pair.scores[1]}: the classes stand second, and "
                    "a row takes scores of several places",
                    f"The target of {pair.target} goes place by place. view and reshape keep the order of the memory, "
                    "in which one class comes after the other: each label is compared with scores of other places.",
                    "loss_fn(scores, target)  # classes second, as they are; or scores.movedim(1, -1) before the view",
                    level="error",
                    times=times,
                )
        for spot, moved in self._lines.items():
            # Where a target is reshaped in the same way, both are compared entry by entry, and the order is no matter.
            alike = (id(function_around(spot)), moved.before, moved.after) in self._plain
            times = max(moved.passes, moved.given)
            if times < (1 if moved.image else _TIMES) or (alike and not moved.proved):
                continue
            order = _order(moved.before, moved.after)
            comes = "are colours of several pixels" if moved.image else "comes from several samples, steps or classes"
            yield self.say(
                "view-not-transpose",
                spot,
                f"the shape {moved.before} is read as {moved.after}: the axes only seem to change places",
                "view and reshape leave the numbers in their order in memory, and cut the row anew. What stands at "
                f"one place afterwards {comes}"
                + (": each label is compared with scores of other positions." if moved.proved else "."),
                f"x.{order}  # in place of the view" if order else "x.transpose(1, 2)  # first, then reshape",
                level="error" if moved.proved else "likely",
                certain=moved.proved,
                times=times,
            )


def _moved(before: tuple[int, ...], after: tuple[int, ...]) -> list[int]:
    """Return which axes of `after` have the size of one axis of `before`, and other axes in front of them."""
    return [
        at
        for at, size in enumerate(after)
        if size > 1
        and before.count(size) == after.count(size) == 1
        and math.prod(before[: before.index(size)]) != math.prod(after[:at])
    ]


def _is_image(before: tuple[int, ...], after: tuple[int, ...]) -> bool:
    """Say whether colours that stand last, as in an image's file, are read as if they stood before rows and columns."""
    *samples, rows, columns, colours = before
    return 1 < colours < 5 <= min(rows, columns) and after == (*samples, colours, rows, columns)


def _is_meant(spot: Spot, moved: list[int], before: tuple[int, ...], after: tuple[int, ...], name: str) -> bool:
    """Say whether the source means the axes of that size, and the sizes do not agree by chance."""
    whole = sorted(size for size in before if size > 1) == sorted(size for size in after if size > 1)
    line = statement(spot)
    for call in ast.walk(line) if line is not None else ():
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute) or call.func.attr != name:
            continue
        if name.endswith("_as"):
            return whole
        given = call.args[0].elts if len(call.args) == 1 and isinstance(call.args[0], ast.Tuple) else call.args
        if len(given) != len(after):
            continue
        texts = [ast.unparse(it) for it in given]
        if _is_packed(spot, {texts[at] for at in moved}):
            return False
        if any(_is_size(given[at], spot) for at in moved):
            return True
        if whole and "-1" not in texts and not any(isinstance(it, ast.BinOp) for it in given):
            return True
    return False


def _is_packed(spot: Spot, sizes: set[str]) -> bool:
    """Say whether the function multiplies one of some sizes with another in a reshape.

    Then axes are put together and taken apart there, as batch and heads, and another may have that size by chance.
    """
    scope = function_around(spot)
    return any(
        isinstance(part, ast.BinOp) and isinstance(part.op, ast.Mult) and sizes & set(map(ast.unparse, ast.walk(part)))
        for call in (ast.walk(scope) if scope is not None else ())
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr in _RESHAPES
        for given in call.args
        for part in ast.walk(given)
    )


def _is_size(given: ast.expr, spot: Spot) -> bool:
    """Say whether an expression asks a tensor for its size, or is a name that was bound to such a size."""
    if isinstance(given, ast.Name):
        made = assigned(spot, given.id)
        line = statement(made) if made is not None else None
        bound = isinstance(line, ast.Assign) and given.id in set(map(ast.unparse, ast.walk(line.targets[0])))
        value = line.value if isinstance(line, ast.Assign) and bound else None
        return value is not None and not isinstance(value, ast.BinOp) and _asks(value)
    return not isinstance(given, ast.BinOp) and _asks(given)


def _asks(value: ast.expr) -> bool:
    if isinstance(value, ast.Tuple):
        return all(map(_asks, value.elts))
    if isinstance(value, ast.Subscript):
        value = value.value
    if isinstance(value, ast.Call):
        return isinstance(value.func, ast.Attribute) and value.func.attr == "size"
    return isinstance(value, ast.Attribute) and value.attr == "shape"


def _order(before: tuple[int, ...], after: tuple[int, ...]) -> str:
    """Return the call that gives the axes these places, where sizes tell them apart, or colours go to the front."""
    if _is_image(before, after):
        return "permute(2, 0, 1)" if len(before) == 3 else "movedim(-1, -3)"
    if sorted(before) != sorted(after) or len(set(before)) < len(before):
        return ""
    places = [before.index(size) for size in after]
    wrong = [at for at, place in enumerate(places) if at != place]
    return f"transpose({wrong[0]}, {wrong[1]})" if len(wrong) == 2 else f"permute{tuple(places)}"
