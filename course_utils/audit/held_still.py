"""Optimizers whose settings leave no room to learn: a decay that crushes all weights, a bound that cuts all steps."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field

import torch

from course_utils.audit.book import Slot, Trainer
from course_utils.audit.events import Clip, Pass, Step
from course_utils.audit.lines import Spot

_STEPS = 10
_DECAY = 0.1  # smaller ones do not outweigh the gradients of a loss
_CRUSHED = 0.1  # of the weights' first norm
_CUT = 1e3  # times the bound: every gradient is at least so long
_REACH = 0.01  # of the weights' norm: all steps together move them by less
_NO_BETTER = 0.9  # of the first losses
_FIRST, _LAST = 3, 8
_MOST = 400


@dataclass
class Held:
    """An optimizer's steps beside what its weights were."""

    trainer: Trainer
    norm: float
    decay: float
    steps: int = 0
    rate: float = 0.0
    first: list[float] = field(default_factory=list)
    last: deque[float] = field(default_factory=lambda: deque(maxlen=_LAST))
    cut: int = 0  # clippings to less than a thousandth
    clips: int = 0
    least: float = math.inf  # the smallest of the gradients' norms over the bound
    bound: float = 0.0  # on the length of a step's gradient
    clip: Spot | None = None

    def is_no_better(self) -> bool:
        first, last = sum(self.first) / max(1, len(self.first)), sum(self.last) / max(1, len(self.last))
        return bool(self.first) and len(self.last) == _LAST and last >= _NO_BETTER * first > 0


class HeldStill:
    """The steps of optimizers with a large decay, or behind a small bound, and the losses meanwhile."""

    def __init__(self) -> None:
        self._held: dict[int, Held] = {}
        self._loss = math.nan
        self._clip: tuple[Clip, float, float] | None = None  # with the gradients' norm and the bound on it

    def passing(self, event: Pass) -> None:
        self._loss = math.nan
        self._clip = None
        out = event.outputs[0] if len(event.outputs) == 1 else None
        known = list(self._held.values())
        wanted = not known or any(it.steps < 2 or self._is_doubtful(it) for it in known)
        if wanted and event.accumulate and not event.scaled and isinstance(out, torch.Tensor) and out.numel() == 1:
            self._loss = float(out.detach())

    def _listens(self, event: Clip) -> bool:
        """Say whether the step after a clipping still counts: that of an open optimizer, or of a new one."""
        known = {slot.key for held in self._held.values() for slot in held.trainer.slots}
        return any(map(self._is_open, self._held.values())) or not known >= {slot.key for slot in event.slots}

    def _is_open(self, held: Held) -> bool:
        return held.steps <= 2 or self._is_doubtful(held)

    def _is_doubtful(self, held: Held) -> bool:
        return held.steps < _MOST and (held.decay >= _DECAY or held.cut == held.clips > 0)

    def clipped(self, event: Clip) -> None:
        if event.bounded and math.isfinite(event.bound) and event.slots and self._listens(event):
            slopes = [it.grad for slot in event.slots if (it := slot.tensor) is not None and it.grad is not None]
            plain = [slope.detach().float() for slope in slopes if not slope.is_sparse]
            if plain:
                norm = float(torch.stack([slope.norm() for slope in plain]).norm())
                size = 1.0 if event.by_norm else math.sqrt(sum(slope.numel() for slope in plain))
                self._clip = event, norm, event.bound * size

    def stepping(self, event: Step) -> None:
        optimizer = event.trainer.ref()
        if optimizer is None or event.in_pass or event.closure:
            return
        held = self._held.get(event.trainer.key)
        if held is None:
            decays = [group.get("weight_decay") for group in optimizer.param_groups if group["params"]]
            least = min((float(it) for it in decays if isinstance(it, int | float)), default=0.0)
            held = self._held[event.trainer.key] = Held(event.trainer, norm_of(event.trainer.slots), least)
        if not self._is_open(held):
            return
        held.steps += 1
        if self._clip is not None:
            clip, norm, bound = self._clip
            held.clips += 1
            held.cut += norm >= _CUT * bound
            held.least = min(held.least, norm / bound if bound else math.inf)
            held.clip, held.bound = clip.spot, max(held.bound, bound)
        if not math.isnan(self._loss):
            held.last.append(self._loss)
            held.first += [self._loss] if len(held.first) < _FIRST else []
        kept = max((float(group.get("momentum") or 0.0) for group in optimizer.param_groups), default=0.0)
        rates = [float(group.get("lr") or 0.0) for group in optimizer.param_groups]
        held.rate = max([held.rate, *(rate / max(1e-3, 1 - kept) for rate in rates)])

    def crushed(self) -> Iterator[Held]:
        """Yield the optimizers whose decay took all weights to nearly 0, and whose loss did not fall."""
        for held in self._held.values():
            large = held.steps >= _STEPS and held.decay >= _DECAY and held.norm > 0
            if large and norm_of(held.trainer.slots) <= _CRUSHED * held.norm and held.is_no_better():
                yield held

    def cut(self) -> Iterator[Held]:
        """Yield the optimizers that make plain steps along gradients which are all cut to next to nothing."""
        for held in self._held.values():
            plain = type(held.trainer.ref()).__name__ == "SGD"
            reach = held.rate * held.bound * held.steps <= _REACH * held.norm
            if plain and reach and held.cut == held.clips == held.steps >= _STEPS and held.is_no_better():
                yield held


def norm_of(slots: list[Slot]) -> float:
    """Return the length of all weights with two axes or more, taken together."""
    weights = [it.detach().float() for slot in slots if (it := slot.tensor) is not None and it.dim() >= 2]
    return float(torch.stack([it.norm() for it in weights]).norm()) if weights else 0.0
