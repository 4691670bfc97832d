"""Judging `predict_second_pass`: which last line raises?"""

from __future__ import annotations

from collections.abc import Callable

import torch

from course_utils.checks.data import Observation
from course_utils.checks.exercise import Exercise, Misconception
from course_utils.checks.judges.lesson_04_retain_graph import LESSON
from course_utils.checks.judges.lesson_04_retain_graph.statements import RETAIN, Names, backward, grad
from course_utils.checks.judges.predictions import Table, one_case, raises


def _two_losses() -> Names:
    x = torch.rand(2, 3, requires_grad=True)
    h = x.exp()
    return {"x": x, "h": h, "a": h.sin().sum(), "b": (h * h).sum()}


def _run(*statements: Callable[[Names], object]) -> Callable[[], None]:
    def action() -> None:
        names = _two_losses()
        for statement in statements:
            statement(names)

    return action


def _anew(names: Names) -> None:
    h = names["x"].exp()
    names["b"] = (h * h).sum()


def _write(names: Names) -> None:
    with torch.no_grad():
        names["x"].mul_(0.5)


def _written_sine() -> None:
    x = torch.rand(2, 3, requires_grad=True)
    h = x.sin()
    a, b = h.sum(), (h * h).sum()
    a.backward(retain_graph=True)
    _write({"x": x})
    b.backward()


_SECOND: dict[str, Callable[[], None]] = {
    "separate": _run(backward("a"), backward("b")),
    "first_retains": _run(backward("a", **RETAIN), backward("b")),
    "second_retains": _run(backward("a"), backward("b", **RETAIN)),
    "in_one_pass": _run(lambda names: (names["a"] + names["b"]).backward()),
    "a_third_pass": _run(backward("a", **RETAIN), backward("b"), backward("a")),
    "stops_at_h": _run(grad("a", "h"), backward("b")),
    "a_again": _run(grad("a", "h"), backward("a")),
    "forward_again": _run(backward("a"), _anew, backward("b")),
    "written_exp": _run(backward("a", **RETAIN), _write, backward("b")),
    "written_sin": _written_sine,
}

_REASONS = {
    "separate": "Both passes run exp, and the first freed its result.",
    "first_retains": "The first pass left everything where it was, for the second.",
    "second_retains": "The flag of the second pass comes too late: the first has freed what exp saved.",
    "in_one_pass": "One pass runs exp once, with the sum of both gradients.",
    "a_third_pass": "The pass of b had no flag and freed what exp saved, which the third needs.",
    "stops_at_h": "The first pass ended at h. It ran sin, and not exp.",
    "a_again": "The first pass ran sin and freed what it saved; the second runs sin again.",
    "forward_again": "The new h has a new exp node, with a result of its own.",
    "written_exp": "Writing to x hurts nobody: exp keeps its result, and no node keeps x.",
    "written_sin": "sin keeps x, and backward finds that x was written to since.",
}

_SECOND_PASS = Table(lambda: {name: raises(action) for name, action in _SECOND.items()}, _REASONS)


def _said(seen: Observation, **entries: bool) -> bool:
    """Say whether these entries were predicted so, in a table that is not turned round, or one value, as a whole."""
    value, right = seen["value"], _SECOND_PASS.right()
    if not isinstance(value, dict) or all(value.get(name) is (not said) for name, said in right.items()):
        return False
    if all(value.get(name) is True for name in right):
        return False
    return all(value.get(name) is said for name, said in entries.items())


EXERCISE = Exercise(
    id="predict_second_pass",
    title="Which last line raises?",
    lesson=LESSON,
    difficulty=2,
    minutes=8,
    points=2,
    call=None,
    cases=one_case,
    judge=_SECOND_PASS.judge,
    debrief=_SECOND_PASS.debrief,
    hints=(
        "For each pass list the nodes that it runs, and say which of them lose their saved tensors.",
        "The flag belongs to the pass that carries it: it says what that pass leaves behind. A pass down to h does "
        "not run the node that made h.",
        "exp keeps its result, sin its input. Raising needs one of two things: a node that runs again without what it "
        "saved, or a node whose saved tensor was written to. x is saved in one of the last two entries only.",
    ),
    misconceptions=(
        Misconception(
            "the flag of the later pass",
            "You gave the flag's effect to the wrong pass. It does not bring back what an earlier pass has freed; it "
            "decides what its own pass leaves behind.",
            lambda case, seen: _said(seen, separate=True, first_retains=True, second_retains=False),
        ),
        Misconception(
            "retained for good",
            "You took one retain_graph=True to hold for the rest of the graph's life. The next pass without it frees.",
            lambda case, seen: _said(seen, a_third_pass=False, separate=True, second_retains=True, first_retains=False),
        ),
        Misconception(
            "two graphs",
            "You took the two losses of one forward pass for two graphs. They share exp, and the first pass that comes "
            "to it without retain_graph frees its result.",
            lambda case, seen: _said(
                seen, separate=False, second_retains=False, a_third_pass=False, first_retains=False, a_again=True
            ),
        ),
        Misconception(
            "every pass frees all",
            "You let a pass free what it never reached. A pass down to h leaves alone what made h, and a new forward "
            "brings a new graph.",
            lambda case, seen: _said(seen, stops_at_h=True, forward_again=True),
        ),
        Misconception(
            "any write",
            "You said that any write to x between two passes raises. It does where a node that still has to run saved "
            "x itself.",
            lambda case, seen: _said(seen, written_exp=True, written_sin=True),
        ),
    ),
)
