"""Where an observation says less, or more, than its observers told while it was made."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from course_utils.checks.data import Case
from course_utils.checks.exercise import Seen
from course_utils.checks.observers.aside import REACH
from course_utils.checks.observers.by_hand import HAND, READ
from course_utils.checks.observers.made import EARLIER
from course_utils.checks.observers.nodes import CALLED
from course_utils.checks.observers.passes import UNCOUNTED
from course_utils.checks.observers.runs import BEGUN, COPIES, CUT, PART
from course_utils.checks.observers.telling import DECOY, GAGGED
from course_utils.grading.controller.events import FORGED

MAX_SENTENCES = 5  # of one exercise; what is told may be forged, too

_OTHER = (
    "In the case {!r} the observer told of {} {} while the answer ran, and its observation says {}. Read the answer."
)
_PARTS = "In the case {!r} a module's first layer ran {} times, and the module itself {} times. Read the answer."
_TOLD = {
    FORGED: "In the case {!r} something was told in the observers' name. Read the answer.",
    DECOY: "In the case {!r} something that only looks like an observer was changed or passed by. Read the answer.",
    HAND: "In the case {!r} code of the answer's own computed with a module's weights. Read the answer.",
    READ: "In the case {!r} the answer took numbers of tensors where no operation is seen, one by one or in "
    "another layout. Read it.",
    EARLIER: "In the case {!r} the answer wrote into memory that was there before it was called. Read it.",
    GAGGED: "In the case {!r} somebody else wanted to be told in place of the grader. Read the answer.",
    UNCOUNTED: "In the case {!r} a backward pass ran that was not started by PyTorch's own functions. Read the answer.",
    CALLED: "In the case {!r} the answer called nodes of the graph by hand, where the engine should run them. Read it.",
}
_CUT = "In the case {!r} a run of a module began and was broken off. Read the answer."
_REACHED = "In the case {!r} the answer itself brought about {!r}, by which it can change its observers. Read it."


def contradictions(pairs: Iterable[tuple[Case, Seen]], told: Iterable[Mapping[str, int]]) -> tuple[str, ...]:
    """Return a sentence for each way in which observations are not what was told, of the first case that shows it.

    The entry of an observation that has the name of what was told counts it: as a number, a list with an entry for
    each, or a list of numbers. Runs of copies may count or not.
    """
    found: dict[str, str] = {}
    for (case, seen), counts in zip(pairs, told, strict=False):
        for kind, sentence in _of_case(case.name, seen, counts):
            found.setdefault(kind, sentence)
    return tuple(found.values())[:MAX_SENTENCES]


def _of_case(case: str, seen: Seen, counts: Mapping[str, int]) -> Iterator[tuple[str, str]]:
    for kind, sentence in _TOLD.items():
        if kind in counts:
            yield kind, sentence.format(case)
    for kind in counts:
        if kind.startswith(REACH):
            yield REACH, _REACHED.format(case, kind.removeprefix(REACH))
    if not isinstance(seen, dict):
        return
    for kind in counts:
        if kind.endswith(CUT):
            yield CUT, _CUT.format(case)
        name = kind.removesuffix(PART)
        if name != kind and counts[kind] != counts.get(name + BEGUN, 0):
            yield kind, _PARTS.format(case, counts[kind], counts.get(name + BEGUN, 0))
    for name in dict.fromkeys(kind.removesuffix(COPIES) for kind in counts):
        value = dict.get(seen, name)
        own, copies = counts.get(name, 0), counts.get(name + COPIES, 0)
        said = _said(value)
        if said and not said & {own, own + copies}:
            yield name, _OTHER.format(case, own, name, min(said, key=lambda number: abs(number - own)))


def _said(value: Any) -> set[int]:
    """Return the numbers that an entry may stand for, none where it counts nothing."""
    if isinstance(value, bool) or not isinstance(value, int | list):
        return set()
    if isinstance(value, int):
        return {value}
    numbers = all(isinstance(one, int) for one in value)
    return {len(value), sum(value)} if numbers else {len(value)}
