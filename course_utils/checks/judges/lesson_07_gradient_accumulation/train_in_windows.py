"""Judging `train_in_windows`: clear in the right place."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from course_utils.checks.compare import close
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
    plain = {"lr": 0.3, "momentum": 0.0, "decay": 0.05}
    rich = {"lr": 0.2, "momentum": 0.7, "decay": 0.05}
    return [
        Case(
            "two windows of three",
            {"seed": seed + 1, "sizes": [4] * 6, "every": 3, "steep": 1e5, "stale": "all", **plain},
        ),
        Case("three windows of two, with momentum", {"seed": seed + 2, "sizes": [3] * 6, "every": 2, **rich}),
        Case(
            "windows of one, and old gradients",
            {"seed": seed + 3, "sizes": [5] * 3, "every": 1, "stale": True, **rich},
        ),
    ]


def _judge(case: Case, seen: Observation) -> Iterator[Finding]:
    well_formed(seen)
    steps, parameters = trained(case, case.given["every"])
    yield from ran_well(case, seen)
    yield from trained_well(case, seen, steps, parameters)
    yield from numbers_right(seen["returned"], [step.loss for step in steps], "window losses")


def _last_losses(case: Case, seen: Observation) -> bool | None:
    """Tell losses that are those of each window's last micro-batch, divided or not; None where windows have one."""
    if case.given["every"] == 1:
        return None
    steps, mine = trained(case, case.given["every"], apart=True)[0], seen["returned"]
    if not isinstance(mine, list) or len(mine) != len(steps):
        return False
    scales = (1.0, 1.0 / case.given["every"])
    pairs = list(zip(mine, steps, strict=True))
    return any(all(close(it, scale * step.losses[-1]) for it, step in pairs) for scale in scales)


def _debrief(seen: Sequence[tuple[Case, Observation]]) -> Iterator[str]:
    case, first = seen[0]
    yield (
        f"In the case {case.name} the check saw {len(first['forwards'])} forwards, {first['passes']} backward passes "
        f"and {len(first['steps'])} steps, and at no time the graphs of two micro-batches."
    )
    yield f"One pass for each window would hold the graphs of {case.given['every']} micro-batches at a time."


EXERCISE = Exercise(
    id="train_in_windows",
    title="Clear in the right place",
    lesson=LESSON,
    difficulty=2,
    minutes=8,
    points=2,
    call="train_in_windows(model, optimizer, micro_batches, every)",
    counted=True,
    cases=_cases,
    judge=_judge,
    hints=(
        "Write down what .grad holds after each line, for one window of three micro-batches. Where does it lose "
        "something that the step needs?",
        "Gradients must be cleared somewhere between a step and the next window's first backward. Before the first "
        "window, too: you do not know what is in .grad when the function is called.",
        "Clear before the loop and right after each step. All micro-batches have one size, so divide each loss by "
        "`every`. Add up loss.item() within the window, append the sum after the step, and start again at 0.",
    ),
    debrief=_debrief,
    misconceptions=(
        Misconception(
            "cleared within the window",
            "At the step, .grad holds the gradient of the window's last micro-batch alone: what the others add was "
            "cleared, or never came.",
            lambda case, seen: (
                weighted(lambda step, every: [0.0] * (len(step.parts) - 1) + [1.0])(case, seen)
                or weighted(lambda step, every: [0.0] * (len(step.parts) - 1) + [1.0 / every])(case, seen)
            ),
        ),
        Misconception(
            "summed, not averaged",
            "At the step, .grad holds the sum of the micro-batches' mean gradients. The gradient of the window's mean "
            "loss is smaller, by the number of micro-batches.",
            weighted(lambda step, every: [1.0] * len(step.parts)),
        ),
        Misconception(
            "the last micro-batch's loss",
            "What you return for a window is the loss of its last micro-batch. The window's loss is the mean over all "
            "of its micro-batches.",
            _last_losses,
        ),
        OLD_GRADIENTS,
        STEP_FOR_EACH,
    ),
)
