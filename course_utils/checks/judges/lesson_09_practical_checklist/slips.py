"""Telling which known slips, alone or in pairs, lead to the numbers that a loop reached."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence, Set
from functools import lru_cache
from itertools import combinations, product
from typing import TypeAlias, TypedDict

from torch import nn

from course_utils.checks.data import Case, Observation, decode, encode
from course_utils.checks.exercise import Misconception
from course_utils.checks.judges.lesson_09_practical_checklist.descent import State, left_in, reached

Slips: TypeAlias = frozenset[str]
Groups: TypeAlias = Sequence[tuple[str, ...]]  # of the slips in one group, a loop makes one
End: TypeAlias = Callable[[Case, Slips], State]

NEVER, LEFT = CLEARING = "never cleared", "gradients from before"
ZEROS = "zeros for old gradients"


class Found(TypedDict):
    """What the steps of a loop find in `.grad`, as `descend` takes it."""

    left: State | None
    adding: bool
    idle: Set[str]


def found(slips: Slips, model: nn.Module, idle: Set[str] = frozenset()) -> Found:
    """Return what the steps find of a loop that makes these slips in clearing; `idle` takes no part in its losses."""
    left = left_in(model) if slips & {NEVER, LEFT} else None
    return {"left": left, "adding": NEVER in slips, "idle": frozenset() if ZEROS in slips else idle}


def led(slip: str, known: Groups, end: End, module: int = 0) -> Callable[[Case, Observation], bool | None]:
    """Tell a loop that ended where one or two of the `known` slips lead, this `slip` among them.

    It is None where others lead there, too. `end` follows the training with a set of slips. An exercise has a case
    where each set of slips leads to numbers of its own, so that no slip is named that was not made.
    """

    def told(case: Case, seen: Observation) -> bool | None:
        given = encode(case.given)
        if reached(seen, _after(end, given, frozenset()), module):
            return False
        leading = [them for them in _sets(known) if reached(seen, _after(end, given, them), module)]
        if not any(slip in them for them in leading):
            return False
        return True if all(slip in them for them in leading) else None

    return told


def uncleared(known: Groups, end: End, module: int = 0) -> tuple[Misconception, Misconception]:
    """Return the wrong ideas about clearing gradients, told as `led` tells them."""
    return (
        Misconception(
            NEVER,
            "The gradients were not cleared between the steps: each step used the sum of all gradients so far.",
            led(NEVER, known, end, module),
            hint="When is .grad set, when is it added to, and which line of yours empties it before the next backward?",
        ),
        Misconception(
            LEFT,
            "The first step used the gradients that stood in .grad beforehand as well. Clear them before backward.",
            led(LEFT, known, end, module),
        ),
    )


def zeroed(end: End) -> Misconception:
    """Return the wrong idea of a loop that clears with zeros: `end` follows the training with this slip."""
    return Misconception(
        ZEROS,
        "A parameter that takes no part in the loss moved: zeros stood in its .grad, in place of an old gradient. This "
        "optimizer has weight decay, which moves whatever has a gradient, be it zero. It passes over None.",
        led(ZEROS, ((ZEROS,),), end),
        hint="What does .grad of a parameter that no pass reaches hold after your line that clears it?",
    )


def unmoved(start: Callable[[Case], State], module: int = 0) -> Misconception:
    """Return the wrong idea of a loop that leaves every parameter at its start."""
    return Misconception(
        "nothing moves",
        "After your loop every parameter is where it began. What moves one is a step of an optimizer that holds it, "
        "made while a gradient of it that is not zero is in .grad.",
        lambda case, seen: reached(seen, start(case), module),
        hint="Which line fills .grad, which reads it, and which empties it? In which order do the three run, and what "
        "stands in .grad when it is read?",
    )


def _sets(known: Groups) -> Iterator[Slips]:
    for groups in (*combinations(known, 1), *combinations(known, 2)):
        yield from map(frozenset, product(*groups))


@lru_cache(maxsize=256)  # four cases of an exercise with eight slips
def _after(end: End, given: bytes, slips: Slips) -> State:
    return end(Case("", decode(given)), slips)
