"""Custom Functions whose backward is not the derivative of their forward, as far as the numbers of a pass tell."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any, ClassVar

import torch
from torch.utils.hooks import RemovableHandle

from course_utils.audit.check import Check, Found
from course_utils.audit.classes import backward_of
from course_utils.audit.events import Op, Pass, number_of
from course_utils.audit.lines import Spot, frames, names_in
from course_utils.audit.source import statement
from course_utils.explain.source import names_of
from course_utils.graph.alive import tensors_in

_NUMBERS, _POINTS, _FEWEST = 4096, 200, 64
_LOOKS, _TIMES, _OPEN = 6, 2, 50
_KINKS, _BENDS = 4, 0.05  # of the largest slope: what bends less, its kinks left out, is made of straight pieces
_ROUGH = 0.3  # changes of the change, against the change: noise and jumps have more
_OFF = 0.1  # of the whole change


class Formulas(Check):
    """A function of each number by itself: what its values change by is its slope times the way, all along.

    Forward and backward of one pass give the values and the slopes at thousands of places, so nothing runs again.
    What jumps, or is made of straight pieces, often has another slope on purpose: of that something is said only where
    backward takes what forward saved for it, and leaves it unread.
    """

    codes: ClassVar = ("derivative-differs",)
    functions: ClassVar = frozenset({"*"})

    def __init__(self, *args: object) -> None:
        super().__init__(*args)  # type: ignore[arg-type]
        self._given: tuple[Any, torch.Tensor] | None = None  # the code of a forward, and its input's numbers
        self._made: dict[int, tuple[torch.Tensor, torch.Tensor]] = {}  # by its node: numbers that go in, and come out
        self._looks: Counter[Any] = Counter()  # by the code of a forward
        self._off: Counter[Any] = Counter()
        self._handles: list[RemovableHandle] = []

    def function(self, event: Op) -> None:
        if not torch.is_grad_enabled():
            given = next(tensors_in(event.args), None)
            if given is not None:
                self._enters(given, event.name.endswith("_") and not event.name.endswith("__"))
            return
        for given in tensors_in(event.args) if self._given is not None else ():
            kind = getattr(given.grad_fn, "_forward_cls", None)
            if kind is not None:
                self._leaves(kind, given)

    def _enters(self, given: torch.Tensor, written: bool) -> None:
        """Take down what a forward computes with first, if it is the forward of a Function.

        Where it begins with a write in place, what it was given is gone: then nothing is known.
        """
        frame = next(frames(), None) if given.requires_grad else None
        if frame is None or frame.f_code.co_name != "forward" or self._looks[frame.f_code] >= _LOOKS:
            return
        if self._given is None or self._given[0] is not frame.f_code:
            values, code = names_in(frame), frame.f_code
            given_to = tensors_in(tuple(values.get(name) for name in code.co_varnames[: code.co_argcount]))
            x = next((it for it in given_to if it.requires_grad), None)
            if x is not None and x.numel() >= _FEWEST:
                self._given = code, _numbers(x[:0] if written else x)

    def _leaves(self, kind: Any, given: torch.Tensor) -> None:
        if self._given is None or self._given[0] is not _code(kind):
            return
        numbers, self._given = self._given[1], None
        inputs = [to for to, _ in given.grad_fn.next_functions if to is not None] if given.grad_fn else []
        if len(inputs) == 1 and given.numel() >= _FEWEST and numbers.numel() == min(given.numel(), _NUMBERS):
            if len(self._made) > _OPEN:
                self._made.clear()
            self._made[number_of(given.grad_fn)] = numbers, _numbers(given)

    def pass_begins(self, event: Pass) -> None:
        made, self._made, self._given = self._made, {}, None
        for node in event.graph.inner if made else ():
            kind = getattr(node, "_forward_cls", None)
            if kind is not None and number_of(node) in made:
                self._looks[_code(kind)] += 1
                self._handles.append(node.register_hook(self._comparing(kind, *made[number_of(node)])))

    def _comparing(self, kind: Any, x: torch.Tensor, y: torch.Tensor) -> Callable[[Any, Any], None]:
        def compare(out: Any, incoming: Any) -> None:
            came = incoming[0] if len(incoming) == 1 else None
            gave = next((it for it in out if it is not None), None)
            if came is not None and gave is not None and gave.numel() == came.numel():
                self._off[kind] += _differs(x, y, _numbers(gave), _numbers(came), _forgets_saved(kind))

        return compare

    def pass_ended(self, event: Pass) -> None:
        for handle in self._handles:
            handle.remove()
        self._handles = []

    def found(self) -> Iterator[Found]:
        for kind, times in self._off.items():
            if times >= _TIMES:
                yield self.say(
                    "derivative-differs",
                    _returned(kind),
                    f"{kind.__name__}.backward is not the derivative of {kind.__name__}.forward",
                    "From one input to the next larger one the output changes by another amount than the slope that "
                    "backward gives. Nothing compares the two: what lies behind the Function is trained with a "
                    "gradient of something else.",
                    f"torch.autograd.gradcheck({kind.__name__}.apply, (x.double().requires_grad_(), ...))",
                    certain=False,
                    times=times,
                )


def _code(kind: Any) -> Any:
    return getattr(kind.forward, "__code__", None)


def _numbers(of: torch.Tensor) -> torch.Tensor:
    return of.detach().flatten()[:_NUMBERS].double().cpu().clone()


def _differs(x: torch.Tensor, y: torch.Tensor, gave: torch.Tensor, came: torch.Tensor, pieces: bool) -> bool:
    """Say whether y bends smoothly, or in straight `pieces`, and its slopes are not what came out for what came in."""
    known = (came != 0) & torch.isfinite(x) & torch.isfinite(y) & torch.isfinite(gave) & torch.isfinite(came)
    if len(known) != len(x) or int(known.sum()) < _FEWEST:
        return False
    x, order = x[known].sort()
    y, slopes = y[known][order], (gave[known] / came[known])[order]
    wide = (x[-1] - x[0]) / _POINTS
    at = torch.unique(((x - x[0]) / wide).floor(), return_inverse=True)[1] if wide > 0 else torch.zeros(0)
    firsts = torch.cat([torch.ones(1, dtype=torch.bool), at[1:] != at[:-1]]) if len(at) else torch.zeros(0).bool()
    x, y, slopes = x[firsts], y[firsts], slopes[firsts]
    if len(x) < _FEWEST // 2:
        return False
    way, change = x.diff(), y.diff()
    whole, real = change.abs().sum(), change / way
    bends = real.diff().abs().sort(descending=True).values
    if not whole or (not pieces and bends[_KINKS:].sum() < _BENDS * real.abs().max()) or _is_rough(real):
        return False
    told = way * (slopes[1:] + slopes[:-1]) / 2
    return bool((change - told).abs().sum() > _OFF * whole)


def _is_rough(slopes: torch.Tensor) -> bool:
    """Say whether slopes jump to and fro, as those of noise and of steps do."""
    return bool(slopes.diff().abs().mean() > _ROUGH * slopes.abs().mean())


@lru_cache(maxsize=64)
def _forgets_saved(kind: Any) -> bool:
    """Say whether a backward binds what was saved for it to names, and reads none of them."""
    place = backward_of(kind)
    scope = statement(place) if place is not None else None
    nodes = list(ast.walk(scope)) if scope is not None else []
    bound = {
        name
        for it in nodes
        if isinstance(it, ast.Assign) and ast.unparse(it.value).endswith(".saved_tensors")
        for target in it.targets
        for name in names_of(target)
    }
    read = {it.id for it in nodes if isinstance(it, ast.Name) and isinstance(it.ctx, ast.Load)}
    return bool(bound) and not bound & read


def _returned(kind: Any) -> Spot | None:
    """Return the last `return` of a Function's backward."""
    place = backward_of(kind)
    scope = statement(place) if place is not None else None
    lines = [node.lineno for node in ast.walk(scope) if isinstance(node, ast.Return)] if scope is not None else []
    return Spot(place.file, max(lines)) if place is not None and lines else place
