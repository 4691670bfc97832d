"""Cases and judges of lesson 01 for answers that read a graph. What is right comes from autograd, or is counted."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import torch
from torch import nn

from course_utils.checks.compare import describe, listed, right_entries
from course_utils.checks.data import Array, Case, Observation, Other, Value
from course_utils.checks.exercise import Finding
from course_utils.checks.observing.graphs_01 import graph_of, outputs_of
from course_utils.graph.trace import Graph, trace

# predict_leaves


def eight_tensors() -> dict[str, torch.Tensor]:
    """Return the tensors that the exercise builds, by name."""
    plain = torch.ones(3)
    w = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
    product = w * plain
    with torch.no_grad():
        updated = w - 0.1 * w
    cut = product.detach()
    weight = nn.Parameter(product)
    double = w.to(torch.float64)
    same = w.to(torch.float32)
    late = (plain + 1).requires_grad_()
    return {
        **{"plain": plain, "product": product, "updated": updated, "cut": cut},
        **{"weight": weight, "double": double, "same": same, "late": late},
    }


def judge_leaves(case: Case, seen: Observation) -> Iterator[Finding]:
    leaves = {name: tensor.is_leaf for name, tensor in eight_tensors().items()}
    value = seen["value"]
    if isinstance(value, dict) and value.keys() == leaves.keys():
        odd = [name for name, it in value.items() if type(it) is not bool and not _is_flag(it) and it != Other("...")]
        if odd:
            message = f"Each value must be True or False; the value for {odd[0]} is {describe(value[odd[0]])}."
            yield Finding("flags", False, message)
            return
    yield from right_entries(value, leaves, "Your prediction")


def _is_flag(item: Value) -> bool:
    return isinstance(item, Array) and item.shape == () and item.dtype == "bool"


def predicts(seen: Observation, belief: Callable[[torch.Tensor], bool], but: str = "") -> bool:
    """Tell whether a prediction follows from a belief about leaves, turned round for the entry `but`."""
    return bool(seen["value"] == {name: belief(it) is not (name == but) for name, it in eight_tensors().items()})


def predicts_only(seen: Observation, names: tuple[str, ...]) -> bool:
    """Tell whether a prediction calls these tensors leaves and no others."""
    return bool(seen["value"] == {name: name in names for name in eight_tensors()})


# predict_graph


@cache
def predicted_graph() -> Graph:
    """Return the graph that the exercise asks about."""
    a, b = torch.rand(3, requires_grad=True), torch.rand(3, requires_grad=True)
    c = torch.rand(3)
    h = torch.tanh(a * b)
    return trace((h * h + h * c).sum())


def facts(graph: Graph) -> dict[str, int | str]:
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


def judge_facts(case: Case, seen: Observation) -> Iterator[Finding]:
    value, right = seen["value"], facts(predicted_graph())
    if isinstance(value, dict) and value.keys() == right.keys():
        for key, item in value.items():
            if item != Other("...") and (problem := _no_fact(key, item)):
                yield Finding(f"kind of {key}", False, f"The value for {key} {problem}, and it is {describe(item)}.")
                return
    yield from right_entries(value, right, "Your prediction")


def _no_fact(key: str, item: Value) -> str:
    """Say what a value must be that is none of the kind asked for."""
    if key != "grad_fn":
        whole = isinstance(item, int | float | Array) and type(item) is not bool
        return "" if whole else "must be a whole number"
    if isinstance(item, str) and re.fullmatch(r"[A-Za-z]+[0-9]+", item):
        return ""
    return "must be the name exactly as name() gives it, with its digit"


def counts(seen: Observation, **numbers: int) -> bool:
    """Tell whether a prediction has these numbers."""
    value = seen["value"]
    return isinstance(value, dict) and all(value.get(name) == number for name, number in numbers.items())


# walk


def random_program(seed: int, leaves: int, length: int) -> dict[str, Any]:
    """Return a random calculation: each operation uses one of the last results, so that most of it is connected."""
    generator = torch.Generator().manual_seed(seed)

    def below(limit: int) -> int:
        return int(torch.randint(limit, (), generator=generator))

    tracked = [True, *(below(3) > 0 for _ in range(leaves - 1))]
    program: list[list[Any]] = [["mul", 0, 1]]
    for known in range(leaves + 1, leaves + length):
        operation = ("add", "mul", "mul", "tanh", "detach")[below(5)]
        operands = [below(known)] if operation == "detach" else [known - 1, below(known)]
        program.append([operation, *(operands[:1] if operation == "tanh" else operands)])
    # The last operation joins, so that the result is not a detached tensor.
    program.append(["add", leaves, leaves + length - 1])
    return {"program": program, "tracked": tracked}


def walk_cases(seed: int) -> list[Case]:
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


def graph_for(case: Case) -> Graph:
    if "shape" in case.given:
        return _graph_of_shape(case.given["shape"])
    return trace(graph_of(case)[0])


@cache
def _graph_of_shape(shape: str) -> Graph:
    return trace(graph_of(Case("", {"shape": shape}))[0])


def judge_walk(case: Case, seen: Observation) -> Iterator[Finding]:
    graph = graph_for(case)
    calls = case.given.get("calls", 1)
    yield Finding("calls", len(seen["returned"]) == calls, f"Your function did not return {calls} times.")
    for number, items in enumerate(seen["returned"]):
        which = "What you returned" if number == 0 else "What you returned in the second call"
        if not isinstance(items, list):
            yield Finding("type", False, f"{which} is {describe(items)}; expected a list of nodes.")
            continue
        places = range(len(graph.nodes))
        others = sorted({item[1] for item in items if _tagged(item, "node")})
        message = f"{which} holds nodes of another graph: {abridged(others)}."
        yield Finding("own nodes", not others, f"{message} Does your function keep a list or set between calls?")
        strange = [item for item in items if not _tagged(item, "node")]
        strangers = sorted({str(item) for item in strange if type(item) is not int or item not in places})
        message = f"{which} holds things that are no nodes of this graph, of type {listed(strangers)}."
        yield Finding("nodes only", not strangers, message)
        found = Counter(item for item in items if type(item) is int)
        message = f"{which} has {found.total()} nodes, but {len(found)} different ones. Each belongs there once."
        yield Finding("once", found.total() == len(found), message)
        missing = [node.name for node in graph.nodes if node.index not in found]
        message = f"{which} lacks {len(missing)} of the {len(graph.nodes)} nodes: {abridged(missing)}."
        yield Finding("all", not missing, message)
    yield no_passes(seen)


def repeated(case: Case, seen: Observation) -> bool:
    """Tell whether all nodes came, some as often as paths lead to them."""
    items = seen["returned"][0]
    return isinstance(items, list) and len(items) > len(graph_for(case).nodes) == len(set(map(str, items)))


def only_later_calls_wrong(case: Case, seen: Observation) -> bool:
    once = Case(case.name, {**case.given, "calls": 1})
    first = {**seen, "returned": seen["returned"][:1]}
    return len(seen["returned"]) > 1 and all(finding.ok for finding in judge_walk(once, first))


def holds(seen: Observation, kind: str) -> bool:
    """Tell whether a returned list holds something of this type."""
    return any(isinstance(items, list) and kind in items for items in seen["returned"])


def by_pairs(case: Case, seen: Observation) -> bool:
    """Tell whether each node came once for each of its outputs that is reached."""
    items, graph = seen["returned"][0], graph_for(case)
    if not isinstance(items, list) or any(type(item) is not int for item in items):
        return False
    arriving = Counter(node for node, _ in {(edge.node, edge.output) for _, edge in graph.edges})
    counted = {node.index: max(1, arriving[node.index]) for node in graph.nodes}
    return Counter(items) == counted and len(items) > len(counted)


def every_path(case: Case, seen: Observation) -> bool:
    return repeated(case, seen) and not by_pairs(case, seen)


def nothing_for_a_leaf(case: Case, seen: Observation) -> bool:
    return _finds_leaves(seen) and seen["returned"] == [[]]


def _finds_leaves(seen: Observation) -> bool:
    """Tell whether the leaf was found behind a result that was made of it."""
    behind = seen.get("behind a result")
    return isinstance(behind, list) and "AccumulateGrad" in behind


def only_operations(case: Case, seen: Observation) -> bool:
    """Tell whether the nodes called AccumulateGrad are missing, and nothing else."""
    if _finds_leaves(seen):
        return False
    operations = {node.index for node in graph_for(case).nodes if not node.is_leaf}
    return all(isinstance(items, list) and _set_of(items) == operations for items in seen["returned"])


# leaves_of


def leaves_cases(seed: int) -> list[Case]:
    return [
        Case("a leaf", {"shape": "leaf"}),
        Case("a tensor without a graph", {"shape": "no graph"}),
        Case("an input that needs no gradient", {"shape": "constants"}),
        Case("a leaf that is used twice", {"shape": "diamond"}),
        Case("a detached branch", {"shape": "detached"}),
        Case("operations with several outputs", {"shape": "several outputs"}),
        Case("a view that was written to", {"shape": "written view"}),
        Case("a leaf frozen after the forward pass", {"shape": "frozen later"}),
        Case("a random graph", random_program(seed, 5, 12)),
        Case("another random graph", random_program(seed + 1, 5, 12)),
        Case("40 doublings", {"shape": "doublings"}),
        Case("a recurrent loop", {"shape": "recurrent"}),
        Case("a chain of 3,500 operations", {"shape": "chain"}),
    ]


def leaves_for(case: Case) -> tuple[str, ...]:
    """Return the names of the leaves that a backward pass arrives at."""
    return _leaves_of_shape(case.given["shape"]) if "shape" in case.given else _leaves_by_backward(case)


@cache
def _leaves_of_shape(shape: str) -> tuple[str, ...]:
    return _leaves_by_backward(Case("", {"shape": shape}))


def _leaves_by_backward(case: Case) -> tuple[str, ...]:
    tensor, named = graph_of(case)
    if not tensor.requires_grad:
        return ()
    asked = [leaf.requires_grad_() for leaf in named.values()]  # also those that were frozen after the forward pass
    grads = torch.autograd.grad(tensor.sum(), asked, allow_unused=True)
    return tuple(name for name, grad in zip(named, grads, strict=True) if grad is not None)


def judge_leaves_of(case: Case, seen: Observation) -> Iterator[Finding]:
    items, expected = seen["returned"], leaves_for(case)
    if not isinstance(items, list):
        yield Finding("type", False, f"What you returned is {describe(items)}; expected a list of leaves.")
        return
    copies = [item[1] for item in items if _tagged(item, "copy")]
    message = f"Your list holds a tensor with the numbers of {listed(copies)} that is another object than the leaf."
    yield Finding("the leaves themselves", not copies, message)
    others = sorted({item[1] for item in items if _tagged(item, "type")})
    message = f"Your list holds things that are no leaves of this case, of type {listed(others)}."
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
    yield Finding("grad", not graded, f"Your function wrote to .grad of {listed(graded)}.")


def returned_itself(case: Case, seen: Observation) -> bool:
    return bool(case.given.get("shape") == "no graph" and seen["returned"] == [["itself", ""]])


def frozen_left_out(case: Case, seen: Observation) -> bool:
    return bool(case.given.get("shape") == "frozen later" and seen["returned"] == ["x"])


def returned_nodes(case: Case, seen: Observation) -> bool:
    items = seen["returned"]
    return isinstance(items, list) and any(item == ["type", "AccumulateGrad"] for item in items)


def returned_copies(case: Case, seen: Observation) -> bool:
    items = seen["returned"]
    return isinstance(items, list) and any(_tagged(item, "copy") for item in items)


def repeated_leaves(case: Case, seen: Observation) -> bool:
    items = seen["returned"]
    return (
        isinstance(items, list) and len(items) > len(leaves_for(case)) and set(map(str, items)) == set(leaves_for(case))
    )


# used_outputs


def outputs_cases(seed: int) -> list[Case]:
    generator = torch.Generator().manual_seed(seed)
    some = sorted(torch.randperm(7, generator=generator)[:3].tolist())
    return [
        Case("two of seven outputs of unbind", {"used": [4, 1], "how": "deep"}),
        Case("outputs of split", {"sizes": [2, 1, 3, 1], "used": [3, 2], "how": "deep"}),
        Case("one output, used twice", {"used": [5, 5], "how": "deep"}),
        Case("three outputs at random", {"used": [*some, some[0]], "how": "deep"}),
        Case("the tensor is itself an output", {"used": [3], "how": "itself"}),
        Case("a detached output", {"used": [2], "how": "detached"}),
        Case("another operation's outputs", {"used": [], "how": "elsewhere"}),
        Case("two operations of one kind", {"used": [6], "how": "two of one kind"}),
        Case("a tensor without a graph", {"used": [], "how": "no graph"}),
        Case("called twice", {"used": [5, 2], "how": "deep", "calls": 2}),
        Case("40 doublings behind the outputs", {"used": [2, 0], "how": "doublings"}),
        Case("a chain of 3,500 operations", {"used": [6, 3], "how": "chain"}),
    ]


def outputs_for(case: Case) -> list[int]:
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


def judge_outputs(case: Case, seen: Observation) -> Iterator[Finding]:
    received, expected = seen["returned"], outputs_for(case)
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
    yield Finding("outputs", set(received) == set(expected), f"You returned {received}; {reached}.")
    yield Finding("once", len(set(received)) == len(received), f"You returned {received}, with an output repeated.")
    yield Finding("sorted", received == sorted(received), f"You returned {received}, which is not in rising order.")
    yield no_passes(seen)


def repeated_outputs(case: Case, seen: Observation) -> bool:
    received = seen["returned"]
    expected = outputs_for(case)
    return isinstance(received, list) and len(received) > len(expected) and _set_of(received) == set(expected)


def first_edge_only(case: Case, seen: Observation) -> bool:
    received = seen["returned"]
    expected = outputs_for(case)
    return isinstance(received, list) and len(received) == 1 < len(expected) and received[0] in expected


def all_outputs(case: Case, seen: Observation) -> bool:
    return bool(seen["returned"] == list(range(len(outputs_of(case)[1]))))


def own_output_missing(case: Case, seen: Observation) -> bool:
    return bool(case.given["how"] == "itself" and seen["returned"] == [])


def by_name_only(case: Case, seen: Observation) -> bool:
    """Tell whether outputs of another node of the same kind were counted."""
    other = {"elsewhere": [2], "two of one kind": [0, 6]}.get(case.given["how"])
    return bool(seen["returned"] == other)


# Small helpers


def no_passes(seen: Observation) -> Finding:
    count = seen["passes"]
    passes = f"{count} backward pass{'es' if count != 1 else ''}"
    return Finding("passes", not count, f"Your function ran {passes}. The graph can be read without running it.")


def _set_of(items: list[Value]) -> set[int]:
    return {item for item in items if type(item) is int}


def _tagged(item: Value, tag: str) -> bool:
    return isinstance(item, list) and len(item) == 2 and item[0] == tag


def abridged(names: list[str], most: int = 4) -> str:
    counts = [f"{count} {name}" if count > 1 else name for name, count in Counter(names).items()]
    return listed(counts if len(counts) <= most else [*counts[:most], f"{len(counts) - most} more"])
