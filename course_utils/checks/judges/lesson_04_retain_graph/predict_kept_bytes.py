"""Judging `predict_kept_bytes`: how much is left after the last pass?"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import isclose
from typing import Any

import torch

from course_utils.checks.data import Case, Observation
from course_utils.checks.exercise import Exercise, Finding, Misconception
from course_utils.checks.judges.lesson_04_retain_graph import LESSON
from course_utils.checks.judges.lesson_04_retain_graph.statements import RETAIN, Names, backward, grad
from course_utils.checks.judges.predictions import Table, of_a_kind, one_case
from course_utils.graph.saved import saved


def _kept(*statements: Callable[[Names], object], asked: tuple[str, ...] = ("a", "b")) -> int:
    x = torch.rand(100, requires_grad=True)
    h = x.exp()
    names: Names = {"x": x, "h": h, "a": h.sin().exp().sum(), "b": h.tanh().sum()}
    for statement in statements:
        statement(names)
    return saved(*(names[name] for name in asked)).bytes


def _bytes() -> dict[str, Any]:
    return {
        "nothing": _kept(),
        "a_frees": _kept(backward("a")),
        "a_retains": _kept(backward("a", **RETAIN)),
        "a_retains_b_frees": _kept(backward("a", **RETAIN), backward("b")),
        "b_retains_a_frees": _kept(backward("b", **RETAIN), backward("a")),
        "in_one_pass": _kept(lambda names: (names["a"] + names["b"]).backward()),
        "down_to_h": _kept(grad("a", "h")),
        "without_a": _kept(backward("a", **RETAIN), asked=("b",)),
    }


def _counted(seen: Observation, **entries: float) -> bool:
    value = seen["value"]
    return isinstance(value, dict) and all(
        isinstance(value.get(name), int | float) and isclose(value[name], said) for name, said in entries.items()
    )


def _in_proportion(seen: Observation) -> bool:
    right, value = _KEPT.right(), seen["value"]
    factor = value["nothing"] / right["nothing"]
    return factor not in (0, 1) and _counted(seen, **{name: factor * entry for name, entry in right.items()})


_REASONS = {
    "nothing": "h, which exp and sin keep and which counts once, the result of the second exp, and that of tanh.",
    "a_frees": "The pass ran sin, both exp and their sum. tanh did not run and keeps its result.",
    "a_retains": "The pass retained: all three tensors are still there.",
    "a_retains_b_frees": "The pass of b ran tanh and the first exp. sin still keeps h, the second exp its result.",
    "b_retains_a_frees": "The pass of a ran everything but tanh, which keeps its result.",
    "in_one_pass": "One pass ran every node.",
    "down_to_h": "The pass ran sin and the second exp. The first exp keeps h, and tanh its result.",
    "without_a": "Behind b are the first exp, with h, and tanh, with its result.",
}

_KEPT = Table(_bytes, _REASONS)


def _judge(case: Case, seen: Observation) -> Iterator[Finding]:
    yield from of_a_kind(seen["value"], _REASONS, (str, bool, type(None)), "a number, without quotes")
    yield from _KEPT.judge(case, seen)


EXERCISE = Exercise(
    id="predict_kept_bytes",
    title="How much is left after the last pass?",
    lesson=LESSON,
    difficulty=2,
    minutes=8,
    points=2,
    call=None,
    cases=one_case,
    judge=_judge,
    debrief=_KEPT.debrief,
    hints=(
        "Write down for each operation which tensor it keeps. Each tensor here has 400 bytes, and a storage counts "
        "once, however many nodes keep it.",
        "A pass frees only in nodes that it runs. A storage is gone when no node keeps it any more.",
        "exp over x keeps h, sin keeps h, the second exp keeps its result, tanh keeps its result. Strike out, for each "
        "entry, the nodes that ran in a pass without the flag; then count the different tensors that are left.",
    ),
    misconceptions=(
        Misconception(
            "the last pass clears all",
            "You let the last pass clear the other loss's branch as well. It frees what it ran, and nothing else.",
            lambda case, seen: _counted(seen, nothing=1200, a_retains_b_frees=0, b_retains_a_frees=0),
        ),
        Misconception(
            "counted by node",
            "You counted h once for each node that keeps it. It is one piece of memory.",
            lambda case, seen: _counted(seen, nothing=1600, a_retains=1600, a_retains_b_frees=800, without_a=800),
        ),
        Misconception(
            "h survives",
            "After a.backward() you counted one tensor too many. That pass ran both nodes that had saved h. The name h "
            "keeps the tensor, but that is not what the graph keeps.",
            lambda case, seen: _counted(seen, nothing=1200, a_frees=800),
        ),
        Misconception(
            "not 400 bytes",
            "Your entries are the right ones but for one factor, the same in each. You count the right number of "
            "tensors, and not 400 bytes for each.",
            lambda case, seen: _in_proportion(seen),
        ),
    ),
)
