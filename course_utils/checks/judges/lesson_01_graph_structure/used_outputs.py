"""Judging `used_outputs`: which outputs are used?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache

import torch

from course_utils.checks.compare import describe
from course_utils.checks.data import Case, Observation
from course_utils.checks.exercise import Exercise, Finding, Misconception
from course_utils.checks.judges.lesson_01_graph_structure import LESSON
from course_utils.checks.judges.lesson_01_graph_structure.reading import edge_refused, no_passes, recursion, set_of
from course_utils.checks.scenes.lesson_01_graph_structure.used_outputs import outputs_of
from course_utils.graph.trace import trace


def _first_edge_only(case: Case, seen: Observation) -> bool:
    received = seen["returned"]
    expected = _outputs_for(case)
    return isinstance(received, list) and len(received) == 1 < len(expected) and received[0] in expected


def _repeated_outputs(case: Case, seen: Observation) -> bool:
    received = seen["returned"]
    expected = _outputs_for(case)
    return isinstance(received, list) and len(received) > len(expected) and set_of(received) == set(expected)


def _all_outputs(case: Case, seen: Observation) -> bool:
    return bool(seen["returned"] == list(range(len(outputs_of(case)[1]))))


def _judge_outputs(case: Case, seen: Observation) -> Iterator[Finding]:
    received, expected = seen["returned"], _outputs_for(case)
    if not isinstance(received, list):
        yield Finding("type", False, f"What you returned is {describe(received)}; expected a list of whole numbers.")
        return
    odd = [item for item in received if type(item) is not int]
    if odd:
        message = f"Your list holds {describe(odd[0])}; expected whole numbers, the indices of outputs."
        yield Finding("type", False, message)
        return
    if seen["first"] == expected != received:
        message = f"Your first call returned {expected}, and your second call with the same arguments {received}."
        yield Finding("calls", False, f"{message} Does your function keep a list or set between calls?")
        return
    reached = f"the graph arrives at {expected}" if expected else "the graph arrives at no output of this node"
    kept = set(received) - set(expected) <= set(case.given.get("before", ()))
    ask = " Does your function keep a list or set between calls?" if kept and len(received) > len(expected) else ""
    yield Finding("outputs", set(received) == set(expected), f"You returned {received}; {reached}.{ask}")
    yield Finding("once", len(set(received)) == len(received), f"You returned {received}, with an output repeated.")
    yield Finding("sorted", received == sorted(received), f"You returned {received}, which is not in rising order.")
    yield no_passes(seen)


def _outputs_cases(seed: int) -> list[Case]:
    generator = torch.Generator().manual_seed(seed)
    some = sorted(torch.randperm(12, generator=generator)[:3].tolist())
    return [
        Case("three of twelve outputs of unbind", {"used": [4, 1, 10], "how": "deep"}),
        Case("several outputs in one operation", {"used": [6, 2, 9], "how": "side by side"}),
        Case("outputs of split", {"sizes": [2, 1, 3, 6], "used": [3, 2], "how": "deep"}),
        Case("one output, used twice", {"used": [5, 5], "how": "deep"}),
        Case("three outputs at random", {"used": [*some, some[0]], "how": "deep"}),
        Case("the tensor is itself an output", {"used": [3], "how": "itself"}),
        Case("the tensor is itself the first output", {"used": [0], "how": "itself"}),
        Case("a part of a part", {"sizes": [2, 1, 3, 6], "used": [3], "how": "parts of a part"}),
        Case("a detached output", {"used": [2], "how": "detached"}),
        Case("another operation's outputs", {"used": [], "how": "elsewhere"}),
        Case("two operations of one kind", {"used": [6], "how": "two of one kind"}),
        Case("a tensor without a graph", {"used": [], "how": "no graph"}),
        Case("called twice", {"used": [5, 2], "how": "deep", "calls": 2}),
        Case("after a question about another tensor", {"used": [0], "how": "deep", "before": [7, 2]}),
        Case("40 doublings behind the outputs", {"used": [2, 0], "how": "doublings"}),
        Case("a chain of 3,500 operations", {"used": [6, 3], "how": "chain"}),
    ]


def _own_output_missing(case: Case, seen: Observation) -> bool | None:
    """Tell whether the list is empty where the tensor is itself an output. Of output 0 others make nothing, too."""
    empty = case.given["how"] == "itself" and seen["returned"] == []
    return None if empty and case.given["used"] == [0] else empty


def _zero_missing(case: Case, seen: Observation) -> bool:
    return bool(seen["returned"] == [output for output in _outputs_for(case) if output] != _outputs_for(case))


def _by_name_only(case: Case, seen: Observation) -> bool:
    """Tell whether outputs of another node of the same kind were counted."""
    other = {"elsewhere": [2], "two of one kind": [0, 6], "parts of a part": [1, 3]}.get(case.given["how"])
    return bool(seen["returned"] == other)


def _debrief(seen: Sequence[tuple[Case, Observation]]) -> Iterator[str]:
    edges = {case.name: _edges(case) for case, _ in seen}
    yield (
        f"Behind 40 doublings there are {edges['40 doublings behind the outputs']} edges to look at, for {2**40:,} "
        f"paths to each used output: looking at each edge once is enough."
    )
    yield "No node keeps a list of its used outputs: they stand in the edges that arrive there, in other nodes."


EXERCISE = Exercise(
    id="used_outputs",
    title="Which outputs are used?",
    lesson=LESSON,
    difficulty=3,
    minutes=15,
    points=3,
    call="used_outputs(tensor, node)",
    reaches=("next_functions",),
    cases=_outputs_cases,
    judge=_judge_outputs,
    hints=(
        "An edge is a pair. The second number says at which output of the node it arrives.",
        "Look at every edge of the graph, and at the one edge that is in no next_functions: the one from the tensor.",
        "If the tensor requires no gradient, return an empty list. Otherwise put get_gradient_edge(tensor) and every "
        "pair in the next_functions of every node through one test: is the pair's node the node asked about? "
        "Collect the indices in a set, and return them sorted.",
    ),
    misconceptions=(
        Misconception(
            "one entry per edge",
            "Your list names an output more than once, as if for each edge or path. The question is which outputs are "
            "used, not how often.",
            _repeated_outputs,
        ),
        Misconception(
            "all outputs",
            "You listed all outputs that the operation has. The graph behind the tensor need not reach all of them.",
            _all_outputs,
        ),
        Misconception(
            "own output missing",
            "Where the tensor is itself an output of the node, your list is empty. No node's next_functions has that "
            "edge: it is the tensor's own.",
            _own_output_missing,
        ),
        Misconception(
            "0 taken for nothing",
            "Your list lacks output 0. Is an index tested there, as in `if index`? 0 counts as False.",
            _zero_missing,
        ),
        Misconception(
            "any node of that name",
            "You counted the outputs of another operation of the same kind. Two nodes can have one name.",
            _by_name_only,
        ),
        Misconception(
            "only the first edge",
            "Your list has one output of several. Go on until the whole graph is seen, and look at each edge that "
            "arrives at the node, also where the node itself was seen before.",
            _first_edge_only,
        ),
        recursion("search"),
        edge_refused("an empty list"),
    ),
    debrief=_debrief,
)


def _edges(case: Case) -> int:
    """Count the edges behind the tensor of a case, the tensor's own included."""
    tensor, _ = outputs_of(case)
    return len(trace(tensor).edges) + 1


def _outputs_for(case: Case) -> list[int]:
    """Return the outputs that a gradient arrives at in a real backward pass."""
    given = case.given
    return list(_arriving(given["how"], tuple(given["used"]), tuple(given.get("sizes", ()))))


@cache
def _arriving(how: str, used: tuple[int, ...], sizes: tuple[int, ...]) -> tuple[int, ...]:
    given = {"how": how, "used": list(used)} | ({"sizes": list(sizes)} if sizes else {})
    tensor, parts = outputs_of(Case("", given))
    if not tensor.requires_grad:
        return ()
    arrived: list[int] = []
    hook = parts[0].grad_fn.register_prehook(  # type: ignore[union-attr]
        lambda grads: arrived.extend(i for i, grad in enumerate(grads) if grad is not None)
    )
    torch.autograd.backward(tensor.sum())
    hook.remove()
    return tuple(arrived)
