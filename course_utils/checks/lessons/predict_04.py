"""Predictions of lesson 04, settled by running what the exercise shows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from course_utils.checks.data import Observation
from course_utils.checks.exercise import Exercise, Finding, Misconception
from course_utils.checks.lessons.predictions import Table, one_case, raises
from course_utils.graph.saved import saved

LESSON = "04_retain_graph"
Names = dict[str, Any]


def as_found(seen: Observation) -> Finding:
    """Judge what an answer must leave as it found it: modes, flags, hooks, settings."""
    left = seen["left"]
    named = f": {', '.join(map(str, left))}" if isinstance(left, list) and left else ""
    return Finding("left", left == [], f"After your function, something is not as it was before{named}.")


# Which last line raises?


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


def _backward(name: str, **options: Any) -> Callable[[Names], object]:
    return lambda names: names[name].backward(**options)


def _grad(of: str, at: str, **options: Any) -> Callable[[Names], object]:
    return lambda names: torch.autograd.grad(names[of], names[at], **options)


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


RETAIN = {"retain_graph": True}
SECOND: dict[str, Callable[[], None]] = {
    "separate": _run(_backward("a"), _backward("b")),
    "first_retains": _run(_backward("a", **RETAIN), _backward("b")),
    "second_retains": _run(_backward("a"), _backward("b", **RETAIN)),
    "in_one_pass": _run(lambda names: (names["a"] + names["b"]).backward()),
    "a_third_pass": _run(_backward("a", **RETAIN), _backward("b"), _backward("a")),
    "stops_at_h": _run(_grad("a", "h"), _backward("b")),
    "a_again": _run(_grad("a", "h"), _backward("a")),
    "forward_again": _run(_backward("a"), _anew, _backward("b")),
    "create_graph": _run(_grad("a", "x", create_graph=True), _backward("b")),
    "written_exp": _run(_backward("a", **RETAIN), _write, _backward("b")),
    "written_sin": _written_sine,
}


SECOND_PASS = Table(lambda: {name: raises(action) for name, action in SECOND.items()})


def _said(seen: Observation, **entries: bool) -> bool:
    return isinstance(seen["value"], dict) and all(seen["value"].get(name) is said for name, said in entries.items())


predict_second_pass = Exercise(
    id="predict_second_pass",
    title="Which last line raises?",
    lesson=LESSON,
    difficulty=1,
    minutes=8,
    points=2,
    call=None,
    cases=one_case,
    judge=SECOND_PASS.judge,
    hints=(
        "For each pass list the nodes that it runs, and say which of them lose their saved tensors.",
        "The flag belongs to the pass that carries it: it says what that pass leaves behind. A pass down to h does "
        "not run the node that made h. create_graph=True retains as well.",
        "exp keeps its result, sin its input. Raising needs one of two things: a node that runs again without what it "
        "saved, or a node whose saved tensor was written to. x is saved in one of the last two entries only.",
    ),
    misconceptions=(
        Misconception(
            "the flag of the later pass",
            "You gave the flag's effect to the wrong pass. It does not bring back what an earlier pass has freed; it "
            "decides what its own pass leaves behind.",
            lambda case, seen: _said(seen, first_retains=True, second_retains=False),
        ),
        Misconception(
            "retained for good",
            "You took one retain_graph=True to hold for the rest of the graph's life. The next pass without it frees.",
            lambda case, seen: _said(seen, a_third_pass=False),
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

# How many bytes are kept?


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
        "a_frees": _kept(_backward("a")),
        "a_retains": _kept(_backward("a", **RETAIN)),
        "a_retains_b_frees": _kept(_backward("a", **RETAIN), _backward("b")),
        "b_retains_a_frees": _kept(_backward("b", **RETAIN), _backward("a")),
        "in_one_pass": _kept(lambda names: (names["a"] + names["b"]).backward()),
        "down_to_h": _kept(_grad("a", "h")),
        "without_a": _kept(_backward("a", **RETAIN), asked=("b",)),
    }


def _counted(seen: Observation, **entries: int) -> bool:
    value = seen["value"]
    return isinstance(value, dict) and all(
        isinstance(value.get(name), int | float) and value[name] == said for name, said in entries.items()
    )


predict_kept_bytes = Exercise(
    id="predict_kept_bytes",
    title="How much is left after the last pass?",
    lesson=LESSON,
    difficulty=2,
    minutes=10,
    points=2,
    call=None,
    cases=one_case,
    judge=Table(_bytes).judge,
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
            lambda case, seen: _counted(seen, a_retains_b_frees=0, b_retains_a_frees=0),
        ),
        Misconception(
            "counted by node",
            "You counted h once for each node that keeps it. It is one piece of memory.",
            lambda case, seen: _counted(seen, nothing=1600),
        ),
        Misconception(
            "h survives",
            "After a.backward() you counted one tensor too many. That pass ran both nodes that had saved h. The name h "
            "keeps the tensor, but that is not what the graph keeps.",
            lambda case, seen: _counted(seen, a_frees=800),
        ),
    ),
)
