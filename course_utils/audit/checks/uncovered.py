"""A loss over all rows, where a mask says which of them are for the training and an evaluation asks the others."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, ClassVar

import torch

from course_utils.audit.check import Check, Found
from course_utils.audit.events import Op
from course_utils.audit.lines import Spot, frames, names_in
from course_utils.audit.mentions import arguments, parts
from course_utils.audit.namings import is_held, is_trained, words_of
from course_utils.audit.outputs import calls_in
from course_utils.audit.reading import Scopes, reached, scopes_of
from course_utils.audit.source import statement
from course_utils.explain.source import called, names_of

_LOSSES = frozenset(
    {
        *("cross_entropy", "nll_loss", "binary_cross_entropy", "binary_cross_entropy_with_logits", "mse_loss"),
        *("l1_loss", "smooth_l1_loss", "huber_loss", "multi_margin_loss", "multilabel_soft_margin_loss"),
    }
)
_TARGETS = re.compile(r"(^|_)(y\w?|labels?|targets?|ratings?|classes|truth)$", re.I)
_LOSS = re.compile(r"loss|crit|cross_entropy|objective|\bce\b|bce|nll|mse", re.I)
_FRAMES, _LOOKS, _TIMES = 3, 6, 3


@dataclass
class _Whole:
    """Losses of one line that took whole targets: under which names, and the masks that were at hand."""

    looks: int = 0
    times: int = 0
    targets: set[str] = field(default_factory=set)
    masks: set[str] = field(default_factory=set)
    partly: bool = False


class Uncovered(Check):
    """Compares the targets of losses with the masks that stand beside them."""

    codes: ClassVar = ("mask-forgotten",)
    functions: ClassVar = _LOSSES

    def __init__(self, *args: object) -> None:
        super().__init__(*args)  # type: ignore[arg-type]
        self._lines: dict[Spot, _Whole] = {}

    def function(self, event: Op) -> None:
        target, out, spot = event.argument(1, "target"), event.out, event.spot
        if (
            spot is None
            or not isinstance(target, torch.Tensor)
            or not isinstance(out, torch.Tensor)
            or not target.dim()
        ):
            return
        seen = self._lines.setdefault(spot, _Whole())
        if seen.looks >= _LOOKS or not out.requires_grad:
            return
        seen.looks += 1
        weight, ignored = event.argument(2, "weight"), event.kwargs.get("ignore_index", -100)
        by_row = isinstance(weight, torch.Tensor) and weight.shape[:1] == target.shape[:1] and event.name[0] != "c"
        if out.numel() != 1 or by_row or bool((target == ignored).any()):
            seen.partly = True  # weighed or left out later, or so marked
            return
        targets, masks = _at_hand(target)
        if targets and masks:
            seen.times += 1
            seen.targets |= targets
            seen.masks |= masks

    def found(self) -> Iterator[Found]:
        scopes = scopes_of(self.recorder) or reached(self._lines) if self.clock.steps and self._lines else []
        for spot, seen in self._lines.items():
            mask = min((it for it in seen.masks if is_trained(it)), default=min(seen.masks, default=""))
            line = statement(spot)
            named = words_of(line) & {it.rpartition(".")[2] for it in seen.masks} if line is not None else set()
            if seen.times < _TIMES or seen.partly or named or _trains_by(seen.masks, scopes):
                continue
            asked = next(_asked(seen.targets, scopes), None)
            if asked is not None:
                yield self.say(
                    "mask-forgotten",
                    spot,
                    f"the loss is over all of {min(seen.targets)}, and {mask} says which of it is for the training",
                    f"Line {asked.line} asks how well the rest is told. The model has been trained on the answers to "
                    "that, so what is measured there says nothing about new data.",
                    f"loss_of(out[{mask}], {min(seen.targets)}[{mask}])",
                    certain=False,
                    times=seen.times,
                    names=[mask],
                )


def _at_hand(target: torch.Tensor) -> tuple[set[str], set[str]]:
    """Return the names of a target in the running frames, and those of the masks of its rows that stand beside it."""
    targets, masks = set(), set()
    places: dict[str, dict[str, torch.Tensor]] = {"train": {}, "held": {}}
    for frame in islice(frames(), _FRAMES):
        for name, value in _tensors(names_in(frame)):
            last = name.rpartition(".")[2]
            if value is target and _TARGETS.search(last):
                targets.add(name)
            part = "train" if is_trained(last) else "held" if is_held(last) else ""
            if part and value.dtype == torch.bool and value.dim() and value.shape == target.shape[: value.dim()]:
                if bool(value.any()) and not bool(value.all()):
                    masks.add(name)
            elif part and value.dtype == torch.int64 and value.dim() == 1 and value.numel():
                places[part][name] = value
    for name, one in places["train"].items():
        for other in places["held"].values():
            both = torch.cat([one, other])
            if len(both) <= len(target) and int(both.max()) < len(target) and len(both.unique()) == len(both):
                masks.add(name)
    return targets, masks


def _tensors(names: dict[str, Any]) -> Iterator[tuple[str, torch.Tensor]]:
    """Yield the tensors among some variables, and those that a variable has as attributes: `data.y`."""
    for name, value in names.items():
        if isinstance(value, torch.Tensor):
            yield name, value
        elif hasattr(value, "__dict__") and not isinstance(value, type | torch.nn.Module) and not callable(value):
            inside = dict(vars(value))
            inside |= getattr(inside.get("_store"), "_mapping", {})  # of PyTorch Geometric's data
            yield from ((f"{name}.{key}", it) for key, it in inside.items() if isinstance(it, torch.Tensor))


def _trains_by(masks: set[str], scopes: Scopes) -> bool:
    """Say whether a loss is given what a mask of the training takes, also on its way there."""
    words = {it.rpartition(".")[2] for it in masks if is_trained(it.rpartition(".")[2])}
    for _, scope in scopes:
        for node in parts(scope):
            if isinstance(node, ast.Call) and _LOSS.search(ast.unparse(node.func)) and words_of(*node.args) & words:
                return True
    return False


def _asked(targets: set[str], scopes: Scopes) -> Iterator[Spot]:
    """Yield the lines that take of the targets what is held out."""
    for file, scope in scopes:
        given, told = _given(scope, scopes), targets | set(_hits(targets, scope))
        for node in parts(scope):
            if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load) and ast.unparse(node.value) in told:
                index = [node.slice, *(it for name in names_of(node.slice) for it in given.get(name, ()))]
                if any(map(_is_held, index)):
                    yield Spot(file, node.lineno)


def _hits(targets: set[str], scope: ast.AST) -> Iterator[str]:
    """Yield the names that a function gives to what it makes of a comparison with targets: hits and misses."""
    for node in parts(scope):
        if isinstance(node, ast.Assign):
            compared = [it for it in ast.walk(node.value) if isinstance(it, ast.Compare)]
            if any(ast.unparse(side) in targets for it in compared for side in (it.left, *it.comparators)):
                yield from map(ast.unparse, node.targets)


def _given(scope: ast.AST, scopes: Scopes) -> dict[str, list[ast.expr]]:
    """Return what the loops of a function go through, and what its callers give, by the names for it there."""
    found: dict[str, list[ast.expr]] = {}
    for node in parts(scope):
        if isinstance(node, ast.For | ast.comprehension):
            for name in names_of(node.target):
                found.setdefault(name, []).append(node.iter)
    if isinstance(scope, ast.FunctionDef):
        for _, caller in scopes:
            for call in calls_in(caller).get(scope.name, ()):
                for name, value in arguments(scope, call):
                    found.setdefault(name, []).append(value)
    return found


def _is_held(index: ast.expr) -> bool:
    """Say whether an index takes what is held out: by a mask of that, or by what is not for the training."""
    inverted = [it for it in ast.walk(index) if isinstance(it, ast.UnaryOp) and isinstance(it.op, ast.Invert)]
    if any(any(map(is_trained, words_of(it))) for it in inverted):
        return True
    inverts = any(called(it) == "logical_not" for it in ast.walk(index))
    return any(map(is_held, words_of(index))) or (inverts and any(map(is_trained, words_of(index))))
