"""Judging `leaves_of`: find the leaves an output depends on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cache

import torch

from course_utils.checks.compare import describe, listed
from course_utils.checks.data import Case, Observation
from course_utils.checks.exercise import Exercise, Finding, Misconception
from course_utils.checks.judges.lesson_01_graph_structure import LESSON
from course_utils.checks.judges.lesson_01_graph_structure.programs import random_program
from course_utils.checks.judges.lesson_01_graph_structure.reading import edge_refused, no_passes, recursion, tagged
from course_utils.checks.scenes.lesson_01_graph_structure.graphs import graph_of, write_to
from course_utils.graph.trace import nodes_behind


def _returned_itself(case: Case, seen: Observation) -> bool:
    return bool(case.given.get("shape") == "no graph" and seen["returned"] == [["itself", ""]])


def _frozen_left_out(case: Case, seen: Observation) -> bool:
    return bool(case.given.get("shape") == "frozen later" and seen["returned"] == ["x"])


def _leaves_cases(seed: int) -> list[Case]:
    return [
        Case("a leaf", {"shape": "leaf"}),
        Case("a tensor without a graph", {"shape": "no graph"}),
        Case("an input that needs no gradient", {"shape": "constants"}),
        Case("a leaf that is used twice", {"shape": "diamond"}),
        Case("a detached branch", {"shape": "detached"}),
        Case("operations with several outputs", {"shape": "several outputs"}),
        Case("the last of several outputs", {"shape": "last output"}),
        Case("a view that was written to", {"shape": "written view"}),
        Case("a leaf frozen after the forward pass", {"shape": "frozen later"}),
        Case("a leaf without numbers", {"shape": "no numbers"}),
        Case("called twice", {"shape": "diamond", "calls": 2}),
        Case("called again after a write", {"shape": "diamond", "written": True}),
        Case("a random graph", random_program(seed, 5, 12)),
        Case("another random graph", random_program(seed + 1, 5, 12)),
        Case("40 doublings", {"shape": "doublings"}),
        Case("a recurrent loop", {"shape": "recurrent"}),
        Case("a chain of 3,500 operations", {"shape": "chain"}),
    ]


def _judge_leaves_of(case: Case, seen: Observation) -> Iterator[Finding]:
    items, expected = seen["returned"], _leaves_for(case)
    if not isinstance(items, list):
        yield Finding("type", False, f"What you returned is {describe(items)}; expected a list of leaves.")
        return
    copies = [item[1] for item in items if tagged(item, "copy")]
    names = listed(dict.fromkeys(copies))
    message = (
        f"Your list holds other objects than the leaves of this case, copies or others, with the numbers of {names}."
    )
    yield Finding("the leaves themselves", not copies, message)
    others = sorted({item[1] for item in items if tagged(item, "type")})
    message = f"Your list holds things that are no leaves of this case, of type {listed(others)}."
    if {"Tensor", "Parameter"} & set(others):
        message += " Does your function keep a list or set between calls?"
    yield Finding("leaves only", not others, message)
    itself = ["itself", ""] in items
    message = "Your list holds the tensor itself, which its own graph does not end in."
    yield Finding("not itself", not itself, message)
    found = Counter(item for item in items if type(item) is str)
    repeats = [name for name, count in found.items() if count > 1]
    yield Finding("once", not repeats, f"Your list holds {listed(repeats)} more than once.")
    extra = [name for name in found if name not in expected]
    yield Finding("dependence", not extra, f"Your list holds {listed(extra)}, on which the tensor's graph has no hold.")
    missing = [name for name in expected if name not in found and name not in copies]
    yield Finding("all", not missing, f"Your list lacks {listed(missing)}.")
    yield no_passes(seen)
    changed = seen["changed"]
    yield Finding("numbers", not changed, f"Your function changed the numbers in {listed(changed)}.")
    graded = seen["graded"]
    yield Finding("grad", not graded, f"Your function changed .grad of {listed(graded)}.")
    flags = seen["flags"]
    yield Finding("flags", not flags, f"Your function changed requires_grad of {listed(flags)}.")


def _returned_copies(case: Case, seen: Observation) -> bool:
    items = seen["returned"]
    return isinstance(items, list) and any(tagged(item, "copy") for item in items)


def _repeated_leaves(case: Case, seen: Observation) -> bool | None:
    """Tell whether leaves came again, by several paths. In a later call that may be the first one's list."""
    items, expected = seen["returned"], _leaves_for(case)
    again = isinstance(items, list) and len(items) > len(expected) and set(map(str, items)) == set(expected)
    if case.given.get("shape") == "leaf":
        return False
    return None if again and {"calls", "written"} & case.given.keys() else again


