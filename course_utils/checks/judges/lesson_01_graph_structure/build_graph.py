"""Judging `build_graph`: build a graph of a given shape."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import torch

from course_utils.checks.compare import describe, listed
from course_utils.checks.data import Array, Case, Observation
from course_utils.checks.exercise import Exercise, Finding, Misconception
from course_utils.checks.judges.lesson_01_graph_structure import LESSON


def _other_order(case: Case, seen: Observation) -> bool:
    """Tell whether the graph is the wanted one but for the order of inputs."""
    nodes = seen["nodes"]
    if not nodes or nodes == WANTED:
        return False
    return _unordered(nodes, 0) == _unordered(WANTED, 0) and len(nodes) == len(WANTED)


def _no_none(case: Case, seen: Observation) -> bool:
    nodes = seen["nodes"] or []
    return bool(nodes) and _names(seen)["MulBackward0"] > 0 and all(None not in node for node in nodes)


def _judge_build(case: Case, seen: Observation) -> Iterator[Finding]:
    nodes = seen["nodes"]
    if nodes is None:
        yield Finding("type", False, f"What you returned is {describe(seen['returned'])}; expected a tensor.")
        return
    message = f"Your function changed the numbers in {listed(seen['changed'])}."
    yield Finding("numbers", not seen["changed"], message)
    message = f".grad of {listed(seen['graded'])} is not as it was before your function ran."
    yield Finding("grad", not seen["graded"], message)
    frozen = seen["frozen"]
    yield Finding("flags", not frozen, f"Your function left {listed(frozen)} without requires_grad.")
    message = f"{_first_difference(nodes)} This is the graph of your result:\n{_written(nodes)}"
    yield Finding("graph", nodes == WANTED, message)


def _build_cases(seed: int) -> list[Case]:
    generator = torch.Generator().manual_seed(seed)
    sizes = {
        "a is 4 x 3, b has 3 numbers": ((4, 3), (3,)),
        "both are 2 x 5": ((2, 5), (2, 5)),
        "b is one number": ((3, 6), ()),
    }
    return [
        Case(
            name,
            {x: Array.of(wide * torch.rand(size, generator=generator) - 1) for x, size in zip("ab", pair, strict=True)}
            | {"lived in": len(pair[1]) == 2},
        )
        for (name, pair), wide in zip(sizes.items(), (4, 4, 1e4), strict=True)  # an exponential may well overflow
    ]


def _calculated_twice(case: Case, seen: Observation) -> bool:
    nodes = seen["nodes"] or []
    computed = [_unordered(nodes, index) for index, node in enumerate(nodes) if node[0] == "ExpBackward0"]
    return len(computed) == 2 and computed[0] == computed[1]


def _selected(case: Case, seen: Observation) -> bool:
    names = _names(seen)
    return bool(names["SelectBackward0"]) and not names["UnbindBackward0"]


def _debrief(seen: Sequence[tuple[Case, Observation]]) -> Iterator[str]:
    nodes = seen[0][1]["nodes"]
    uses = sum(edge[0] == 2 for node in nodes for edge in node[1:] if edge)
    yield (
        f"Your exponential was computed once, so it has one node, and {uses} edges lead there: a backward pass adds "
        "what comes by them before the node runs, once."
    )
    yield "The product's other input needs no gradient. So it has no edge, and backward works out no gradient for it."


EXERCISE = Exercise(
    id="build_graph",
    title="Build a graph of a given shape",
    lesson=LESSON,
    difficulty=3,
    minutes=12,
    points=3,
    call="build_graph(a, b)",
    cases=_build_cases,
    judge=_judge_build,
    hints=(
        "Read the text from the last line up: first what is made of a and b, at the end what makes the result.",
        "Node 2 is reached by two edges, so its result is used twice. The entry `none` is an input that needs no "
        "gradient, and `3 (output 1)` is the second output of node 3.",
        "Subtract b from a. Take the second of the tensors that unbind() gives, and its exponential. Multiply that by "
        "a number, and add the product and the exponential, in this order.",
    ),
    misconceptions=(
        Misconception(
            "computed twice",
            "Your graph has two nodes ExpBackward0: you computed the exponential twice. "
            "Compute it once and use the result twice.",
            _calculated_twice,
        ),
        Misconception(
            "indexing",
            "Your graph has a SelectBackward0. Indexing one row records an operation with a single output, not unbind.",
            _selected,
        ),
        Misconception(
            "no constant",
            "Your multiplication has two inputs that need a gradient. "
            "In the wanted graph one of its inputs needs none.",
            _no_none,
        ),
        Misconception(
            "other order",
            "Your graph has the right nodes and edges, but an operation has its inputs in another order. "
            "The order of the operands decides.",
            _other_order,
        ),
    ),
    debrief=_debrief,
)

# As `trace` prints it. A leaf is written as the name of its tensor.
WANTED: list[list[Any]] = [
    ["AddBackward0", [1, 0], [2, 0]],
    ["MulBackward0", [2, 0], None],
    ["ExpBackward0", [3, 1]],
    ["UnbindBackward0", [4, 0]],
    ["SubBackward0", [5, 0], [6, 0]],
    ["a"],
    ["b"],
]


def _first_difference(nodes: list[list[Any]]) -> str:
    """Say in one sentence where a graph is not the wanted one."""
    for index, (wanted, node) in enumerate(zip(WANTED, nodes, strict=False)):
        if node[0] != wanted[0]:
            return f"Node {index} is {_called(node)}; the wanted one is {_called(wanted)}."
        if node != wanted:
            ends, others = (_ends(it) or "nothing" for it in (node, wanted))
            return f"Node {index}, {_called(node)}, has edges to {ends}; the wanted ones are to {others}."
    return f"Your graph has {len(nodes)} nodes; the wanted one has {len(WANTED)}."


def _called(node: list[Any]) -> str:
    return {"a": "the leaf a", "b": "the leaf b"}.get(node[0], str(node[0]))


def _ends(node: list[Any]) -> str:
    edges = ("none" if it is None else f"{it[0]} (output {it[1]})" if it[1] else f"{it[0]}" for it in node[1:])
    return ", ".join(edges)


def _written(nodes: list[list[Any]]) -> str:
    """Write a graph as `trace` does."""
    if not nodes:
        return "no graph: nothing was recorded"
    lines = []
    for index, node in enumerate(nodes):
        ends, leaf = _ends(node), "leaf " if node[0] in ("a", "b") else ""
        lines.append(f"{index} {node[0]} -> {ends}" if ends else f"{index} {leaf}{node[0]}")
    return "\n".join(lines)


def _unordered(nodes: list[list[Any]], index: int) -> str:
    name, *edges = nodes[index]
    if len(nodes) > 2 * len(WANTED):
        return ""
    parts = sorted("none" if edge is None else f"{edge[1]}:{_unordered(nodes, edge[0])}" for edge in edges)
    return f"{name}({', '.join(parts)})"


def _names(seen: Observation) -> Counter[str]:
    return Counter(node[0] for node in seen["nodes"] or [])
