"""Noise that is drawn once: a generator that learns to answer one draw, in the game with its critic."""

from __future__ import annotations

import re
import weakref
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import torch

from course_utils.audit.book import Model
from course_utils.audit.check import Check, Found
from course_utils.audit.events import Call, Op
from course_utils.audit.lines import Spot
from course_utils.audit.source import bound_at

_NOISE = re.compile(r"^(self\.)?(z|zs|Z|z_\w+|\w*noise\w*|\w*latent\w*|eps|epsilon)$")
_TIMES = 8
_MOST = 200
_CLOSELY = 4


@dataclass
class _Fed:
    """A model, and the one draw that all its recorded calls were given."""

    model: Model
    draw: tuple[int, int] | None  # its id, and how often it was written
    spot: Spot
    name: str
    times: int = 0


class StillNoise(Check):
    """What generators are given in each call: the same tensor of random numbers, or new ones."""

    codes: ClassVar = ("noise-once",)
    functions: ClassVar = frozenset({"randn", "rand", "normal"})

    def __init__(self, *args: object) -> None:
        super().__init__(*args)  # type: ignore[arg-type]
        self._drawn: dict[int, tuple[weakref.ref[torch.Tensor], Spot]] = {}
        self._fed: dict[int, _Fed] = {}
        self._varied: set[int] = set()  # models that were given different tensors
        self._judged: dict[int, tuple[frozenset[int], int]] = {}  # by a critic: the leaves behind what it was given
        self._real: set[int] = set()  # critics that were given data as well

    def function(self, event: Op) -> None:
        if isinstance(event.out, torch.Tensor) and not event.out.requires_grad and len(self._drawn) < _MOST:
            spot = event.spot
            if spot is not None and _NOISE.match(bound_at(spot)):
                self._drawn[id(event.out)] = weakref.ref(event.out), spot

    def called(self, event: Call) -> None:
        given, key = event.given, event.model.key
        if given is None or event.recorded is None or not self._drawn:
            return
        if given.requires_grad:
            behind, times = self._judged.get(key, (frozenset(), 0))
            if times < _CLOSELY:
                self._judged[key] = behind | self.recorder.cuts.behind([given]), times + 1
            return
        self._real.add(key)
        if key in self._varied:
            return
        known = self._drawn.get(id(given))
        fed = self._fed.get(key)
        draw = (id(given), given._version)
        if known is None or known[0]() is not given or (fed is not None and fed.draw != draw):
            self._varied.add(key)
            self._fed.pop(key, None)
        else:
            fed = self._fed.setdefault(key, _Fed(event.model, draw, known[1], bound_at(known[1])))
            fed.times += 1

    def found(self) -> Iterator[Found]:
        for key, fed in self._fed.items():
            mine = {slot.key for slot in fed.model.slots}
            judges = [
                it for it, (behind, _) in self._judged.items() if it != key and behind & mine and it in self._real
            ]
            if fed.times < _TIMES or not any(self._is_apart(judge, mine) for judge in judges):
                continue
            name = fed.model.name or "the generator"
            yield self.say(
                "noise-once",
                fed.spot,
                f"{fed.name} is drawn once, and {name} is given it in each of {fed.times} calls that train it",
                f"{name} learns what to make of these {fed.name}s alone, and its critic to tell just those apart. What "
                "it makes of any other draw was never trained.",
                f"{fed.name} = torch.randn(...)  # in the loop, anew for each step",
                certain=False,
                times=fed.times,
                names=(fed.name, name),
            )

    def _is_apart(self, judge: int, mine: set[int]) -> bool:
        """Say whether one optimizer trains a generator and another one its critic."""
        critic = self.book.model_of(judge)
        theirs = {slot.key for slot in critic.slots} if critic is not None else set()
        holders = [{slot.key for slot in it.slots} for it in self.book.trainers.values() if it.steps]
        return any(mine & it and not theirs & it for it in holders) and any(
            theirs & it and not mine & it for it in holders
        )
