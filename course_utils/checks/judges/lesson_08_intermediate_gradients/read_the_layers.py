"""Judging `read_the_layers`: which repair does each network need?"""

from __future__ import annotations

from functools import partial

from course_utils.checks.exercise import Exercise, Misconception
from course_utils.checks.judges.lesson_08_intermediate_gradients import LESSON
from course_utils.checks.judges.predictions import one_case
from course_utils.checks.judges.programs import Choices
from course_utils.checks.judges.repairs import first_that_helps
from course_utils.checks.scenes.lesson_08_intermediate_gradients.read_the_layers import (
    REPAIRS,
    Deep,
    networks,
    sizes,
)


def _level(net: Deep) -> bool:
    """Return whether each layer's weight gets a gradient, none of them 10 times larger than another."""
    measured = [0.0 if size is None else size for size in sizes(net)]
    return min(measured) > 0 and max(measured) < 10 * min(measured)


def _net(name: str) -> Deep:
    return networks()[name]


_TABLE = Choices(
    lambda: {name: first_that_helps(partial(_net, name), REPAIRS, _level) for name in networks()},
    {
        "net_1": "The fall is the same in each layer, and so is its cause: a sigmoid's slope is at most 1/4.",
        "net_2": "One weight alone has no gradient, and the pass went on to those before it: that weight is frozen.",
        "net_3": "All eight bars are of one size. There is nothing to repair.",
        "net_4": "A pass came to all, and brought zeros: a ReLU whose numbers are all negative sends back nothing. It "
        "gives zeros, too, so the gradient of the next weight is zero as well.",
        "net_5": "No pass came to the first three. The way ends before layer 4.",
        "net_6": "Layer 3 is the small one. Its weights shrink what goes on to the later ones and what goes "
        "back to the first two. Only its own weight gets a full input and a full gradient.",
    },
)

EXERCISE = Exercise(
    id="read_the_layers",
    title="Six networks in one picture",
    lesson=LESSON,
    difficulty=2,
    minutes=8,
    points=2,
    call=None,
    cases=one_case,
    judge=_TABLE.judge,
    debrief=_TABLE.debrief,
    hints=(
        "Read each panel from the right, as the gradient goes. Is there a bar in each layer? Where one is missing, "
        "does the panel say none or 0?",
        "none: no pass came to that weight. If the layers before it have bars, the pass went by, and only that weight "
        "wanted no gradient. If all before it are without, the way ends there. 0: a pass came and brought nothing, as "
        "through a ReLU that is at 0 for every sample.",
        "Bars of one size need no repair. A fall by one factor in each layer has a cause in each layer: the slope of "
        "the activation. For one bar that stands out, remember that a weight's gradient is made of the layer's input "
        "and of what comes back to its output. Its own weights are in neither, but in those of all other layers.",
    ),
    misconceptions=(
        Misconception(
            "frozen and cut exchanged",
            "You took a frozen weight for a cut, and a cut for a frozen weight. Freezing stops one weight's own "
            "gradient, and the pass goes on. A cut stops the pass.",
            _TABLE.but(net_2="C", net_5="B"),
        ),
        Misconception(
            "zero is none",
            "You took gradients of 0 for a cut. Behind a cut there is no gradient, not even 0.",
            _TABLE.but(net_4="C"),
        ),
        Misconception(
            "one tall bar is no fault",
            "You found nothing wrong in net 6. Seven of its bars are a thousandth of the eighth.",
            _TABLE.but(net_6="A"),
        ),
        Misconception(
            "a steady fall is one small layer",
            "You explained the steady fall in net 1 by small weights in one layer. One layer does not make the same "
            "step in each.",
            _TABLE.but(net_1="E"),
        ),
    ),
)
