"""Judging `walk`: walk every node once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from course_utils.checks.compare import describe, listed
from course_utils.checks.data import Case, Observation
from course_utils.checks.exercise import Exercise, Finding, Misconception
from course_utils.checks.judges.lesson_01_graph_structure import LESSON, visits
from course_utils.checks.judges.lesson_01_graph_structure.programs import random_program
from course_utils.checks.judges.lesson_01_graph_structure.reading import (
    abridged,
    edge_refused,
    no_passes,
    recursion,
    tagged,
)
from course_utils.checks.judges.lesson_01_graph_structure.visits import graph_for
from course_utils.graph.trace import Graph

_GRAD_FN_IS_NONE = ("a leaf", "a tensor without a graph")
_MANY_PATHS = ("40 doublings", "a recurrent loop")


def _holds(seen: Observation, kind: str) -> bool:
    """Tell whether a returned list holds something of this type."""
    return any(isinstance(items, list) and kind in items for items in seen["returned"])


def _only_operations(case: Case, seen: Observation) -> bool:
    """Tell whether the nodes called AccumulateGrad are missing, and nothing else."""
    if _finds_leaves(seen):
        return False
    return all(isinstance(items, list) and set(map(str, items)) == _operations(case) for items in seen["returned"])


def _tensors_for_leaves(case: Case, seen: Observation) -> bool | None:
    """Tell whether all operations came, and tensors in place of the other nodes. Without a graph there are none."""
    right = _operations(case)
    found = [set(map(str, items)) if isinstance(items, list) else set() for items in seen["returned"]]
    fits = all(right < it <= right | {"Tensor", "Parameter"} for it in found)
    return fits if graph_for(case).nodes or not fits else None


def _none_kept(case: Case, seen: Observation) -> bool | None:
    """Tell whether a list holds None. Where grad_fn is None, it may be that."""
    return (None if _only_none(case, seen) else True) if _holds(seen, "NoneType") else False


def _only_none(case: Case, seen: Observation) -> bool:
    return case.name in _GRAD_FN_IS_NONE and seen["returned"] == [["NoneType"]]


def _operations(case: Case) -> set[str]:
    return {str(node.index) for node in graph_for(case).nodes if not node.is_leaf}


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
    graph = graph_for(case)
    for number, items in enumerate(seen["returned"]):
        which = "What you returned" if number == 0 else "What you returned in the second call"
        if not isinstance(items, list):
            yield Finding("type", False, f"{which} is {describe(items)}; expected a list of nodes.")
            continue
        places = range(len(graph.nodes))
        others = sorted({item[1] for item in items if tagged(item, "node")})
        message = (
            f"{which} holds nodes of another graph: {abridged(others)}. Does your function keep a list or set between "
            "calls?"
            if graph.nodes
            else f"{which} holds {abridged(others)}. The tensor requires no gradient, so no node is behind it."
        )
        yield Finding("own nodes", not others, message)
        above = sorted({item[1] for item in items if tagged(item, "node above")})
        message = (
            f"{which} holds {abridged(above)}, a node that no graph had before your function made it by an operation "
            "on the tensor: a view or a clone is one, too. Start at get_gradient_edge(tensor).node."
        )
        yield Finding("own nodes", not above, message)
        strange = [item for item in items if not tagged(item, "node") and not tagged(item, "node above")]
        strangers = sorted({str(item) for item in strange if type(item) is not int or item not in places})
        message = f"{which} holds things that are no nodes of this graph, of type {listed(strangers)}."
        if "Node" in strangers:
            message += " The course's `trace` describes nodes in a type of its own of that name."
        yield Finding("nodes only", not strangers, message)
        found = Counter(item for item in items if type(item) is int)
        message = f"{which} has {found.total()} nodes, but {len(found)} different ones. Each belongs there once."
        yield Finding("once", found.total() == len(found), message)
        missing = [node.name for node in graph.nodes if node.index not in found]
        own = (
            " That is the tensor's own node, at which the walk starts."
            if _only_the_first_is_missing(graph, found)
            else ""
        )
        message = f"{which} lacks {len(missing)} of the {len(graph.nodes)} nodes: {abridged(missing)}.{own}"
        yield Finding("all", not missing, message)
    if len(seen["returned"]) > 1:
        mine, real = seen["after a write"], seen["nodes after a write"]
        text = (
            f"After the tensor was written in place there are {real} nodes behind it; your next list has {mine}. Does "
            "your function keep a result between calls?"
        )
        yield Finding("renewed", mine == real or not _complete(case, seen), text)
        text = (
            "The list of your first call is another one after your third call: each call fills the same list. Make a "
            "new one in each."
        )
        yield Finding("kept", seen["first, later"] == seen["returned"][0] or not _complete(case, seen), text)
    yield no_passes(seen)


def _complete(case: Case, seen: Observation) -> bool:
    """Tell whether each call on the same graph gave as many nodes as it has."""
    count = len(graph_for(case).nodes)
    return all(isinstance(items, list) and len(items) == count for items in seen["returned"])


def _walk_cases(seed: int) -> list[Case]:
    return [
        Case("a tensor without a graph", {"shape": "no graph"}),
        Case("a leaf", {"shape": "leaf"}),
        Case("an input that needs no gradient", {"shape": "constants"}),
        Case("a shared node", {"shape": "diamond"}),
        Case("an operation with several outputs", {"shape": "several outputs"}),
        Case("the last of several outputs", {"shape": "last output"}),
        Case("a leaf frozen after the forward pass", {"shape": "frozen later"}),
        Case("a leaf without numbers", {"shape": "no numbers"}),
        Case("a random graph", random_program(seed, 4, 12)),
        Case("called twice", {"shape": "diamond", "calls": 2}),
        Case("a recurrent loop", {"shape": "recurrent"}),  # before the doublings: fewer walks have no end there
        Case("40 doublings", {"shape": "doublings"}),
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
    reaches=("next_functions",),
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
            "Your walk visits a node again for every path that leads to it, and 40 doublings have 2**40 paths.",
            visits.when(visits.every_path),
            ended=("TimedOut",),
            ended_in=_MANY_PATHS,
        ),
        Misconception(
            "every depth",
            "A node to which paths of different lengths lead stands in your list once for each length. If your walk "
            "goes level by level: remember the nodes of all levels, and not only of the present one.",
            visits.when(visits.every_depth),
        ),
        Misconception(
            "marked late",
            "A node at which several edges arrive stands in your list more than once. Where nodes wait to be looked "
            "at: mark a node when it is put among them, or skip it when it is taken from there and is marked.",
            visits.when(visits.marked_late),
            ended=("TimedOut",),
            ended_in=_MANY_PATHS,
            ended_alone=False,
        ),
        Misconception(
            "every output",
            "You remember pairs of node and output. A node that is reached at two outputs stands in your list twice.",
            visits.when(visits.every_output),
        ),
        recursion("walk"),
        edge_refused("an empty list"),
        Misconception(
            "pairs",
            "Your list holds tuples, as next_functions does. Each of those is a pair, of a node and an output index; "
            "the exercise asks for the nodes.",
            lambda case, seen: _holds(seen, "tuple"),
        ),
        Misconception(
            "None kept",
            "Your list holds None. It stands in next_functions for an input that needs no gradient: no node is there.",
            _none_kept,
        ),
        Misconception(
            "leaves left out",
            "Your walk returns the operations and leaves out the nodes called AccumulateGrad.",
            _only_operations,
            among=frozenset({"all"}),
        ),
        Misconception(
            "tensors for leaves",
            "Where the nodes called AccumulateGrad belong, your list holds tensors. A leaf is the `variable` of its "
            "node; the exercise asks for the node.",
            _tensors_for_leaves,
        ),
        Misconception(
            "one of each name",
            "Your list has no two nodes of one name, and the graph has. A name is the kind of an operation: two nodes "
            "with one name are two nodes.",
            visits.when(visits.one_of_a_name),
        ),
        Misconception(
            "first inputs",
            "Your walk goes on from each node to its first input only. A node can have several.",
            visits.when(visits.first_inputs),
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
            ended_saying="'NoneType' object has no attribute 'next_functions'",
        ),
        Misconception(
            "None as the start",
            "Your walk takes grad_fn for a node where it is None, as it is at a leaf and at a tensor without a graph.",
            _only_none,
            ended=("AttributeError",),
            ended_in=_GRAD_FN_IS_NONE,
            ended_saying="'NoneType' object has no attribute",
        ),
        Misconception(
            "remembers the last call",
            "Your first call is right and your second one on the same tensor is not: something of the first is left "
            "over. Note what has been seen in a list and a set that each call makes anew, and not on the nodes.",
            _only_later_calls_wrong,
        ),
    ),
    debrief=_debrief,
)


def _only_the_first_is_missing(graph: Graph, found: Counter[int]) -> bool:
    return [node.index for node in graph.nodes if node.index not in found] == [0] and len(graph.nodes) > 1


def _finds_leaves(seen: Observation) -> bool:
    """Tell whether the leaf was found behind a result that was made of it."""
    behind = seen.get("behind a result")
    return isinstance(behind, list) and "AccumulateGrad" in behind
