"""Noise that is drawn once: a generator learns to answer one draw, and a spread that is learned has one sample."""

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
from course_utils.audit.source import bound_at, source_at
from course_utils.graph.trace import node_name

_PRODUCTS = frozenset({"mul", "__mul__", "__rmul__", "multiply"})
_SPREADS = ("Exp", "Softplus", "Sqrt", "Pow")  # how a standard deviation is made positive
_NOISE = re.compile(r"^(self\.)?(z|zs|Z|z_\w+|\w*noise\w*|\w*latent\w*|eps|epsilon)$")
_BUFFER = re.compile(r"register_buffer\(['\"](\w+)['\"]")
_TIMES = 8
_MOST = 200
_CLOSELY = 4


@dataclass(frozen=True)
class _Draw:
    """Random numbers, and the line that drew them."""

    tensor: weakref.ref[torch.Tensor]
    number: int  # among all draws: a later one may have the memory, and the id, of one that is gone
    spot: Spot


@dataclass
class _Fed:
    """A model, and the one draw that all its recorded calls were given."""

    model: Model
    draw: tuple[int, int]  # its number, and how often it was written
    spot: Spot
    name: str
    times: int = 0


@dataclass
class _Spread:
    """A line that multiplies what has a graph, a standard deviation, with one draw."""

    draw: tuple[int, int] | None
    drawn: Spot
    steps: set[int]


class StillNoise(Check):
    """What generators are given, and spreads multiplied with: the same tensor of random numbers, or new ones."""

    codes: ClassVar = ("noise-once",)
    functions: ClassVar = frozenset({"randn", "rand", "normal"}) | _PRODUCTS

    def __init__(self, *args: object) -> None:
        super().__init__(*args)  # type: ignore[arg-type]
        self._drawn: dict[int, _Draw] = {}  # by the id of the tensor
        self._draws = 0
        self._fed: dict[int, _Fed] = {}
        self._varied: set[int] = set()  # models that were given different tensors
        self._judged: dict[int, tuple[frozenset[int], int]] = {}  # by a critic: the leaves behind what it was given
        self._real: set[int] = set()  # critics that were given data as well
        self._spreads: dict[Spot, _Spread] = {}

    def function(self, event: Op) -> None:
        if event.name in _PRODUCTS:
            if self._drawn and isinstance(event.out, torch.Tensor) and event.out.requires_grad:
                self._multiplied(event)
        elif isinstance(event.out, torch.Tensor) and not event.out.requires_grad and len(self._drawn) < _MOST:
            spot = event.spot
            if spot is not None and _NOISE.match(_name_at(spot)):
                self._drawn[id(event.out)] = _Draw(weakref.ref(event.out), self._draws, spot)
                self._draws += 1

    def _multiplied(self, event: Op) -> None:
        pair = [it for it in event.args[:2] if isinstance(it, torch.Tensor)]
        spread = next((it for it in pair if it.grad_fn is not None), None)
        noise = next((it for it in pair if not it.requires_grad), None)
        if spread is None or noise is None or not node_name(spread.grad_fn).startswith(_SPREADS):
            return
        known, spot = self._known(noise), event.spot
        if spot is None:
            return
        draw = (known.number, noise._version) if known is not None else None
        found = self._spreads.setdefault(spot, _Spread(draw, known.spot if known is not None else spot, set()))
        if found.draw != draw:
            found.draw = None  # there were several
        found.steps.add(self.clock.steps)

    def _known(self, tensor: torch.Tensor) -> _Draw | None:
        found = self._drawn.get(id(tensor))
        return found if found is not None and found.tensor() is tensor else None

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
        known = self._known(given)
        fed = self._fed.get(key)
        if known is None or (fed is not None and fed.draw != (known.number, given._version)):
            self._varied.add(key)
            self._fed.pop(key, None)
        else:
            draw = (known.number, given._version)
            fed = self._fed.setdefault(key, _Fed(event.model, draw, known.spot, bound_at(known.spot)))
            fed.times += 1

    def found(self) -> Iterator[Found]:
        yield from self._unspread()
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

    def _unspread(self) -> Iterator[Found]:
        for spot, spread in self._spreads.items():
            if spread.draw is not None and len(spread.steps) >= _TIMES:
                name = _name_at(spread.drawn)
                yield self.say(
                    "noise-once",
                    spread.drawn,
                    f"{name} is drawn once, and line {spot.line} multiplies it with a spread that is learned, in each "
                    f"of {len(spread.steps)} steps",
                    "The gradient of an expected value comes from many draws. With one, the numbers in it are weights "
                    "like any others: what follows learns to undo them, and the spread means nothing.",
                    f"{name} = torch.randn_like(std)  # in forward, anew in each call",
                    certain=False,
                    times=len(spread.steps),
                    names=(name,),
                )

    def _is_apart(self, judge: int, mine: set[int]) -> bool:
        """Say whether one optimizer trains a generator and another one its critic."""
        critic = self.book.model_of(judge)
        theirs = {slot.key for slot in critic.slots} if critic is not None else set()
        holders = [{slot.key for slot in it.slots} for it in self.book.trainers.values() if it.steps]
        return any(mine & it and not theirs & it for it in holders) and any(
            theirs & it and not mine & it for it in holders
        )


def _name_at(spot: Spot) -> str:
    """Return the name that a draw is given: by an assignment, or as a buffer."""
    buffer = _BUFFER.search(source_at(spot))
    return f"self.{buffer[1]}" if buffer else bound_at(spot)
