"""Judging `walk`: walk every node once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cache

from course_utils.checks.compare import describe, listed
from course_utils.checks.data import Case, Observation
from course_utils.checks.exercise import Exercise, Finding, Misconception
from course_utils.checks.judges.lesson_01_graph_structure import LESSON
from course_utils.checks.judges.lesson_01_graph_structure.programs import random_program
from course_utils.checks.judges.lesson_01_graph_structure.reading import abridged, no_passes, set_of, tagged
from course_utils.checks.scenes.lesson_01_graph_structure.graphs import graph_of
from course_utils.graph.trace import Graph, trace


def _every_path(case: Case, seen: Observation) -> bool:
    return _repeated(case, seen) and not _by_pairs(case, seen)


def _holds(seen: Observation, kind: str) -> bool:
    """Tell whether a returned list holds something of this type."""
    return any(isinstance(items, list) and kind in items for items in seen["returned"])


def _by_pairs(case: Case, seen: Observation) -> bool:
    """Tell whether each node came once for each of its outputs that is reached."""
    items, graph = seen["returned"][0], _graph_for(case)
    if not isinstance(items, list) or any(type(item) is not int for item in items):
        return False
    arriving = Counter(node for node, _ in {(edge.node, edge.output) for _, edge in graph.edges})
    counted = {node.index: max(1, arriving[node.index]) for node in graph.nodes}
    return Counter(items) == counted and len(items) > len(counted)


def _only_operations(case: Case, seen: Observation) -> bool:
    """Tell whether the nodes called AccumulateGrad are missing, and nothing else."""
    if _finds_leaves(seen):
        return False
    operations = {node.index for node in _graph_for(case).nodes if not node.is_leaf}
    return all(isinstance(items, list) and set_of(items) == operations for items in seen["returned"])


def _only_later_calls_wrong(case: Case, seen: Observation) -> bool:
    once = Case(case.name, {**case.given, "calls": 1})
    first = {**seen, "returned": seen["returned"][:1]}
    return (
        len(seen["returned"]) > 1
        and not _complete(case, seen)
        and all(finding.ok for finding in _judge_walk(once, first))
    )


def _nothing_for_a_leaf(case: Case, seen: Observation) -> bool:
    return _finds_leaves(seen) and seen["returned"] == [[]]


def _judge_walk(case: Case, seen: Observation) -> Iterator[Finding]:
    graph = _graph_for(case)
    for number, items in enumerate(seen["returned"]):
        which = "What you returned" if number == 0 else "What you returned in the second call"
        if not isinstance(items, list):
            yield Finding("type", False, f"{which} is {describe(items)}; expected a list of nodes.")
            continue
        places = range(len(graph.nodes))
        others = sorted({item[1] for item in items if tagged(item, "node")})
        message = f"{which} holds nodes of another graph: {abridged(others)}."
        yield Finding("own nodes", not others, f"{message} Does your function keep a list or set between calls?")
        strange = [item for item in items if not tagged(item, "node")]
        strangers = sorted({str(item) for item in strange if type(item) is not int or item not in places})
        message = f"{which} holds things that are no nodes of this graph, of type {listed(strangers)}."
        yield Finding("nodes only", not strangers, message)
        found = Counter(item for item in items if type(item) is int)
        message = f"{which} has {found.total()} nodes, but {len(found)} different ones. Each belongs there once."
        yield Finding("once", found.total() == len(found), message)
        missing = [node.name for node in graph.nodes if node.index not in found]
        message = f"{which} lacks {len(missing)} of the {len(graph.nodes)} nodes: {abridged(missing)}."
        yield Finding("all", not missing, message)
    if len(seen["returned"]) > 1:
        mine, real = seen["after a write"], seen["nodes after a write"]
        text = (
            f"After the tensor was written in place there are {real} nodes behind it; your next list has {mine}. Does "
            "your function keep a result between calls?"
        )
        yield Finding("renewed", mine == real or not _complete(case, seen), text)
    yield no_passes(seen)


def _complete(case: Case, seen: Observation) -> bool:
    """Tell whether each call on the same graph gave as many nodes as it has."""
    count = len(_graph_for(case).nodes)
    return all(isinstance(items, list) and len(items) == count for items in seen["returned"])


def _walk_cases(seed: int) -> list[Case]:
    return [
        Case("a tensor without a graph", {"shape": "no graph"}),
        Case("a leaf", {"shape": "leaf"}),
        Case("an input that needs no gradient", {"shape": "constants"}),
        Case("a shared node", {"shape": "diamond"}),
        Case("an operation with several outputs", {"shape": "several outputs"}),
        Case("a random graph", random_program(seed, 4, 12)),
        Case("called twice", {"shape": "diamond", "calls": 2}),
        Case("40 doublings", {"shape": "doublings"}),
        Case("a recurrent loop", {"shape": "recurrent"}),
        Case("a chain of 3,500 operations", {"shape": "chain"}),
    ]


def _debrief(seen: Sequence[tuple[Case, Observation]]) -> Iterator[str]:
    sizes = {case.name: len(found["returned"][0]) for case, found in seen}
    yield (
        f"Behind 40 doublings you found {sizes['40 doublings']} nodes. A walk that remembers no node follows each of "
        f"the {2**40:,} paths there."
    )
    yield (
        f"Behind the chain you found {sizes['a chain of 3,500 operations']:,} nodes. A function that calls itself for "
        "each would need as many calls inside each other, more than Python allows unless it is told otherwise."
    )


EXERCISE = Exercise(
    id="walk",
    title="Walk every node once",
    lesson=LESSON,
    difficulty=2,
    minutes=12,
    points=2,
    call="walk(tensor)",
    cases=_walk_cases,
    judge=_judge_walk,
    hints=(
        "A node can be reached by more than one edge. Remember which nodes you have seen.",
        "Keep a list of nodes whose inputs you have still to look at, and a set of all nodes seen. No function has "
        "to call itself. get_gradient_edge(tensor).node is the start, for a leaf as well.",
        "If the tensor requires no gradient, return an empty list. Otherwise start a list and a set with the first "
        "node. Go through the list while it grows: for each (node, index) in next_functions, skip None and nodes in "
        "the set, and append the others to both.",
    ),
    misconceptions=(
        Misconception(
            "every path",
            "Your walk visits a node again for every path that leads to it. Shared nodes appear several times, and "
            "40 doublings have 2**40 paths.",
            _every_path,
            ended=("TimedOut",),
            ended_in=("40 doublings", "a recurrent loop"),
        ),
        Misconception(
            "every output",
            "You remember pairs of node and output. A node that is reached at two outputs stands in your list twice.",
            _by_pairs,
        ),
        Misconception(
            "recursion",
            "Your walk calls itself once for each node on the way. Python stops that after a few thousand calls, and "
            "a loop of a few thousand steps makes a graph that is deeper.",
            ended=("RecursionError",),
            ended_in=("a chain of 3,500 operations",),
        ),
        Misconception(
            "pairs",
            "Your list holds the pairs from next_functions. Each pair is a node and an output index; "
            "the exercise asks for the nodes.",
            lambda case, seen: _holds(seen, "tuple"),
        ),
        Misconception(
            "None kept",
            "Your list holds None. It stands in next_functions for an input that needs no gradient: no node is there.",
            lambda case, seen: _holds(seen, "NoneType"),
        ),
        Misconception(
            "leaves left out",
            "Your walk returns the operations and leaves out the nodes called AccumulateGrad.",
            _only_operations,
        ),
        Misconception(
            "nothing for a leaf",
            "For a tensor that is itself a leaf, grad_fn is None, and your walk returned an empty list.",
            _nothing_for_a_leaf,
        ),
        Misconception(
            "None followed",
            "Your walk asks None for its next_functions. None stands in a node's next_functions for each input that "
            "needs no gradient.",
            ended=("AttributeError",),
            ended_in=("an input that needs no gradient", "a random graph", "a recurrent loop"),
        ),
        Misconception(
            "None as the start",
            "Your walk takes grad_fn for a node where it is None: at a leaf, and at a tensor without a graph.",
            ended=("AttributeError",),
            ended_in=("a leaf", "a tensor without a graph"),
        ),
        Misconception(
            "remembers the last call",
            "Your first call is right and your second one is not: what the first has seen is still remembered. "
            "Create the list and the set inside the function.",
            _only_later_calls_wrong,
        ),
    ),
    debrief=_debrief,
)


def _graph_for(case: Case) -> Graph:
    if "shape" in case.given:
        return _graph_of_shape(case.given["shape"])
    return trace(graph_of(case)[0])


@cache
def _graph_of_shape(shape: str) -> Graph:
    return trace(graph_of(Case("", {"shape": shape}))[0])


def _repeated(case: Case, seen: Observation) -> bool:
    """Tell whether all nodes came, some as often as paths lead to them."""
    items = seen["returned"][0]
    return isinstance(items, list) and len(items) > len(_graph_for(case).nodes) == len(set(map(str, items)))


def _finds_leaves(seen: Observation) -> bool:
    """Tell whether the leaf was found behind a result that was made of it."""
    behind = seen.get("behind a result")
    return isinstance(behind, list) and "AccumulateGrad" in behind
