"""What an action is to be worth: targets that go on where an episode ends, and returns that are summed forwards."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import torch

from course_utils.audit.check import Check, Found
from course_utils.audit.endings import Ending, endless_targets
from course_utils.audit.episodes import comes_from, done_factor, forward_sums
from course_utils.audit.events import Call, Op, Pass, node_behind
from course_utils.audit.expressions import factors_at
from course_utils.audit.lines import Spot, frames, names_in
from course_utils.audit.mentions import names_read, ran
from course_utils.audit.policies import weighed
from course_utils.audit.returns import backward_returns
from course_utils.audit.source import function_around
from course_utils.audit.summands import summands

_MOST, _PASSES = 50, 4
_TIMES, _FLAGS = 2, 16
_SEEN = 200  # products at one line that are looked at
# Passes, and calls, at which flags are looked at that a target leaves out, and functions of each.
_LOOKS, _FRAMES = 120, 3


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
        self._looks = [0, 0]  # at passes, and at calls
        self._left_out: dict[Ending, float] = {}  # how many of the flags were 1, where they could be seen

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
        self._look(0)
        if self.recorder.operations is None or not event.accumulate or self._passes >= _PASSES:
            return
        self._passes += 1
        products = weighed(summands(node_behind(event.outputs[0])), self.recorder.lines)
        self._weighed.update(spot for _, spot in products)

    def _look(self, at: int) -> None:
        """Count the ends of episodes among the flags that functions which run now leave out of their targets."""
        if self.recorder.operations is None or self._looks[at] >= _LOOKS:
            return
        self._looks[at] += 1
        for frame, _ in zip(frames(), range(_FRAMES), strict=False):
            spot = Spot(frame.f_code.co_filename, frame.f_lineno)
            scope = function_around(spot)
            endings = endless_targets(spot.file, scope) if scope is not None else ()
            values = names_in(frame) if endings else {}
            for ending in endings:
                if ending.is_name and ending.flag in values:
                    self._left_out[ending] = self._left_out.get(ending, 0.0) + _ones(values[ending.flag])

    def called(self, event: Call) -> None:
        if len(self._seen) < _MOST:
            self._seen.update(event.spots)
        self._look(1)

    def found(self) -> Iterator[Found]:
        if not self.clock.steps:
            return
        for spot, flags in self._flags.items():
            if flags.times >= _TIMES and flags.count >= _FLAGS and 2 * flags.ones < flags.count:
                yield self._ended(spot, flags)
        for file, scope in ran(sorted(self._seen)):
            for ending in endless_targets(file, scope):
                if self._left_out.get(ending, 1.0):
                    yield self._endless(ending)
        for file, scope in ran(sorted(self._seen | self._weighed)) if self._weighed else ():
            for spot, kept in forward_sums(file, scope):
                if self._weighs(file, kept):
                    yield self._forwards(spot, kept)
            for spot, kept in backward_returns(file, scope):
                if self._weighs(file, kept):
                    yield self._backwards(spot, kept)

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

    def _endless(self, ending: Ending) -> Found:
        return self.say(
            "wrong-return",
            ending.spot,
            f"the target goes on where an episode ended: no record keeps {ending.flag}, which each step gives"
            if ending.lost
            else f"the target goes on where an episode ended: {ending.flag} is at hand, and nothing of the target "
            "reads it",
            "Nothing follows a last state, so its target is the reward alone. With the value of what would follow, the "
            "ends of episodes say nothing, and values grow from nowhere.",
            f"reward + gamma * (1 - {ending.flag}) * next_value",
            certain=False,
            names=(ending.flag,),
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

    def _backwards(self, spot: Spot, kept: str) -> Found:
        return self.say(
            "wrong-return",
            spot,
            f"{kept} holds the returns from the last step to the first: each action is weighed by that of another step",
            "The sum goes through the rewards from the end, and what it gives is kept in this order. The "
            "log-probabilities stand in the order of the steps: the first action gets the return of the last.",
            f"{kept}.insert(0, R)  # or {kept}.reverse(), when all are there",
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


def _ones(values: Any) -> float:
    """Return how many of some flags are set; 1 where they cannot be counted."""
    try:
        return float((torch.as_tensor(values) != 0).sum())
    except (TypeError, ValueError, RuntimeError):
        return 1.0