def _one_of_a_kind(case: Case, seen: Observation) -> bool | None:
    """Tell whether each leaf that is missing looks like one that came: they have one shape."""
    items, expected = seen["returned"], _leaves_for(case)
    if not isinstance(items, list) or not set(map(str, items)) < set(expected):
        return False
    tensor, named = graph_of(case)
    if case.given.get("written"):
        write_to(tensor, named)
    shapes = {name: leaf.shape for name, leaf in named.items()}
    alike = all(shapes[name] in {shapes[item] for item in items} for name in expected if name not in items)
    other_reasons = "written" in case.given or case.given.get("shape") == "frozen later"
    return None if alike and other_reasons else alike


def _returned_nodes(case: Case, seen: Observation) -> bool:
    items = seen["returned"]
    return isinstance(items, list) and any(item == ["type", "AccumulateGrad"] for item in items)


def _debrief(seen: Sequence[tuple[Case, Observation]]) -> Iterator[str]:
    found = {case.name: len(it["returned"]) for case, it in seen}
    for name in ("a recurrent loop", "a chain of 3,500 operations"):
        ((case, _),) = [pair for pair in seen if pair[0].name == name]
        nodes = len(nodes_behind(graph_of(case)[0]))
        leaves = f"{found[name]} {'leaf' if found[name] == 1 else 'leaves'}"
        yield f"Behind {name} there are {nodes:,} nodes, and {leaves}: only a leaf's node has the attribute `variable`."


EXERCISE = Exercise(
    id="leaves_of",
    title="Find the leaves an output depends on",
    lesson=LESSON,
    difficulty=2,
    minutes=8,
    points=2,
    call="leaves_of(tensor)",
    reaches=("next_functions",),
    cases=_leaves_cases,
    judge=_judge_leaves_of,
    hints=(
        "Your walk already visits the nodes of the leaves. Which nodes are they, and what do they know?",
        "A leaf's node is called AccumulateGrad, and its attribute `variable` is the leaf itself.",
        "Walk the graph, keep the nodes that have the attribute `variable`, and return that attribute of each. "
        "Do not copy or detach it.",
    ),
    misconceptions=(
        Misconception(
            "nodes, not tensors",
            "You returned nodes called AccumulateGrad. The exercise asks for the tensors that they accumulate into.",
            _returned_nodes,
        ),
        Misconception(
            "copies",
            "You returned tensors with the right numbers that are other objects than the leaves. "
            "No pass from this tensor gives them a gradient.",
            _returned_copies,
        ),
        Misconception(
            "once per path",
            "You come to a leaf again by each path or edge that leads to it. Go on from each node once, and name each "
            "leaf once.",
            _repeated_leaves,
            ended=("TimedOut",),
            ended_in=("40 doublings", "a recurrent loop"),
        ),
        recursion("search"),
        edge_refused("an empty list"),
        Misconception(
            "frozen later",
            "Your list lacks w, which was frozen after the forward pass. It is still in the graph.",
            _frozen_left_out,
        ),
        Misconception(
            "one of a kind",
            "Each leaf that your list lacks has the shape of one that is in it. Leaves that are alike, in shape, in "
            "numbers or by the memory they lie in, are different leaves: compare the objects.",
            _one_of_a_kind,
        ),
        Misconception(
            "a leaf without a graph",
            "You returned the tensor itself. It is a leaf that came without requires_grad, so no graph leads to it; "
            "the list should be empty.",
            _returned_itself,
        ),
    ),
    debrief=_debrief,
)


def _leaves_for(case: Case) -> tuple[str, ...]:
    """Return the names of the leaves that a backward pass arrives at."""
    known = "shape" in case.given and "written" not in case.given
    return _leaves_of_shape(case.given["shape"]) if known else _leaves_by_backward(case)


@cache
def _leaves_of_shape(shape: str) -> tuple[str, ...]:
    return _leaves_by_backward(Case("", {"shape": shape}))


def _leaves_by_backward(case: Case) -> tuple[str, ...]:
    tensor, named = graph_of(case)
    if case.given.get("written"):
        write_to(tensor, named)
    if not tensor.requires_grad:
        return ()
    asked = [leaf.requires_grad_() for leaf in named.values()]  # also those that were frozen after the forward pass
    grads = torch.autograd.grad(tensor.sum(), asked, allow_unused=True)
    return tuple(name for name, grad in zip(named, grads, strict=True) if grad is not None)
