"""Judging `epoch_in_windows`: an epoch with a last window that is not full."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from course_utils.checks.data import Case, Observation
from course_utils.checks.exercise import Exercise, Finding, Misconception
from course_utils.checks.judges.lesson_07_gradient_accumulation import LESSON
from course_utils.checks.judges.lesson_07_gradient_accumulation.loops import (
    numbers_right,
    ran_well,
    trained_well,
    well_formed,
)
from course_utils.checks.judges.lesson_07_gradient_accumulation.windows import (
    OLD_GRADIENTS,
    STEP_FOR_EACH,
    trained,
    weighted,
)


def _cases(seed: int) -> list[Case]:
    plain = {"lr": 0.3, "momentum": 0.0, "decay": 0.0}
    rich = {"lr": 0.2, "momentum": 0.7, "decay": 0.05}
    return [
        Case("one size, a last window that is not full", {"seed": seed + 1, "sizes": [4] * 5, "every": 3, **rich}),
        Case("uneven sizes, windows of one", {"seed": seed + 2, "sizes": [5, 2, 3, 1, 4, 6], "every": 1, **rich}),
        Case(
            "uneven in both ways",
            {"seed": seed + 3, "sizes": [6, 1, 3, 4, 5, 2, 3], "every": 3, "steep": 1e5, **plain},
        ),
        Case(
            "fewer micro-batches than a window, and old gradients",
            {"seed": seed + 4, "sizes": [3, 5], "every": 4, "stale": "all", **plain, "decay": 0.05},
        ),
    ]


def _judge(case: Case, seen: Observation) -> Iterator[Finding]:
    well_formed(seen)
    steps, parameters = trained(case, case.given["every"])
    yield from ran_well(case, seen)
    yield from trained_well(case, seen, steps, parameters)
    every, ahead = case.given["every"], seen["ahead"]
    text = f"Before a forward, {ahead} micro-batches had been read and not used; at most {every + 1} may be, a window "
    text += "and one more."  # which tells whether a window was the last
    one_by_one = seen["forwards"] == case.given["sizes"]  # otherwise a forward may have used several
    yield Finding("ahead", ahead <= every + 1 or not one_by_one, text)
    yield from numbers_right(seen["returned"], [step.loss for step in steps], "window losses")


def _dropped(case: Case, seen: Observation) -> bool:
    full, rest = divmod(len(case.given["sizes"]), case.given["every"])
    after = [step["after"] for step in seen["steps"]]
    return rest > 0 and after == [case.given["every"] * number for number in range(1, full + 1)]


def _debrief(seen: Sequence[tuple[Case, Observation]]) -> Iterator[str]:
    case, it = seen[0]
    ahead = it["ahead"]
    read = "1 micro-batch that was" if ahead == 1 else f"{ahead} micro-batches that were"
    yield f"In the case {case.name} the check saw at most {read} read and not used, of {len(case.given['sizes'])}."
    if ahead > 1:
        yield "Sums of losses, with .grad divided before the step, need no reading ahead."
    else:
        yield "Who reads a whole window first knows the weights before its first backward pass, and keeps its inputs."


EXERCISE = Exercise(
    id="epoch_in_windows",
    title="An epoch with a last window that is not full",
    lesson=LESSON,
    difficulty=4,
    minutes=20,
    points=4,
    call="epoch_in_windows(model, optimizer, batches, every)",
    counted=True,
    cases=_cases,
    judge=_judge,
    hints=(
        "The weight of a micro-batch is its share of the window's samples. You can know that share before the "
        "window's first backward, or repair the gradients after its last one.",
        "Either read a window of batches into a list first, or use sums: backward through the sum of the losses of the "
        "samples, and divide .grad by the number of samples before the step.",
        "itertools.islice(reader, every) on reader = iter(batches) gives the next window, an empty list at the end. "
        "Count its samples. Clear; for each micro-batch take cross_entropy(..., reduction='sum') / samples, backward, "
        "and add item() to the window's loss; step; append.",
    ),
    debrief=_debrief,
    misconceptions=(
        Misconception(
            "the last window dropped",
            "Your optimizer made no step for the last window, which is not full. Its samples taught nothing.",
            _dropped,
        ),
        Misconception(
            "divided by a full window",
            "In the first window that went wrong, each micro-batch's mean loss was divided by the length of a full "
            "window.",
            weighted(lambda step, every: [1 / every] * len(step.parts)),
        ),
        Misconception(
            "all micro-batches alike",
            "In the first window that went wrong, each micro-batch got the same weight. They have different numbers of "
            "samples.",
            weighted(lambda step, every: [1 / len(step.parts)] * len(step.parts)),
        ),
        Misconception(
            "a sum of means",
            "In the first window that went wrong, .grad holds the sum of the micro-batches' mean gradients, with "
            "nothing divided.",
            weighted(lambda step, every: [1.0] * len(step.parts)),
        ),
        Misconception(
            "a sum over samples",
            "In the first window that went wrong, .grad holds the gradient of the sum of all its losses. The window's "
            "loss is their mean.",
            weighted(lambda step, every: [float(size) for size in step.sizes]),
        ),
        OLD_GRADIENTS,
        STEP_FOR_EACH,
        Misconception(
            "a step too many",
            "Your optimizer made one step more than there are windows.",
            lambda case, seen: len(seen["steps"]) == -(-len(case.given["sizes"]) // case.given["every"]) + 1,
        ),
    ),
)
