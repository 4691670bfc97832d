"""Judging `retrain`: the head that never learns."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence

import torch
from torch.nn.functional import cross_entropy

from course_utils.checks.data import Case, Observation
from course_utils.checks.exercise import Exercise, Finding, Misconception
from course_utils.checks.judges.lesson_09_practical_checklist import LESSON
from course_utils.checks.judges.lesson_09_practical_checklist.descent import (
    Path,
    State,
    descend,
    left_in,
    on,
    parameters_of,
    reached,
    right_end,
)
from course_utils.checks.judges.lesson_09_practical_checklist.session import floats, quiet, work_done
from course_utils.checks.judges.lesson_09_practical_checklist.slips import (
    CLEARING,
    LEFT,
    NEVER,
    Slips,
    led,
    uncleared,
    unmoved,
)
from course_utils.checks.scenes.lesson_09_practical_checklist.retrain import headed
from course_utils.checks.scenes.lesson_09_practical_checklist.training import RATE, classes, new_head

_EARLY, _ONLY = "an optimizer from before", "only the head"

# No slip: an optimizer may hold what is frozen, and moves it along a gradient that nobody has cleared, or may not.
_LIVE = "holds what is not frozen"

_SLIPS = ((_EARLY, _ONLY), CLEARING, (_LIVE,))


def _cases(seed: int) -> list[Case]:
    return [
        Case("three batches", {"seed": seed, "sizes": [5, 5, 4], "steep": 1e5}),
        Case("old gradients, and a part that evaluates", {"seed": seed + 1, "sizes": [4, 6, 3], "oddities": True}),
    ]


def _retrained(case: Case, slips: Slips = frozenset()) -> Path:
    model, head = headed(case)
    model.head = head
    start = parameters_of(model)
    unmoved = [part for part, slip in (("head", _EARLY), ("body", _ONLY)) if slip in slips]
    frozen = [name for name, it in model.named_parameters() if not it.requires_grad]
    fixed = {name: it for name, it in start.items() if name.startswith((*unmoved,))}
    left = left_in(model) if slips & {NEVER, LEFT} else {}
    old = {} if _LIVE in slips else left
    taken = itertools.count(1)

    def held(state: State) -> State:
        """What is frozen moves along a gradient alone that nobody has cleared, which a slip leaves there."""
        steps = next(taken) if NEVER in slips else 1
        moved = {name: start[name] - RATE * steps * old.get(name, 0.0) for name in frozen}
        return {**state, **moved, **fixed}

    def loss(inputs: torch.Tensor, targets: torch.Tensor) -> Callable[[State], torch.Tensor]:
        return lambda state: cross_entropy(on(model, inputs, state), targets)

    losses = [loss(*batch) for batch in classes(case)]
    return descend(start, losses, RATE, left=left, adding=NEVER in slips, afterwards=held)


def _start(case: Case) -> State:
    model, head = headed(case)
    model.head = head
    return parameters_of(model)


def _end(case: Case, slips: Slips) -> State:
    return _retrained(case, slips).end


def _judge(case: Case, seen: Observation) -> Iterator[Finding]:
    right = _retrained(case)
    yield Finding("head", seen["head in place"], "After your loop model.head is not the head that was given.")
    yield from quiet(seen)
    yield floats(seen["returned"], right.losses, "The list of losses")
    yield from right_end(seen, right.end)


def _head_unmoved(case: Case, seen: Observation) -> bool:
    return reached(seen, parameters_of(new_head(case)), 1)


def _debrief(seen: Sequence[tuple[Case, Observation]]) -> Iterator[str]:
    case, _ = seen[0]
    model, head = headed(case)
    old, new = (sum(it.numel() for it in part.parameters()) for part in (model.head, head))
    yield from work_done(
        seen,
        f"An optimizer from before would hold the {old} numbers of the old head, which no gradient reaches any more, "
        f"and none of the new head's {new}.",
    )


EXERCISE = Exercise(
    id="retrain",
    title="The head that never learns",
    lesson=LESSON,
    difficulty=2,
    minutes=8,
    points=2,
    call="retrain(model, head, batches)",
    cases=_cases,
    judge=_judge,
    debrief=_debrief,
    hints=(
        "Which tensors does the optimizer hold? Compare them with model.parameters() after the head was replaced.",
        "An optimizer keeps the tensors that it was given when it was made. It does not look at the model again.",
        "Set model.head first, then make the optimizer from model.parameters(). Or give the optimizer the new head's "
        "parameters with add_param_group.",
    ),
    misconceptions=(
        Misconception(
            _EARLY,
            "The body was trained and the new head was not: an optimizer that stepped did not hold the head's "
            "parameters, or these had no gradient then.",
            lambda case, seen: seen["head in place"] and led(_EARLY, _SLIPS, _end)(case, seen),
        ),
        Misconception(
            _ONLY,
            "The head was trained and the body stayed as it was. Here both are to be trained.",
            lambda case, seen: seen["head in place"] and led(_ONLY, _SLIPS, _end)(case, seen),
        ),
        Misconception(
            "a copy of the head",
            "model.head is not the head that was given, and that one is still as it was.",
            lambda case, seen: not seen["head in place"] and _head_unmoved(case, seen),
        ),
        *uncleared(_SLIPS, _end),
        unmoved(_start),
    ),
)
