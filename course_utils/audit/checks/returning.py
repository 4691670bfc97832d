"""What an action is to be worth: targets that go on where an episode ends, and returns that are summed forwards."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import torch

from course_utils.audit.check import Check, Found
from course_utils.audit.episodes import comes_from, done_factor, forward_sums
from course_utils.audit.events import Call, Op, Pass, node_behind
from course_utils.audit.expressions import factors_at
from course_utils.audit.lines import Spot
from course_utils.audit.mentions import names_read, ran
from course_utils.audit.policies import weighed
from course_utils.audit.summands import summands

_MOST, _PASSES = 50, 4
_TIMES, _FLAGS = 2, 16
_SEEN = 200  # products at one line that are looked at


@dataclass
class _Flags:
    """The values of the flags by which a line multiplied."""

    text: str
    times: int = 0
    count: int = 0
    ones: float = 0.0


class Returning(Check):
    """Lines that multiply by the end of an episode, and loops that sum rewards."""

    codes: ClassVar = ("wrong-return",)
    functions: ClassVar = frozenset({"mul", "__mul__", "__rmul__", "multiply"})

    def __init__(self, *args: object) -> None:
        super().__init__(*args)  # type: ignore[arg-type]
        self._flags: dict[Spot, _Flags] = {}
        self._seen: set[Spot] = set()
        self._weighed: set[Spot] = set()  # lines that weigh a log-probability
        self._passes = 0

    def function(self, event: Op) -> None:
        spot = event.spot
        text = done_factor(spot) if spot is not None else ""
        if spot is None or not text:
            return
        flags = self._flags.setdefault(spot, _Flags(text))
        if flags.times < _SEEN:
            for value in event.args[:2]:
                _add(flags, value)

    def pass_begins(self, event: Pass) -> None:
        if event.spot is not None and len(self._seen) < _MOST:
            self._seen.add(event.spot)
        if self.recorder.operations is None or not event.accumulate or self._passes >= _PASSES:
            return
        self._passes += 1
        products = weighed(summands(node_behind(event.outputs[0])), self.recorder.lines)
        self._weighed.update(spot for _, spot in products)

    def called(self, event: Call) -> None:
        if len(self._seen) < _MOST:
            self._seen.update(event.spots)

    def found(self) -> Iterator[Found]:
        if not self.clock.steps:
            return
        for spot, flags in self._flags.items():
            if flags.times >= _TIMES and flags.count >= _FLAGS and 2 * flags.ones < flags.count:
                yield self._ended(spot, flags)
        for file, scope in ran(sorted(self._seen | self._weighed)) if self._weighed else ():
            for spot, kept in forward_sums(file, scope):
                if self._weighs(file, kept):
                    yield self._forwards(spot, kept)

    def _weighs(self, file: str, kept: str) -> bool:
        """Say whether what a loop kept goes into the weights of log-probabilities."""
        names = comes_from(file, kept)
        lines = (spot for spot in self._weighed if spot.file == file)
        return any(names & names_read(part) for spot in lines for part in factors_at(spot))

    def _ended(self, spot: Spot, flags: _Flags) -> Found:
        return self.say(
            "wrong-return",
            spot,
            f"what follows counts where {flags.text} is 1, and is left out where the episode goes on",
            f"{flags.text} was 1 for {flags.ones:.0f} of {flags.count} values. Where an episode ends, nothing "
            "follows; everywhere else the discounted value of what follows belongs to the target.",
            f"reward + gamma * (1 - {flags.text}) * next_value",
            certain=False,
            times=flags.times,
        )

    def _forwards(self, spot: Spot, kept: str) -> Found:
        return self.say(
            "wrong-return",
            spot,
            f"{kept} sums the rewards from the first step on: each action is weighed by what was earned before it",
            "A return is what follows an action: its reward, and discounted those after it. It is summed from the "
            "last step back to the first.",
            "for reward in reversed(rewards):\n    R = reward + gamma * R\n    returns.insert(0, R)",
            certain=False,
            names=(kept,),
        )


def _add(flags: _Flags, value: Any) -> None:
    """Count the values of one side of a product, where they can be flags."""
    if isinstance(value, bool):
        flags.times, flags.count, flags.ones = flags.times + 1, flags.count + 1, flags.ones + value
    elif isinstance(value, torch.Tensor) and not value.requires_grad and value.numel():
        values = value.detach()
        if bool(((values == 0) | (values == 1)).all()):
            flags.times += 1
            flags.count += values.numel()
            flags.ones += float(values.sum())
