"""Averages of a model that follow it at once: their own part in each step is small."""

from __future__ import annotations

import weakref
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import torch

from course_utils.audit.book import sampled
from course_utils.audit.check import Check, Found
from course_utils.audit.events import Op
from course_utils.audit.lines import Spot, here

_SCALES = frozenset({"mul", "__mul__", "__rmul__", "mul_", "__imul__"})
_ADDS = frozenset({"add", "__add__", "__radd__", "add_", "__iadd__"})
_LERPS = frozenset({"lerp", "lerp_"})
_MANY = frozenset({"_foreach_lerp_", "_foreach_mul_", "_foreach_add_"})
_MOST = 512
_NEWEST = 0.9  # what the newest value counts for in an average that is none
_UPDATES = 4


@dataclass
class _Part:
    """A share of a tensor: by what it was multiplied, and whose memory that is."""

    ref: weakref.ref[torch.Tensor]
    source: weakref.ref[torch.Tensor]
    memory: int
    factor: float


@dataclass
class _Line:
    """A line that averages parameters, and the share of the newest value in each step."""

    shares: dict[int, float] = field(default_factory=dict)  # by step
    own: float = 1.0
    step: int = -1
    last: torch.Tensor | None = None  # what it gave first in the last step, where that is a new tensor


class Following(Check):
    """Exponential averages of parameters, with the share that the newest value has in them."""

    codes: ClassVar = ("average-follows",)
    functions: ClassVar = _SCALES | _ADDS | _LERPS | _MANY

    def __init__(self, *args: object) -> None:
        super().__init__(*args)  # type: ignore[arg-type]
        self._parts: OrderedDict[int, _Part] = OrderedDict()
        self._lines: dict[Spot, _Line] = {}
        self._memory: set[int] = set()  # addresses of what optimizers hold
        self._counted = -1

    def function(self, event: Op) -> None:
        if not self.clock.passes or not event.args:
            return
        if event.name in _MANY:
            self._many(event)
            return
        given = event.args[0]
        if not isinstance(given, torch.Tensor) or _has_graph(event.out):
            return
        if event.name in _SCALES:
            self._scale(given, event.argument(1, "other"), event.out)
        elif event.name in _LERPS:
            self._mix(given, event.argument(1, "end"), event.argument(2, "weight"), event.out)
        else:
            self._add(event, given, event.argument(1, "other"))

    def _many(self, event: Op) -> None:
        """Functions that take lists: the first entries answer for the rest."""
        one, rest = event.args[0], list(event.args[1:])
        first = one[0] if isinstance(one, list | tuple) and one else None
        if not isinstance(first, torch.Tensor):
            return
        given = [it[0] if isinstance(it, list | tuple) and it else it for it in rest]
        if event.name == "_foreach_lerp_" and len(given) >= 2:
            self._mix(first, given[0], given[1], first)
        elif event.name == "_foreach_mul_" and given:
            self._scale(first, given[0], first)
        elif event.name == "_foreach_add_" and given:
            self._sum(first, given[0], float(event.kwargs.get("alpha", 1)), first)

    def _scale(self, tensor: torch.Tensor, factor: Any, out: Any) -> None:
        if isinstance(tensor, int | float):
            tensor, factor = factor, tensor
        number = _number(factor)
        if number is None or not isinstance(out, torch.Tensor) or not 0 < number < 1 or not tensor.is_floating_point():
            return
        self._parts[id(out)] = _Part(weakref.ref(out), weakref.ref(tensor), tensor.data_ptr(), number)
        if len(self._parts) > _MOST:
            self._parts.popitem(last=False)

    def _part(self, tensor: Any) -> _Part | None:
        known = self._parts.get(id(tensor))
        return known if known is not None and known.ref() is tensor else None

    def _add(self, event: Op, one: torch.Tensor, other: Any) -> None:
        if isinstance(other, torch.Tensor):
            alpha = _number(event.kwargs.get("alpha", 1))
            if alpha is not None:
                self._sum(one, other, alpha, event.out)

    def _sum(self, one: torch.Tensor, other: Any, alpha: float, out: Any) -> None:
        mine, part = self._part(one), self._part(other)
        if mine is None or not isinstance(other, torch.Tensor):
            return
        newest = alpha * (part.factor if part is not None else 1.0)
        source = part.memory if part is not None else other.data_ptr()
        if self._is_held(source) and not self._is_held(mine.memory):
            self._note(mine.factor, newest, mine.source(), out, one)
        elif part is not None and self._is_held(mine.memory) and not self._is_held(source):
            self._note(alpha * part.factor, mine.factor, part.source(), out, one)

    def _mix(self, one: torch.Tensor, other: Any, weight: Any, out: Any) -> None:
        number = _number(weight)
        if number is not None and isinstance(other, torch.Tensor) and 0 < number < 1:
            if self._is_held(other.data_ptr()) and not self._is_held(one.data_ptr()):
                self._note(1 - number, number, one, out, one)
            elif self._is_held(one.data_ptr()) and not self._is_held(other.data_ptr()):
                self._note(number, 1 - number, other, out, one)

    def _is_held(self, address: int) -> bool:
        """Say whether an address is that of what an optimizer holds."""
        if self._counted != self.clock.steps and address not in self._memory:
            self._counted = self.clock.steps
            tensors: Sequence[torch.Tensor | None] = [
                slot.tensor for trainer in self.book.trainers.values() for slot in trainer.slots
            ]
            self._memory = {it.data_ptr() for it in tensors if it is not None}
        return address in self._memory

    def _note(self, own: float, newest: float, average: torch.Tensor | None, out: Any, written: torch.Tensor) -> None:
        """Note one update. An average is written in place, or is what the update before gave."""
        spot = here()
        if spot is None or average is None or abs(own + newest - 1) > 1e-3:
            return
        line = self._lines.setdefault(spot, _Line())
        if out is written:
            if average is written:
                line.shares[self.clock.steps], line.own = newest, own
        elif self.clock.steps != line.step:
            before, line.last, line.step = line.last, sampled(out), self.clock.steps
            now = sampled(average)
            if before is not None and before.shape == now.shape and bool(torch.equal(before, now)):
                line.shares[self.clock.steps], line.own = newest, own

    def found(self) -> Iterator[Found]:
        for spot, line in self._lines.items():
            steps = sorted(line.shares)
            often = len(steps) >= _UPDATES and len(steps) >= 0.8 * (steps[-1] - steps[0] + 1)
            if often and min(line.shares.values()) >= _NEWEST - 1e-6:
                yield self.say(
                    "average-follows",
                    spot,
                    f"the average keeps {line.own:.3g} of itself in each step and takes the rest from the live weights",
                    f"After each step {1 - line.own:.3g} of it is the newest value: it averages over one or two steps, "
                    "and is all but the model itself. The decay is to multiply the average, and what is left the "
                    "newest weights.",
                    f"average.mul_({1 - line.own:.3g}).add_(weight, alpha={line.own:.3g})  "
                    f"# or average.lerp_(weight, {line.own:.3g})",
                    certain=False,
                    times=len(steps),
                )


def _number(thing: Any) -> float | None:
    if isinstance(thing, torch.Tensor) and thing.numel() == 1 and not thing.requires_grad:
        return float(thing.item())
    return float(thing) if isinstance(thing, int | float) and not isinstance(thing, bool) else None


def _has_graph(thing: Any) -> bool:
    return isinstance(thing, torch.Tensor) and thing.grad_fn is not None
