"""Judging `read_the_curves`: which repair does each run need?"""

from __future__ import annotations

from functools import partial

from course_utils.checks.exercise import Exercise, Misconception
from course_utils.checks.judges.lesson_09_practical_checklist import LESSON
from course_utils.checks.judges.predictions import one_case
from course_utils.checks.judges.programs import Choices
from course_utils.checks.judges.repairs import first_that_helps
from course_utils.checks.scenes.lesson_09_practical_checklist.read_the_curves import REPAIRS, RUNS, Loop, curve


def _right() -> dict[str, str]:
    best = curve(Loop())[-1]

    def trains(loop: Loop) -> bool:
        return curve(loop)[-1] < 1.05 * best

    return {name: first_that_helps(partial(RUNS.__getitem__, name), REPAIRS, trains) for name in RUNS}


_TABLE = Choices(
    _right,
    {
        "run_1": "It trains at full speed and then stops dead, at 9 times the loss that run 4 comes to: the rate has "
        "become 0 after a quarter of the epochs.",
        "run_2": "It swings. What moves the weights is the sum of all gradients since the start.",
        "run_3": "Not one digit changes, from the first step on: the tensors that the optimizer moves are not the "
        "model's.",
        "run_4": "Fast at first, then slower, then level at the lowest of the six: nothing is wrong.",
        "run_5": "Up in one step at each epoch: there it begins anew. Within an epoch it trains, and ever less, as the "
        "rate falls.",
        "run_6": "It falls by a little in each step, and ever less, as the rate falls. 100 times the rate brings it "
        "where run 4 is.",
    },
)

EXERCISE = Exercise(
    id="read_the_curves",
    title="Six runs in one picture",
    lesson=LESSON,
    difficulty=2,
    minutes=8,
    points=2,
    call=None,
    cases=one_case,
    judge=_TABLE.judge,
    debrief=_TABLE.debrief,
    hints=(
        "Sort the curves first: which never moves, which moves and stops, which goes up again, which only falls? For "
        "those that go up, look whether it happens at regular steps.",
        "A level curve at the start: the steps do not reach the model. A level curve later: the steps have become 0. "
        "An epoch has 4 steps here, so what happens at each epoch shows every 4 steps. Gradients that pile up drive "
        "the weights past their goal and back again.",
        "A rate that is too large ends in numbers without bound, one that is too small in a curve that hardly bends. "
        "Of two curves that become level, the one at the lower loss had the longer way: nothing stopped it before.",
    ),
    misconceptions=(
        Misconception(
            "swinging is a large rate",
            "You took the swings of run 2 for a rate that is too large. Divided by 100, that rate still lets old "
            "gradients pile up, and at the end the loss is far above that of run 4.",
            _TABLE.but(run_2="C"),
        ),
        Misconception(
            "level is converged",
            "You took run 1 for healthy. On the same data run 4 comes to a loss nine times lower.",
            _TABLE.any_but({"run_1": "A"}, {"run_1": "A", "run_4": "F"}),
        ),
        Misconception(
            "standing still is a small rate",
            "You took run 3 for a rate that is too small. Such a rate moves the weights, if only by a little; here not "
            "one digit of the loss changes.",
            _TABLE.any_but({"run_3": "D"}, {"run_3": "D", "run_6": "E"}),
        ),
        Misconception(
            "teeth are piled up gradients",
            "You took the teeth of run 5 for gradients that pile up. They come at regular steps, once an epoch.",
            _TABLE.any_but({"run_5": "B"}, {"run_5": "B", "run_2": "G"}, {"run_5": "B", "run_2": "C"}),
        ),
    ),
)
