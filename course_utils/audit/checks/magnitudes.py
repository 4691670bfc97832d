"""Learning rates that are off by orders of magnitude: steps larger than the weights, or too small to be one."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, ClassVar

import torch

from course_utils.audit.book import Trainer
from course_utils.audit.check import Check, Found
from course_utils.audit.checks.squared_rates import Asked, Factors
from course_utils.audit.events import Pass, Step
from course_utils.audit.lines import Spot

# Steps of these move a number by about the rate, whatever the size of its gradient.
_BY_RATE = ("Adam", "AdamW", "NAdam", "RAdam", "Adamax", "RMSprop")
_LARGE = 4.0  # times the typical size of a weight
_SMALL = 2e-7  # of it: less than the last bit of a number in float32 and its neighbours
_STEPS = 10
_RISE = 3.0  # times the first loss
_LAST = 64


@dataclass
class _Sized:
    """An optimizer's rate beside the size of what it moves."""

    trainer: Trainer
    size: float  # the median over weights of their typical size, before the first step
    rate: float = 0.0
    steps: int = 0
    first: float = math.nan  # the first loss
    worst: float = -math.inf
    ends: deque[float] = field(default_factory=lambda: deque(maxlen=_LAST))


class Magnitudes(Check):
    """What a step moves a weight by, against the weight."""

    codes: ClassVar = ("rate-far-off",)

    def __init__(self, *args: object) -> None:
        super().__init__(*args)  # type: ignore[arg-type]
        self._sized: dict[int, _Sized] = {}
        self._loss = math.nan
        self._factors = Factors()

    def scheduled(self, scheduler: Any, spot: Spot | None) -> None:
        self._factors.scheduled(self.book, scheduler)

    def pass_begins(self, event: Pass) -> None:
        self._loss = math.nan
        doubtful = not self._sized or any(it.steps < 2 or _is_off(it) for it in self._sized.values())
        out = event.outputs[0] if doubtful and len(event.outputs) == 1 else None
        if isinstance(out, torch.Tensor) and out.numel() == 1 and not event.scaled and not event.seeded:
            self._loss = float(out.detach())

    def step_begins(self, event: Step) -> None:
        optimizer = event.trainer.ref()
        if optimizer is None or event.in_pass or event.closure:
            return
        sized = self._sized.get(event.trainer.key)
        if sized is None:
            sized = self._sized[event.trainer.key] = _Sized(event.trainer, _size(optimizer))
        sized.steps += 1
        if sized.steps > 2 and not _is_off(sized):
            return
        rates = [float(group.get("lr") or 0.0) for group in optimizer.param_groups if group["params"]]
        sized.rate = max([sized.rate, *rates])
        if not math.isnan(self._loss):
            sized.ends.append(self._loss)
            sized.first = self._loss if math.isnan(sized.first) else sized.first
            sized.worst = max(sized.worst, self._loss)

    def found(self) -> Iterator[Found]:
        yield from map(self._squared, self._factors.that_are_rates())
        for sized in self._sized.values():
            optimizer = sized.trainer.ref()
            if optimizer is None or sized.steps < _STEPS or not _is_off(sized):
                continue
            if type(optimizer).__name__ not in _BY_RATE or not sized.ends:
                continue
            large = sized.rate > sized.size
            if large and not _is_worse(sized):
                continue
            yield self._far(sized, large)

    def _squared(self, asked: Asked) -> Found:
        return self.say(
            "rate-far-off",
            asked.returned or asked.made,
            f"LambdaLR multiplies the rate {asked.base:g} by what its function returns, at most {asked.largest:g}: a "
            f"rate of {asked.base * asked.largest:.1g}",
            "The function's value is a factor of the optimizer's rate, 1 where the rate should be whole. This one "
            "returns the rate itself, and the product is far smaller.",
            "return fraction  # of the rate: between 0 and 1; or LambdaLR with an optimizer made with lr=1.0",
            certain=False,
            times=asked.times,
        )

    def _far(self, sized: _Sized, large: bool) -> Found:
        kind = type(sized.trainer.ref()).__name__
        size, times = f"{sized.size:.1g}", sized.rate / sized.size
        return self.say(
            "rate-far-off",
            sized.trainer.made or sized.trainer.spot,
            f"a learning rate of {sized.rate:g} for {kind}: one step moves a weight by {times:.0f} times its size, and "
            "the loss did not become better"
            if large
            else f"a learning rate of {sized.rate:g} for {kind}: {sized.steps} steps move nothing",
            f"{kind} moves each number by about the rate in a step, however large its gradient is. The weights are of "
            f"size {size}. "
            + (
                "A rate of this size throws away what they were in the first step."
                if large
                else "A number in float32 does not even change by so little."
            ),
            "lr=1e-3  # look for a factor that is missing or there twice: a unit, a scale, a schedule's factor",
            certain=False,
            times=sized.steps,
            about={sized.trainer.key},
        )


def _is_off(sized: _Sized) -> bool:
    if not sized.size or not sized.rate:
        return sized.steps < 2
    return not _SMALL * sized.size < sized.rate < _LARGE * sized.size


def _is_worse(sized: _Sized) -> bool:
    """Say whether the loss rose far above its first value, and is about as bad or no number at the end."""
    first, last = sized.first, list(sized.ends)[-_STEPS:]
    if not all(map(math.isfinite, last)):
        return True
    return sized.worst >= _RISE * abs(first) and 2 * sum(last) / len(last) >= first


def _size(optimizer: torch.optim.Optimizer) -> float:
    """Return the median over the weight matrices of an optimizer of the root of their mean square; 0 without any."""
    sizes: list[Any] = []
    for group in optimizer.param_groups:
        for weight in group["params"]:
            if isinstance(weight, torch.nn.Parameter) and weight.dim() >= 2 and weight.is_floating_point():
                sizes.append(float(weight.detach().float().square().mean().sqrt()))
    return sorted(sizes)[len(sizes) // 2] if sizes else 0.0
