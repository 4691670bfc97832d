"""A forecast whose target is one of the values that the model is given."""

from __future__ import annotations

import weakref
from collections import Counter
from collections.abc import Iterator
from typing import Any, ClassVar

import torch

from course_utils.audit.check import Check, Found
from course_utils.audit.events import Call, Op
from course_utils.audit.lines import Spot
from course_utils.audit.reading import scopes_of
from course_utils.audit.spans import inside

_ROWS, _WIDE = 8, 4096
_TIMES, _LOOKS = 2, 8
_EXACT = 1e-5  # what a correlation may lack of 1


class Forecasting(Check):
    """Whether the target of a loss is a column of what the model was given, and a window's own last values."""

    codes: ClassVar = ("target-in-window",)
    functions: ClassVar = frozenset({"mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss"})

    def __init__(self, *args: object) -> None:
        super().__init__(*args)  # type: ignore[arg-type]
        self._given: weakref.ref[torch.Tensor] | None = None
        self._looked: Counter[Spot] = Counter()
        self._seen: Counter[Spot] = Counter()

    def called(self, event: Call) -> None:
        given = event.given
        if not event.grad or given is None or given.requires_grad:
            return
        if given.dim() in (2, 3) and given.is_floating_point():
            self._given = weakref.ref(given)

    def function(self, event: Op) -> None:
        given = self._given() if self._given is not None else None
        scores, target = event.argument(0, "input"), event.argument(1, "target")
        if given is None or not isinstance(target, torch.Tensor) or event.spot is None:
            return
        if not getattr(scores, "requires_grad", False) or target.requires_grad or self._looked[event.spot] >= _LOOKS:
            return
        if target.dim() == 0 or len(target) != len(given) or len(given) < _ROWS or target.numel() % len(target):
            return
        self._looked[event.spot] += 1
        columns = given.detach().reshape(len(given), -1)[:, -_WIDE:]
        wanted = target.detach().reshape(len(target), -1)
        if wanted.shape[1] < columns.shape[1] and _holds(columns.double(), wanted.double()):
            self._seen[event.spot] += 1

    def found(self) -> Iterator[Found]:
        often = [spot for spot, times in self._seen.items() if times >= min(_TIMES, self._looked[spot])]
        told: set[Any] = set()
        for spot, target, window in inside(scopes_of(self.recorder)) if often and self.clock.steps else ():
            if spot not in told:
                told.add(spot)
                yield self.say(
                    "target-in-window",
                    spot,
                    f"the target {target} lies within the window {window}: the model is given what it is to tell",
                    "A window [i : i + w] ends with the value at i + w - 1. The next one is at i + w. In training, "
                    "each target was found among the inputs of its row: the model learns to copy it.",
                    "x, y = series[i : i + w], series[i + w]  # the value after the window",
                    certain=False,
                    times=max(self._seen.values()),
                )


def _holds(columns: torch.Tensor, wanted: torch.Tensor) -> bool:
    """Say whether each wanted column is one of the given ones, perhaps on another scale."""
    columns, wanted = columns - columns.mean(0), wanted - wanted.mean(0)
    sizes, own = columns.norm(dim=0), wanted.norm(dim=0)
    if not bool((own > 0).all()):
        return False
    like = wanted.T @ columns / (own[:, None] * sizes.clamp_min(1e-12))
    return bool((like.max(dim=1).values > 1 - _EXACT).all())
