"""Judging `fit_masked`: writes that nobody sees."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import torch
from torch.nn.functional import mse_loss

from course_utils.checks.data import Case, Observation
from course_utils.checks.exercise import Exercise, Finding, Misconception
from course_utils.checks.judges.lesson_09_practical_checklist import LESSON
from course_utils.checks.judges.lesson_09_practical_checklist.descent import (
    Path,
    Refused,
    State,
    descend,
    parameters_of,
    right_end,
)
from course_utils.checks.judges.lesson_09_practical_checklist.session import floats, one_step_each, quiet, work_done
from course_utils.checks.judges.lesson_09_practical_checklist.slips import CLEARING, Slips, found, led, uncleared
from course_utils.checks.scenes.lesson_09_practical_checklist.fit_masked import masked, started
from course_utils.checks.scenes.lesson_09_practical_checklist.training import RATE


def _cases(seed: int) -> list[Case]:
    return [
        Case("three batches", {"seed": seed, "sizes": [5, 5, 6], "limit": 2.0, "far": 2e4}),
        Case("a wide limit", {"seed": seed + 1, "sizes": [4, 3], "limit": 9.0}),
        Case(
            "momentum and old gradients",
            {"seed": seed + 2, "sizes": [4, 3, 5], "limit": 0.3, "left": True, "momentum": 0.9},
        ),
        Case(
            "a frozen last weight, and a limit of zero",
            {"seed": seed + 3, "sizes": [4, 3], "limit": 0.0, "frozen": True, "left": True},
        ),
    ]


_CUT, _DATA = "a mask that autograd does not know", "a write into what tanh saved"

_BETWEEN, _EARLY, _UNLIMITED = "limited before backward", "limited before the step", "beyond the limit"
_FIRST = "limited before the forward pass"

_SLIPS = ((_CUT, _DATA), (_BETWEEN, _EARLY, _UNLIMITED, _FIRST), CLEARING)

# Slips that are made alone.
_INSIDE, _YES_OR_NO = "the mask inside tanh", "a mask of yes and no"
_BIAS, _STRANGER, _NOT_THE_LAST = "the bias limited", "a new parameter", "not after the last step"

_ALONE = ((_INSIDE, _YES_OR_NO, _BIAS, _STRANGER, _NOT_THE_LAST),)


def _masked_path(case: Case, slips: Slips = frozenset()) -> Path:
    model = started(case)
    limit = case.given["limit"]
    weights = [model.last.weight.detach().clone()]

    def limited(weight: torch.Tensor) -> torch.Tensor:
        return weight.clamp(-limit, limit)

    def loss(inputs: torch.Tensor, mask: torch.Tensor, targets: torch.Tensor) -> Callable[[State], torch.Tensor]:
        def of(state: State) -> torch.Tensor:
            before = inputs @ state["first.weight"].T + state["first.bias"]
            factors = (mask != 0).to(mask) if _YES_OR_NO in slips else mask
            hidden = (before * mask).tanh() if _INSIDE in slips else before.tanh() * factors
            if _CUT in slips:
                hidden = before.tanh() + (hidden - before.tanh()).detach()
            if _DATA in slips:  # the derivative of tanh comes from its saved result, which is masked by now
                hidden = hidden.detach() + (before - before.detach()) * (1 - hidden.detach() ** 2)
            weight = state["last.weight"]
            if _FIRST in slips:
                weight = weight + (limited(weight) - weight).detach()
            result = hidden @ weight.T
            if _BETWEEN in slips:  # the weight that backward finds is not the one of the forward pass
                there = limited(weight).detach()
                result = hidden.detach() @ weight.T + (hidden - hidden.detach()) @ there.T
            return mse_loss(result + state["last.bias"], targets)

        return of

    def within(state: State) -> State:
        steps, bias = len(weights), state["last.bias"]
        still = case.given.get("frozen") or (_STRANGER in slips and steps > 1)
        weight = weights[-1] if still else state["last.weight"]
        if slips & {_BETWEEN, _EARLY, _FIRST}:
            weight = weight + limited(weights[-1]) - weights[-1]
        elif _UNLIMITED not in slips and not (_NOT_THE_LAST in slips and steps == len(case.given["sizes"])):
            weight = limited(weight)
        weights.append(weight)
        return {**state, "last.weight": weight, "last.bias": limited(bias) if _BIAS in slips else bias}

    return descend(
        parameters_of(model),
        [loss(*batch) for batch in masked(case)],
        RATE,
        momentum=case.given.get("momentum", 0.0),
        afterwards=within,
        **found(slips, model),
    )


def _end(case: Case, slips: Slips) -> State:
    return _masked_path(case, slips).end


def _judge(case: Case, seen: Observation) -> Iterator[Finding]:
    right = _masked_path(case)
    yield one_step_each(seen, len(case.given["sizes"]))
    yield from quiet(seen)
    yield floats(seen["returned"], right.losses, "The list of losses")
    yield from right_end(seen, right.end)


def _debrief(seen: Sequence[tuple[Case, Observation]]) -> Iterator[str]:
    case, _ = seen[0]
    right, broken = _masked_path(case).losses[-1], _masked_path(case, frozenset({_DATA, _BETWEEN})).losses[-1]
    yield from work_done(
        seen,
        f"The last loss is {right:.2f}. With both writes through .data it would be {broken:.2f}, and the first "
        "loss the same.",
    )


EXERCISE = Exercise(
    id="fit_masked",
    title="Writes that nobody sees",
    lesson=LESSON,
    difficulty=3,
    minutes=15,
    points=3,
    call="fit_masked(model, optimizer, batches, limit)",
    cases=_cases,
    judge=_judge,
    debrief=_debrief,
    hints=(
        "Two lines write through .data. For each ask what autograd saved before, and still needs.",
        "tanh saved its own result, and the last layer its weight. Writing through .data changes both without raising "
        "the version counter. Make the first write an operation, and move the second.",
        "hidden * mask makes a new tensor and is recorded. Limit the weight after optimizer.step(), when no pass needs "
        "the old numbers any more: under no_grad, with clamp_.",
    ),
    misconceptions=(
        Refused(
            "caught by the counter",
            "A write in place raises the version counter, so backward now refuses where it used to be silently wrong. "
            "The numbers that it needs are still overwritten.",
            words="modified by an inplace operation",
        ),
        Misconception(
            _CUT,
            "The parameters went the way of a gradient that passes the mask as if it were not there.",
            led(_CUT, _SLIPS, _end),
        ),
        Misconception(
            _DATA,
            "A write that autograd did not see changed what tanh had saved. Its derivative was computed from masked "
            "numbers, and the gradient knows nothing of the mask.",
            led(_DATA, _SLIPS, _end),
        ),
        Misconception(
            _BETWEEN,
            "The last layer's weight was limited between the forward pass and backward, so backward multiplied by "
            "other numbers than the forward pass.",
            led(_BETWEEN, _SLIPS, _end),
        ),
        Misconception(
            _EARLY,
            "The weight was limited before the optimizer's step, and the step came on top.",
            led(_EARLY, _SLIPS, _end),
        ),
        Misconception(
            _FIRST,
            "The weight was limited at the beginning of each turn, before the forward pass. So what the last step made "
            "of it was not limited, and the first turn began with another weight than the one that was given.",
            led(_FIRST, _SLIPS, _end),
        ),
        Misconception(
            _UNLIMITED,
            "The weight of the last layer went on beyond the limit after the steps: nothing limited it between them.",
            led(_UNLIMITED, _SLIPS, _end),
        ),
        *uncleared(_SLIPS, _end),
        Misconception(
            _INSIDE,
            "The mask multiplied what goes into tanh. It multiplies what tanh returns: for factors such as 0.5 that is "
            "something else.",
            led(_INSIDE, _ALONE, _end),
        ),
        Misconception(
            _YES_OR_NO,
            "Your mask lets a number pass or stops it. This one holds factors, such as 0.5 and 2: each number is "
            "multiplied by its own.",
            led(_YES_OR_NO, _ALONE, _end),
        ),
        Misconception(
            _BIAS,
            "The bias of the last layer was limited as well. The limit is for its weight alone.",
            led(_BIAS, _ALONE, _end),
        ),
        Misconception(
            _STRANGER,
            "The weight of the last layer did not learn after the first step. So it is where another Parameter takes "
            "its place: the optimizer holds the old one, and moves that. Write into the one that is there.",
            led(_STRANGER, _ALONE, _end),
        ),
        Misconception(
            _NOT_THE_LAST,
            "After the last step nothing limited the weight of the last layer. Limit it after each step, and not only "
            "before the next one.",
            led(_NOT_THE_LAST, _ALONE, _end),
        ),
    ),
)
