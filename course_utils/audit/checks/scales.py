"""Inputs that are brought to one scale for the training, and are evaluated as they are."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import ClassVar, NamedTuple

import torch

from course_utils.audit.check import Check, Found
from course_utils.audit.events import Call
from course_utils.audit.lines import Spot
from course_utils.audit.mentions import ran
from course_utils.audit.pixels import divided_twice, undivided
from course_utils.audit.reading import reached
from course_utils.audit.scalings import scaled_apart

_LOOKS = 4  # of batches in training, and of batches in evaluation, each model
_MODELS = 8
_ROWS, _WIDE = 8, 128
_FAR, _TIMES = 5.0, 10.0  # standard deviations away, and times as wide
_APART, _WIDER = 1.5, 3.0
_CLEARLY, _FEATURES = 2.0, 4  # times as wide or as narrow, where that holds for nearly all of several features
_BATCHES = 2
_TINY, _COARSE = 0.006, 30.0  # of pixels that were divided twice, and of those that were not


class _Batch(NamedTuple):
    """The mean and the spread of each feature in one batch."""

    mean: torch.Tensor
    spread: torch.Tensor


@dataclass
class _Seen:
    """Batches that a model was given."""

    spots: tuple[Spot, ...]
    trained: list[_Batch] = field(default_factory=list)
    asked: list[_Batch] = field(default_factory=list)


class Scales(Check):
    """The scale of a model's inputs in training, and where it is evaluated."""

    codes: ClassVar = ("scaled-apart", "pixels-scaled")

    def __init__(self, *args: object) -> None:
        super().__init__(*args)  # type: ignore[arg-type]
        self._seen: dict[int, _Seen] = {}

    def called(self, event: Call) -> None:
        seen = self._seen.get(event.model.key)
        if seen is None:
            if len(self._seen) >= _MODELS:
                return
            seen = self._seen[event.model.key] = _Seen(event.spots)
        kept = seen.trained if event.grad else seen.asked
        given = event.given
        if len(kept) >= _LOOKS or given is None or given.dim() < 2 or not given.is_floating_point():
            return
        if given.requires_grad or len(given) < _ROWS:
            return
        rows = given.detach().reshape(len(given), -1)[:, :_WIDE] if given.dim() == 2 else given.detach().reshape(-1, 1)
        kept.append(_Batch(rows.mean(dim=0).double().cpu(), rows.std(dim=0).double().cpu()))

    def found(self) -> Iterator[Found]:
        yield from self._pixels()
        yield from self._apart()

    def _pixels(self) -> Iterator[Found]:
        """Yield what is divided by 255 twice, or brought to a scale of its own without being divided."""
        for seen in self._seen.values():
            if len(seen.trained) < _BATCHES:
                continue
            mean, spread = (float(it.abs().max()) for it in _joined(seen.trained))
            scopes = reached(seen.spots) if spread > 0 else []
            if mean < _TINY and spread < _TINY and (twice := divided_twice(scopes)):
                yield self.say(
                    "pixels-scaled",
                    twice[1],
                    f"pixels are divided by 255 here, and in line {twice[0].line} before",
                    "What comes in lies between 0 and 0.004: hardly any input differs from another, and the first "
                    "layer would need weights that are hundreds of times as large.",
                    "divide once: where the images are read, or in the loop",
                    certain=False,
                )
            elif spread > _COARSE and (line := undivided(scopes)):
                yield self.say(
                    "pixels-scaled",
                    line,
                    "pixels from 0 to 255 are brought to a scale by means and deviations of numbers from 0 to 1",
                    f"Inputs have a spread of {spread:.0f} in place of 1. A mean of 0.485 is one of pixels that were "
                    "divided by 255 before.",
                    "x = x.float() / 255  # before the mean is taken away",
                    certain=False,
                )

    def _apart(self) -> Iterator[Found]:
        told: set[Spot] = set()
        for seen in self._seen.values():
            if len(seen.trained) < _BATCHES or not seen.asked:
                continue
            if not _is_standard(seen.trained) or not all(_is_far(it, seen.trained) for it in seen.asked):
                continue
            line = scaled_apart(ran(seen.spots))
            if line is None or line[0] in told:
                continue
            told.add(line[0])
            spot, name = line
            yield self.say(
                "scaled-apart",
                spot,
                f"{name} is brought to one scale here, and what the model is evaluated on is not",
                "In training most inputs have a mean near 0 and a spread near 1. In evaluation they lie many times as "
                "far away: the model is asked about numbers that it has never seen the like of.",
                "x_val = (x_val - mean) / std  # with the mean and the deviation of the training part",
                certain=False,
                times=len(seen.asked),
                names=(name,),
            )


def _joined(batches: list[_Batch]) -> _Batch:
    wide = min(len(it.mean) for it in batches)
    means = torch.stack([it.mean[:wide] for it in batches])
    spreads = torch.stack([it.spread[:wide] for it in batches])
    return _Batch(means.mean(dim=0), (spreads.square().mean(dim=0) + means.var(dim=0)).sqrt())


def _is_standard(batches: list[_Batch]) -> bool:
    """Say whether most features have a mean near 0 and a spread near 1, or lie in a range of that size."""
    mean, spread = _joined(batches)
    usual = (mean.abs() < 1) & (spread > 0.02) & (spread < 3)
    return bool(usual.double().mean() > 0.8)


def _is_far(batch: _Batch, trained: list[_Batch]) -> bool:
    """Say whether most features lie apart from those of the training, and some of them on quite another scale."""
    mean, spread = _joined(trained)
    wide = min(len(mean), len(batch.mean))
    away = (batch.mean[:wide] - mean[:wide]).abs() / spread[:wide].clamp_min(1e-6)
    wider = batch.spread[:wide] / spread[:wide].clamp_min(1e-6)
    apart = (away > _APART) | (wider > _WIDER) | (wider < 1 / _WIDER)
    far = (away > _FAR) | (wider > _TIMES)
    clear = (away > _APART) | (wider > _CLEARLY) | (wider < 1 / _CLEARLY)
    if wide >= _FEATURES and bool(clear.double().mean() > 0.9):
        return True
    return bool(apart.double().mean() > 0.5 and far.double().mean() >= 0.25)
