"""A seed that is set to the same number again and again while one model is trained."""

from __future__ import annotations

import random
import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, ClassVar

import torch

from course_utils.audit.check import Check, Found
from course_utils.audit.checks.own_generators import OwnGenerators
from course_utils.audit.events import Op, Step
from course_utils.audit.lines import Spot, frames
from course_utils.audit.looking import for_looking, only_seeds
from course_utils.audit.source import loop_around

_SETS = 3  # so often the same number, with steps in between
_ITEMS = 8  # so many samples must have come with the same seed in later rounds, too
_KEPT = 8  # steps after each, whose random state is kept
_MEASURES = re.compile(r"^(?!.*train).*(eval|valid|test|generate|plot|visual|preview|score)", re.IGNORECASE)


@dataclass
class _Part:
    """The steps between one setting of the seed and the next: the state of the random numbers at the first few."""

    start: int
    trainer: int = 0
    states: list[int] = field(default_factory=list)


@dataclass
class _Seeded:
    """A line that sets a seed."""

    kind: str
    told: Spot
    seeds: set[str] = field(default_factory=set)
    parts: list[_Part] = field(default_factory=list)
    same: int = 0


@dataclass
class _Items:
    """A line that sets a seed for each sample that a data set is asked for: by seed, the step before its last."""

    last: dict[str, int] = field(default_factory=dict)
    again: int = 0


class Seeding(Check):
    """Steps that come with the very random numbers which earlier steps of the same optimizer came with."""

    codes: ClassVar = ("seed-repeats",)
    functions: ClassVar = OwnGenerators.functions

    def __init__(self, *args: object) -> None:
        super().__init__(*args)  # type: ignore[arg-type]
        self._seeded: dict[tuple[Spot, str], _Seeded] = {}
        self._items: dict[tuple[Spot, str], _Items] = {}
        self._own = OwnGenerators(self)

    def function(self, event: Op) -> None:
        self._own.function(event)

    def seeded(self, kind: str, seed: str) -> None:
        frame = next(frames(), None)
        if frame is None or not seed or not torch.is_grad_enabled() or self.recorder.running is not None:
            return
        if frame.f_code.co_name == "__getitem__":
            self._sample(Spot(frame.f_code.co_filename, frame.f_lineno), kind, seed)
            return
        places = [Spot(it.f_code.co_filename, it.f_lineno) for it in frames()]
        # The first line in a loop, on the way out: a function that only sets seeds is called from there.
        spot = next((it for it in places if loop_around(it) is not None), places[0])
        if (spot, kind) in self._seeded and len(self._seeded[spot, kind].seeds) > 1:
            return  # a line that sets one seed after another
        if any(_MEASURES.search(it.f_code.co_name) for it, _ in zip(frames(), range(2), strict=False)):
            return
        if for_looking(spot):
            return
        known = self._seeded.setdefault((spot, kind), _Seeded(kind, self._told(spot, places)))
        known.seeds.add(seed)
        if len(known.seeds) == 1:
            self._close(known)
            known.parts = [*known.parts[-1:], _Part(_STATES[kind]())]

    def _told(self, spot: Spot, places: list[Spot]) -> Spot:
        """Return the line that is told of one in a loop: the seed's own, unless that stands in a helper for seeds."""
        return next(it for it in places if it == spot or not only_seeds(it))

    def _sample(self, spot: Spot, kind: str, seed: str) -> None:
        if for_looking(spot):
            return
        items = self._items.setdefault((spot, kind), _Items())
        items.again += items.last.get(seed, self.clock.steps) < self.clock.steps
        items.last[seed] = self.clock.steps

    def loads(self, module: Any, state: Any, spot: Spot | None) -> None:
        """A model that is set back, as for another run with the same numbers."""
        for known in self._seeded.values():
            known.parts = []

    def step_begins(self, event: Step) -> None:
        for known in self._seeded.values():
            part = known.parts[-1] if known.parts else None
            if part is not None and len(known.seeds) == 1 and len(part.states) < _KEPT:
                if part.trainer not in (0, event.trainer.key):
                    continue
                part.trainer = event.trainer.key
                part.states.append(_STATES[known.kind]())

    def _close(self, known: _Seeded) -> None:
        """Compare the last part with the one before it: the same numbers, and some were drawn."""
        if len(known.parts) < 2:
            return
        last, one = known.parts[-1], known.parts[-2]
        many = min(len(last.states), len(one.states))
        drawn = any(state != last.start for state in last.states)
        if many and drawn and last.trainer == one.trainer and last.states[:many] == one.states[:many]:
            known.same += 1

    def found(self) -> Iterator[Found]:
        yield from self._own.found()
        told: set[tuple[Spot, str]] = set()
        for (_, kind), known in self._seeded.items():
            self._close(known)
            if len(known.seeds) == 1 and known.same >= _SETS - 1 and (known.told, kind) not in told:
                told.add((known.told, kind))
                seed = next(iter(known.seeds))
                yield self.say(
                    "seed-repeats",
                    known.told,
                    f"the seed is set to {seed} again {known.same} times during the training: the same random "
                    "numbers come each time",
                    "The order of the data, the noise and the masks of dropout after this line are the very ones that "
                    "came after it the last time. What is to differ from round to round does not.",
                    f"{kind}({seed})  # once, before the loop; or for data of its own: "
                    f"torch.Generator().manual_seed({seed})",
                    times=known.same + 1,
                )
        for (spot, kind), items in self._items.items():
            if kind == "torch.manual_seed" and len(items.last) > 1 and items.again >= _ITEMS and self._drops():
                yield self.say(
                    "seed-repeats",
                    spot,
                    "the seed of all random numbers is set anew for each sample",
                    "A data set that sets the seed sets it for everybody: dropout after it draws what it drew after "
                    "the same samples before, and each sample is varied in the same way in each epoch.",
                    "generator = torch.Generator().manual_seed(...)  # for what this sample draws",
                    times=items.again,
                )

    def _drops(self) -> bool:
        """Say whether a model that is trained draws random numbers of its own."""
        models = (model.ref() for model in self.book.models.values())
        parts = (part for model in models if model is not None for part in model.modules())
        return any("dropout" in type(part).__name__.lower() and getattr(part, "p", 0) for part in parts)


def _numpy() -> int:
    state = sys.modules["numpy"].random.get_state()
    return hash((state[1].tobytes(), state[2], state[3]))


_STATES: dict[str, Callable[[], int]] = {
    "torch.manual_seed": lambda: hash(torch.get_rng_state().numpy().tobytes()),
    "random.seed": lambda: hash(random.getstate()),
    "np.random.seed": _numpy,
}
