"""Layers that a forward makes for itself: their weights are fresh in each call, and no step ever moves them."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import ClassVar

import torch

from course_utils.audit.check import Check, Found
from course_utils.audit.events import Pass
from course_utils.audit.followed import Followed
from course_utils.audit.lines import Spot
from course_utils.audit.reading import scopes_of
from course_utils.explain.source import called, walk

_TIMES = 4  # so many passes one after another must have come to parameters that were not there before
_LOOKS = 12  # passes that are looked at: what a forward makes it makes in each
_MOST = 4096
_SMALL = 3  # shapes of these that are told
_PLACES = frozenset({"register_parameter", "register_module", "add_module", "setattr"})
_LEARNS = frozenset(
    name
    for name, kind in vars(torch.nn).items()
    if isinstance(kind, type) and issubclass(kind, torch.nn.Module) and not issubclass(kind, torch.nn.Sequential)
    if any(part in name for part in ("Linear", "Conv", "Embedding", "Norm", "LSTM", "GRU", "RNN", "Attention"))
    or name.startswith("Transformer")
    or name in ("Parameter", "PReLU", "Bilinear")
) | {"Parameter"}


class MadeWithin(Check):
    """How many passes in turn came to parameters that no optimizer holds and that no earlier pass had come to."""

    codes: ClassVar = ("layer-anew",)

    def __init__(self, *args: object) -> None:
        super().__init__(*args)  # type: ignore[arg-type]
        self._known: Followed[int] = Followed(_MOST)  # the pass in which each was met first
        self._shapes: tuple[tuple[int, ...], ...] = ()
        self._times = self._looks = 0

    def pass_begins(self, event: Pass) -> None:
        if not event.accumulate or event.limited or self._looks >= _LOOKS:
            return
        self._looks += 1
        held = self.book.held()
        fresh = []
        for _, leaf in event.graph.leaves:
            if isinstance(leaf, torch.nn.Parameter) and leaf.grad is None and self._known.of(leaf) is None:
                slot = self.book.find(leaf)
                if slot is None or slot.key not in held:
                    fresh.append(leaf)
        shapes = tuple(sorted(tuple(leaf.shape) for leaf in fresh))
        self._times = self._times + 1 if shapes and shapes == self._shapes else int(bool(shapes))
        self._shapes = shapes
        for leaf in fresh:
            self._known.keep(leaf, self._looks)

    def found(self) -> Iterator[Found]:
        if self._times < _TIMES:
            return
        for spot, text in _made_within(scopes_of(self.recorder)):
            shapes = ", ".join(str(shape) for shape in self._shapes[:_SMALL])
            yield self.say(
                "layer-anew",
                spot,
                f"{text} is made anew each time that this line runs: its weights are never those that were trained",
                f"In each of {self._times} passes a gradient went to parameters that had just been made "
                f"({shapes}) and that no optimizer holds. The next call throws them away and begins with other random "
                "numbers.",
                "make the layer once, in __init__ (self.layer = ...), and call it in forward",
                times=self._times,
                names=(text,),
            )


def _made_within(scopes: list[tuple[str, ast.AST]]) -> Iterator[tuple[Spot, str]]:
    """Yield the lines of functions called forward, or of what they name, that make something with weights."""
    for file, scope in scopes:
        if not isinstance(scope, ast.FunctionDef) or scope.name == "__init__" or not _is_forward(scope):
            continue
        # What is put into an attribute stands in the place of what the optimizer was given: that is told as such.
        nodes = list(walk(scope))
        placed = {id(it.value) for it in nodes if isinstance(it, ast.Assign) and not _is_local(it)}
        placed |= {id(part) for it in nodes if called(it) in _PLACES for part in ast.walk(it)}
        for node in nodes:
            if isinstance(node, ast.Call) and called(node) in _LEARNS and id(node) not in placed:
                yield Spot(file, node.lineno), f"{ast.unparse(node.func)}(...)"


def _is_local(line: ast.Assign) -> bool:
    return all(isinstance(target, ast.Name) for target in line.targets)


def _is_forward(function: ast.FunctionDef) -> bool:
    return function.name in ("forward", "__call__") or any(
        isinstance(node, ast.Call) and isinstance(node.func, ast.Call) and called(node.func) in _LEARNS
        for node in walk(function)
    )
