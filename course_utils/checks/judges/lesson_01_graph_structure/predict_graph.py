"""Judging `predict_graph`: predict a graph."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

import torch

from course_utils.checks.compare import describe
from course_utils.checks.data import Array, Case, Observation, Other, Value
from course_utils.checks.exercise import Exercise, Finding, Misconception
from course_utils.checks.judges.lesson_01_graph_structure import LESSON
from course_utils.checks.judges.predictions import Table, one_case
from course_utils.graph.trace import Graph, trace


def _counts(seen: Observation, **numbers: int) -> bool:
    """Tell whether a prediction has these numbers."""
    value = seen["value"]
    return isinstance(value, dict) and all(value.get(name) == number for name, number in numbers.items())


TABLE = Table(
    lambda: _facts(predicted_graph()),
    reasons={
        "grad_fn": "sum() made y. Without a dimension its node has the digit 0; sum(0) would give SumBackward1.",
        "nodes": "Six operations (the sum, the addition, h * h, h * c, tanh, a * b) and two leaves.",
        "leaves": "a and b. c requires no gradient, so it has no node.",
        "nones": "The second input of h * c.",
        "edges_into_tanh": "Two from h * h, one for each operand, and one from h * c.",
        "paths": "Three ways from y to tanh, and from there two: to a and to b.",
    },
)


def _judge_facts(case: Case, seen: Observation) -> Iterator[Finding]:
    value, right = seen["value"], TABLE.right()
    if isinstance(value, dict) and value.keys() == right.keys():
        for key, item in value.items():
            if item != Other("...") and (problem := _no_fact(key, item)):
                yield Finding(f"kind of {key}", False, f"The value for {key} {problem}, and it is {describe(item)}.")
                return
    yield from TABLE.judge(case, seen)


EXERCISE = Exercise(
    id="predict_graph",
    title="Predict a graph",
    lesson=LESSON,
    difficulty=2,
    minutes=8,
    points=2,
    call=None,
    cases=one_case,
    judge=_judge_facts,
    hints=(
        "Draw it on paper: one box for each operation, one for each leaf, and arrows from results to inputs.",
        "h is computed once and used three times. c requires no gradient, so it gets no box.",
        "From the result down: a sum, an addition, two multiplications, tanh, one multiplication, two leaves. "
        "Now count boxes, arrows into tanh, inputs without an arrow, and routes from the top to a leaf.",
    ),
    misconceptions=(
        Misconception(
            "a tree",
            "Your count is that of a tree, with all that is below h there once for each use of h. h was computed "
            "once, so it is there once.",
            lambda case, seen: _counts(seen, nodes=16) or _counts(seen, leaves=6),
        ),
        Misconception(
            "leaves forgotten",
            "Your nodes are as many as there are operations. A leaf has a node too, its AccumulateGrad.",
            lambda case, seen: _counts(seen, nodes=6, leaves=2),
        ),
        Misconception(
            "constants counted",
            "Your nodes and leaves are one too many, as if c were a leaf of the graph. It needs no gradient, so no "
            "node stands for it.",
            lambda case, seen: _counts(seen, nodes=9, leaves=3),
        ),
        Misconception(
            "edges as nodes",
            "You gave as many edges into tanh as operations use h. h * h uses it twice, through two edges.",
            lambda case, seen: _counts(seen, nodes=8, edges_into_tanh=2),
        ),
    ),
    debrief=TABLE.debrief,
)


def predicted_graph() -> Graph:
    """Return the graph that the exercise asks about."""
    a, b = torch.rand(3, requires_grad=True), torch.rand(3, requires_grad=True)
    c = torch.rand(3)
    h = torch.tanh(a * b)
    return trace((h * h + h * c).sum())


def _facts(graph: Graph) -> dict[str, int | str]:
    """Count what the exercise asks for."""
    arriving = Counter(edge.node for _, edge in graph.edges)
    (tanh,) = (node.index for node in graph.nodes if node.name == "TanhBackward0")
    return {
        "grad_fn": graph.nodes[0].name,
        "nodes": len(graph.nodes),
        "leaves": len(graph.leaves),
        "nones": sum(edge is None for node in graph.nodes for edge in node.inputs),
        "edges_into_tanh": arriving[tanh],
        "paths": _paths(graph, 0),
    }


def _paths(graph: Graph, index: int) -> int:
    node = graph.nodes[index]
    return 1 if node.is_leaf else sum(_paths(graph, edge.node) for edge in node.inputs if edge is not None)


def _no_fact(key: str, item: Value) -> str:
    """Say what a value must be that is none of the kind asked for."""
    if key != "grad_fn":
        whole = isinstance(item, int | float | Array) and type(item) is not bool
        return "" if whole else "must be a whole number"
    if isinstance(item, str) and re.fullmatch(r"[A-Za-z]+[0-9]+", item):
        return ""
    return "must be the name exactly as name() gives it, with its digit"
