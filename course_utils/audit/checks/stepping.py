"""Steps that find no gradient: cleared too early, made too early, or without any pass."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import ClassVar

from course_utils.audit.book import Trainer
from course_utils.audit.check import Check, Found
from course_utils.audit.counting import in_every_nth
from course_utils.audit.events import Op, Pass, Step
from course_utils.audit.lines import Spot
from course_utils.audit.source import loop_around, named_only


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
    thrown: int = 0  # passes of its own kind that were cleared before the one that a step used
    cut: int = 0  # steps of which that is so
    thrown_at: Spot | None = None
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
        self._lines: dict[int, Spot | None] = {}  # of the last passes
        self._by_hand: Spot | None = None  # the line that last cleared a gradient without zero_grad

    def function(self, event: Op) -> None:
        self._by_hand = event.spot

    def pass_ended(self, event: Pass) -> None:
        self._passes += event.accumulate
        self._lines[event.number] = event.spot
        self._lines.pop(event.number - 500, None)
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
        self._throws(tally, event)
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

    def _throws(self, tally: _Tally, event: Step) -> None:
        """Count passes that a step in every nth round, or after a loop, was to use as well, and that were cleared."""
        if not any(slot.thrown for slot in event.fresh):
            return
        used = {number for slot in event.fresh for number in slot.content}
        spots = {self._lines.get(number) for number in used}
        spot = spots.pop() if len(used) == 1 else None
        if spot is None or event.spot is None or any(slot.touched for slot in event.fresh):
            return
        slot = max(event.fresh, key=lambda it: len(it.thrown))
        thrown = [number for number in slot.thrown if self._lines.get(number) == spot]
        places = (spot, slot.erased_at or self._by_hand)
        summed = in_every_nth(event.spot) or _is_after(event.spot, spot)
        if thrown and summed and not any(place and in_every_nth(place) for place in places):
            tally.thrown, tally.cut, tally.thrown_at = tally.thrown + len(thrown), tally.cut + 1, places[1]

    def found(self) -> Iterator[Found]:
        for tally in self._tallies.values():
            name = tally.trainer.name or "optimizer"
            if tally.again >= 2 and tally.again * 3 >= tally.steps:
                yield self._again(tally, name)
            if tally.cut >= 2 and tally.cut * 2 >= tally.steps:
                yield self._forgets(tally, name)
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

    def _forgets(self, tally: _Tally, name: str) -> Found:
        return self.say(
            "zero-before-step",
            tally.thrown_at,
            f"the gradients of {tally.thrown} passes were cleared before {name}.step() came: {tally.cut} of "
            f"{tally.steps} steps used one pass alone",
            "The step is taken once in several passes, to use their sum. This line clears .grad before each pass, so "
            "only the last of them counts, and the other batches are computed for nothing.",
            f"{name}.step()\n{name}.zero_grad()  # once a step, and not once a pass",
            level="likely",
            certain=False,
            times=tally.thrown,
            about=tally.keys,
            names=(name,),
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


def _is_after(step: Spot, spot: Spot) -> bool:
    """Say whether a step comes once a round, after an inner loop over a line has ended."""
    inner, outer = loop_around(spot), loop_around(step)
    if inner is None or outer is None or step.file != spot.file or inner is outer:
        return False
    inside = outer.lineno < inner.lineno and (inner.end_lineno or 0) <= (outer.end_lineno or 0)
    return inside and step.line > (inner.end_lineno or inner.lineno)
