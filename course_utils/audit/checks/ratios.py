"""A ratio of new and old probabilities that is 1 in every step."""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import torch

from course_utils.audit.check import Check, Found
from course_utils.audit.events import Op, before, through_views
from course_utils.audit.lines import Spot, between, here
from course_utils.graph.trace import LiveNode, node_name

# What brings new data: with it a ratio of 1 is right, as nothing was learned from the data yet.
_DRAWING = frozenset(
    {
        *("multinomial", "normal", "bernoulli", "rand", "randn", "rand_like", "randn_like", "randint", "exponential_"),
        *("tensor", "as_tensor", "from_numpy", "stack", "numpy", "tolist"),
    }
)
_QUOTIENTS = frozenset({"exp", "div", "true_divide"})
_LIMITS = frozenset({"clamp", "clip"})
_TIMES = 3
_MOST = 50
_DEEP = 4  # functions between a difference and its exponential


@dataclass
class _Ratio:
    """One line that gives nothing but ones."""

    draws: int = -1
    step: int = -1
    again: int = 0  # times that it did after a step, and without new data
    limited: bool = False
    last: weakref.ref[torch.Tensor] | None = None


class Ratios(Check):
    """Lines that compute a ratio and limit it, and whether it ever differs from 1."""

    codes: ClassVar = ("ratio-one",)
    functions: ClassVar = _DRAWING | _QUOTIENTS | _LIMITS

    def __init__(self, *args: object) -> None:
        super().__init__(*args)  # type: ignore[arg-type]
        self._draws = 0
        # By the line and the function: what PyTorch's own code divides for it is not its ratio.
        self._lines: dict[tuple[Spot, str], _Ratio] = {}
        self._other: set[tuple[Spot, str]] = set()

    def function(self, event: Op) -> None:
        if event.name in _DRAWING:
            self._draws += not _is_clipping()
        elif event.name in _LIMITS:
            for ratio in self._lines.values():
                ratio.limited |= ratio.last is not None and bool(event.args) and ratio.last() is event.args[0]
        elif not isinstance(event.out, torch.Tensor) or not event.out.requires_grad or event.out.numel() < 2:
            return
        elif event.name != "exp" or _is_difference(before(event.out.grad_fn)):
            self._divided(event.out, event.name)

    def _divided(self, out: torch.Tensor, function: str) -> None:
        spot = here()
        if spot is None or (line := (spot, function)) in self._other:
            return
        if len(self._lines) > _MOST or not bool((out.detach() == 1).all()):
            self._other.add(line)
            self._lines.pop(line, None)
            return
        ratio = self._lines.setdefault(line, _Ratio())
        ratio.again += ratio.draws == self._draws and ratio.step != self.clock.steps
        ratio.draws, ratio.step, ratio.last = self._draws, self.clock.steps, weakref.ref(out)

    def found(self) -> Iterator[Found]:
        for (spot, _), ratio in self._lines.items():
            if ratio.limited and ratio.again >= _TIMES:
                yield self.say(
                    "ratio-one",
                    spot,
                    "the ratio is exactly 1 each time, also after steps on the same data: its limits never act",
                    "Both sides come from the parameters as they are now. What the data was drawn with must stand "
                    "still while several steps are made: else nothing says how far the policy has moved from it.",
                    "with torch.no_grad(): old = log_prob(...)  # once after drawing, before the loop of steps; then "
                    "(new - old).exp()",
                    certain=False,
                    times=ratio.again,
                )


def _is_difference(node: LiveNode | None) -> bool:
    """Say whether a value is a difference, or one that was masked, summed or averaged."""
    for _ in range(_DEEP):
        node = through_views(node)
        if node is None or not node_name(node).startswith(("Sum", "Mean", "Mul", "Div", "Clamp")):
            break
        node = before(node)
    return node is not None and node_name(node).startswith(("Sub", "Rsub"))


def _is_clipping() -> bool:
    """Say whether gradients are being clipped, which stacks their norms."""
    return any(frame.f_code.co_filename.endswith("clip_grad.py") for frame in between())
