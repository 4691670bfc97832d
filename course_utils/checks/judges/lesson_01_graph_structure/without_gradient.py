"""Judging `without_gradient`: name the parameters that will not learn."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from itertools import pairwise
from typing import Any

import torch

from course_utils.checks.compare import describe, listed
from course_utils.checks.data import Array, Case, Observation, Other, Value
from course_utils.checks.exercise import Exercise, Finding, Misconception
from course_utils.checks.judges.lesson_01_graph_structure import LESSON
from course_utils.checks.judges.lesson_01_graph_structure.reading import abridged, edge_refused, no_passes, recursion
from course_utils.checks.scenes.lesson_01_graph_structure.without_gradient import model_and_loss


def _frozen_left_out(case: Case, seen: Observation) -> bool:
    live = _by_flag(case, True)
    return bool(seen["returned"] == [name for name in _names_for(case) if name in live] != _names_for(case))


def _frozen_too_late(case: Case, seen: Observation) -> bool:
    late = case.given.get("frozen after", ())
    return bool(late) and bool(seen["returned"] == [name for name in _names_for(case) if name not in late])


def _nothing_without_a_graph(case: Case, seen: Observation) -> bool:
    return bool(case.given["model"] == "no grad" and seen["returned"] == [])


def _only_frozen(case: Case, seen: Observation) -> bool:
    return bool(seen["returned"] == sorted(_by_flag(case, False)) != _names_for(case))


def _judge_names(case: Case, seen: Observation) -> Iterator[Finding]:
    received, learns = seen["returned"], _learning(case)
    if not isinstance(received, list):
        yield Finding("type", False, f"What you returned is {describe(received)}; expected a list of names.")
        return
    odd = [item for item in received if type(item) is not str]
    if odd:
        yield Finding("type", False, f"Your list holds {_odd(odd[0])}; expected names of parameters, as text.")
        return
    unknown = sorted(set(received) - set(learns))
    yield Finding("parameters", not unknown, f"You list {abridged(unknown)}: the model has no parameter of that name.")
    extra = sorted(name for name in set(received) if learns.get(name, False))
    yield Finding("extra", not extra, f"You list {abridged(extra)}, where backward would bring a gradient.")
    missing = sorted(name for name in learns if not learns[name] and name not in received)
    yield Finding("missing", not missing, f"You do not list {abridged(missing)}, where backward brings no gradient.")
    yield Finding("once", len(set(received)) == len(received), "Your list holds a name more than once.")
    falls = [f"{one} before {other}" for one, other in pairwise(received) if one > other]
    message = f"Your list is not in the order in which sorted() puts texts: it has {falls[0]}." if falls else ""
    yield Finding("sorted", not falls, message)
    yield no_passes(seen)
    graded = seen["graded"]
    yield Finding("grad", not graded, f"Your function changed .grad of {listed(graded)}.")
    flags = seen["flags"]
    yield Finding("flags", not flags, f"Your function changed requires_grad of {listed(flags)}.")
    message = "Your function switched the model, or a part of it, between training and evaluation."
    yield Finding("mode", not seen["mode"], message)
    yield Finding("hooks", not seen["hooks"], "Your function changed which hooks hang on the model.")
    moved = seen["moved"]
    yield Finding("numbers", not moved, f"Your function changed the numbers in {listed(moved)}.")


def _buffers_too(case: Case, seen: Observation) -> bool:
    received, buffers = seen["returned"], dict(model_and_loss(case)[0].named_buffers())
    if not isinstance(received, list) or any(type(name) is not str for name in received):
        return False
    return [name for name in received if name not in buffers] == _names_for(case) != received


def _second_name_left_out(case: Case, seen: Observation) -> bool:
    model, _ = model_and_loss(case)
    once = dict(model.named_parameters())
    return bool(seen["returned"] == [name for name in _names_for(case) if name in once] != _names_for(case))


def _by_stored_grad(case: Case, seen: Observation) -> bool:
    filled = case.given.get("has grad", ())
    held = (*filled, *case.given.get("zeroed", ()))
    without = [[name for name in sorted(_learning(case)) if name not in known] for known in (held, filled)]
    return seen["returned"] in without and seen["returned"] != _names_for(case)


def _compared_numbers(case: Case, seen: Observation) -> bool:
    """Tell whether names are missing because another parameter, one that learns, holds the same numbers."""
    learns, parameters = _learning(case), dict(model_and_loss(case)[0].named_parameters(remove_duplicate=False))
    known = [parameters[name] for name in learns if learns[name]]
    others = [name for name in _names_for(case) if not any(torch.equal(parameters[name], it) for it in known)]
    return bool(seen["returned"] == others != _names_for(case))


def _model_cases(seed: int) -> list[Case]:
    x = Array.of(torch.rand(2, 3, generator=torch.Generator().manual_seed(seed)) + 0.2)
    cases: dict[str, dict[str, Any]] = {
        "everything learns": {"model": "plain"},
        "a frozen layer in the middle": {"model": "frozen middle", "has grad": ["2.weight"]},
        "a cut, and a layer nobody uses": {"model": "cut and unused"},
        "a cut on one of two paths": {"model": "cut on one path"},
        "tied weights": {"model": "tied"},
        "a loss term times zero": {"model": "switched off"},
        "a loss without a graph": {"model": "no grad"},
        ".grad from an earlier pass": {"model": "cut and unused", "has grad": ["stem.weight", "spare.bias"]},
        "zeros in .grad": {"model": "cut and unused", "zeroed": ["head.weight", "stem.weight"]},
        "the second loss of one model": {"model": "cut and unused", "has grad": ["head.bias"], "earlier": True},
        "flags changed after the forward pass": {
            **{"model": "frozen middle", "unfrozen after": ["2.bias"], "frozen after": ["0.weight"]},
        },
        "a recurrent loop": {"model": "unrolled"},
        "two layers with equal numbers": {"model": "equal numbers"},
        "two parameters in one memory": {"model": "one memory"},
        "parameters without numbers": {"model": "without numbers"},
        "a layer with buffers": {"model": "with buffers"},
        "a frozen layer that is used twice": {"model": "layer twice"},
        "40 doublings, and twelve layers": {"model": "doubled"},
        "a chain of 3,500 operations": {"model": "chained"},
    }
    return [Case(name, {**given, "x": x}) for name, given in cases.items()]


def _ran_backward(case: Case, seen: Observation) -> bool:
    return bool(seen["passes"])


def _debrief(seen: Sequence[tuple[Case, Observation]]) -> Iterator[str]:
    listed_ones = {case.name: set(found["returned"]) for case, found in seen}
    frozen = {case.name: set(_by_flag(case, False)) for case, _ in seen}
    cut = "a cut, and a layer nobody uses"
    yield (
        f"In the case of {cut}, {len(listed_ones[cut])} parameters get no gradient, and requires_grad is True for "
        f"{len(listed_ones[cut] - frozen[cut])} of them: the flag alone would have said nothing."
    )
    yield "Your function ran no backward pass. So every loss can still run its own, and no .grad was touched."


EXERCISE = Exercise(
    id="without_gradient",
    title="Name the parameters that will not learn",
    lesson=LESSON,
    difficulty=4,
    minutes=20,
    points=4,
    call="without_gradient(model, loss)",
    reaches=("next_functions", "_parameters", "_modules"),
    cases=_model_cases,
    judge=_judge_names,
    hints=(
        "Which tensors does the graph of the loss end in? Compare them with the model's parameters, "
        "as objects and not by their numbers.",
        "named_parameters() gives a shared parameter under its first name only. remove_duplicate=False gives every "
        "name. And the flag requires_grad may have changed since the graph was recorded.",
        "Collect the ids of the leaves behind the loss that require a gradient now. Go through "
        "model.named_parameters(remove_duplicate=False), and keep each name whose parameter's id is not among them. "
        "Sort the names.",
    ),
    misconceptions=(
        Misconception(
            "frozen only",
            "You listed the parameters with requires_grad=False. A parameter that requires a gradient gets none either "
            "where the graph of the loss does not reach it.",
            _only_frozen,
        ),
        Misconception(
            "frozen left out",
            "You left out the parameters with requires_grad=False. They get no gradient from this loss either.",
            _frozen_left_out,
        ),
        Misconception(
            "second name left out",
            "A parameter that two layers share has two names, and you list only the first.",
            _second_name_left_out,
        ),
        Misconception(
            "ran backward",
            "Your function runs a backward pass to find out. The graph tells it before any pass: "
            "nothing has to be run, and nothing has to be freed.",
            _ran_backward,
            ended=("RuntimeError",),
            ended_in=("a loss without a graph",),
            ended_saying="does not require grad and does not have a grad_fn",
        ),
        Misconception(
            "reached is enough",
            "You went by the graph alone. A parameter that was frozen after the forward pass is still in the graph, "
            "and its node gives it no gradient.",
            _frozen_too_late,
        ),
        Misconception(
            "equal numbers",
            "You compare numbers. Two different parameters can hold equal numbers; compare the objects.",
            _compared_numbers,
        ),
        Misconception(
            "buffers",
            "You list buffers. The names asked for are those of parameters.",
            _buffers_too,
        ),
        Misconception(
            "a loss without a graph",
            "A loss without a graph gives no parameter a gradient. All names belong in the list.",
            _nothing_without_a_graph,
        ),
        Misconception(
            "stored .grad",
            "You looked at .grad. It tells what earlier passes left.",
            _by_stored_grad,
        ),
        recursion("search"),
        edge_refused("the names of all parameters", "a loss without a graph"),
    ),
    debrief=_debrief,
)


def _learning(case: Case) -> dict[str, bool]:
    """Say for each name of a parameter whether a real backward pass leaves a gradient there."""
    changes = (tuple(case.given.get(f"{what} after", ())) for what in ("frozen", "unfrozen"))
    return _learning_names(case.given["model"], case.given["x"], *changes)


@cache  # building the longest graphs takes longer than all the rest
def _learning_names(name: str, x: Array, frozen: tuple[str, ...], unfrozen: tuple[str, ...]) -> dict[str, bool]:
    given = {"model": name, "x": x, "frozen after": frozen, "unfrozen after": unfrozen}
    model, loss = model_and_loss(Case("", given))
    if loss.requires_grad:
        torch.autograd.backward(loss)
    return {name: it.grad is not None for name, it in model.named_parameters(remove_duplicate=False)}


def _names_for(case: Case) -> list[str]:
    return sorted(name for name, learns in _learning(case).items() if not learns)


def _by_flag(case: Case, flag: bool) -> list[str]:
    model, _ = model_and_loss(case)
    return [name for name, it in model.named_parameters(remove_duplicate=False) if it.requires_grad is flag]


def _odd(item: Value) -> str:
    return f"a {item.kind}" if isinstance(item, Other) else describe(item)
