"""Steps that find no gradient: cleared too early, made too early, or without any pass."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import ClassVar

from course_utils.audit.book import Trainer
from course_utils.audit.check import Check, Found
from course_utils.audit.events import Op, Pass, Step
from course_utils.audit.lines import Spot, here
from course_utils.audit.source import named_only


@dataclass
class _Tally:
    trainer: Trainer
    steps: int = 0
    nothing: int = 0  # steps that found no new gradient
    erased: int = 0  # of them those whose gradients had been cleared before
    again: int = 0  # steps that used what this optimizer had used
    began_without: bool = False  # the first step came before any pass
    erased_at: Counter[Spot] = field(default_factory=Counter)
    at: Counter[Spot] = field(default_factory=Counter)
    again_at: Counter[Spot] = field(default_factory=Counter)
    keys: set[int] = field(default_factory=set)


class Stepping(Check):
    """A step without new gradients moves nothing, or moves along an old gradient."""

    codes: ClassVar = ("zero-before-step", "step-first", "step-without-backward")
    functions: ClassVar = frozenset({"grad.__set__", "zero_"})

    def __init__(self, *args: object) -> None:
        super().__init__(*args)  # type: ignore[arg-type]
        self._tallies: dict[int, _Tally] = {}
        self._reached: set[int] = set()  # leaves that a pass ever delivered to
        self._passes = 0
        self._by_hand: Spot | None = None  # the line that last cleared a gradient without zero_grad

    def function(self, event: Op) -> None:
        self._by_hand = here()

    def pass_ended(self, event: Pass) -> None:
        self._passes += event.accumulate
        self._reached |= {slot.key for slot in event.received}

    def step_begins(self, event: Step) -> None:
        if event.trainer.slots and all(slot.is_frozen() for slot in event.trainer.slots):
            return  # it has nothing to do, by somebody's decision
        tally = self._tallies.setdefault(event.trainer.key, _Tally(event.trainer))
        tally.steps += 1
        tally.keys = {slot.key for slot in event.trainer.slots} | {event.trainer.key}
        erased = [slot for slot in event.trainer.slots if slot.erased]
        real = [slot for slot in event.fresh if (slot.content and not slot.used) or not slot.content]
        if event.closure:
            return
        if event.stale and not real:
            tally.again += 1
            tally.again_at[event.spot or Spot("", 0)] += 1
        elif not [slot for slot in real if slot.content or not slot.is_zero()]:
            tally.nothing += 1
            tally.at[event.spot or Spot("", 0)] += 1
            if erased:
                tally.erased += 1
                tally.erased_at[erased[0].erased_at or self._by_hand or event.spot or Spot("", 0)] += 1
            elif tally.steps == 1 and not self._passes:
                tally.began_without = True

    def found(self) -> Iterator[Found]:
        for tally in self._tallies.values():
            name = tally.trainer.name or "optimizer"
            if tally.again >= 2 and tally.again * 3 >= tally.steps:
                yield self._again(tally, name)
            if tally.nothing < 2 or tally.nothing * 2 < tally.steps:
                continue
            spot = tally.at.most_common(1)[0][0]
            moved = f"{tally.nothing} of {tally.steps} steps of {name} found no gradient and moved nothing"
            common = {"times": tally.nothing, "about": tally.keys, "names": (name,)}
            if tally.began_without and tally.erased:
                yield self.say(
                    "step-first",
                    spot,
                    f"{name}.step() comes before backward(): {moved}",
                    "Each step ran before the pass of its own iteration, and what the pass before it had left "
                    f"was cleared by then{_at(tally.erased_at)}.",
                    f"loss.backward()\n{name}.step()",
                    **common,  # type: ignore[arg-type]
                )
            elif tally.erased * 2 >= tally.nothing:
                yield self.say(
                    "zero-before-step",
                    tally.erased_at.most_common(1)[0][0],
                    f"the gradients were cleared between backward() and {name}.step(): {moved}",
                    f"A step reads .grad. Here it was cleared after the pass and before the step on line {spot.line}.",
                    f"{name}.zero_grad()\nloss.backward()\n{name}.step()",
                    **common,  # type: ignore[arg-type]
                )
            elif not self._reached & tally.keys:
                forgotten = named_only(spot, "backward")
                why = "No backward pass delivered a gradient to any of its parameters."
                if forgotten:
                    why += f" Line {forgotten.line} names backward without calling it: the parentheses are missing."
                yield self.say(
                    "step-without-backward",
                    forgotten or spot,
                    moved if self._passes else f"{name} makes steps, and no backward pass ever ran",
                    why,
                    f"loss.backward()  # before {name}.step()",
                    certain=not self._passes or forgotten is not None,
                    **common,  # type: ignore[arg-type]
                )
            else:
                yield self.say(
                    "step-without-backward",
                    spot,
                    moved,
                    "A step that no backward pass precedes does nothing.",
                    f"loss.backward()  # before each {name}.step()",
                    **common,  # type: ignore[arg-type]
                )

    def _again(self, tally: _Tally, name: str) -> Found:
        return self.say(
            "step-without-backward",
            tally.again_at.most_common(1)[0][0],
            f"{tally.again} of {tally.steps} steps of {name} used gradients that it had used before",
            "No backward pass ran between this step and the one before, so it repeated an old direction.",
            f"loss.backward()\n{name}.step()  # once for each pass",
            times=tally.again,
            about=tally.keys,
            names=(name,),
        )


def _at(spots: Counter[Spot]) -> str:
    return f" (line {spots.most_common(1)[0][0].line})" if spots else ""
