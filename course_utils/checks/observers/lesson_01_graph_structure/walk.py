"""Running an answer to `walk`."""

from __future__ import annotations

from torch.autograd.graph import Node

from course_utils.checks.data import Answer, Case, Observation, Value, type_name
from course_utils.checks.observers.lesson_01_graph_structure.reading import items
from course_utils.checks.observers.passes import every_pass
from course_utils.checks.scenes.lesson_01_graph_structure.graphs import graph_of
from course_utils.graph import trace as graphs


def observe(answer: Answer, case: Case) -> Observation:
    tensor, _ = graph_of(case)
    nodes = graphs.nodes_behind(
        tensor
    )  # kept: the node of a leaf that no operation uses lives as long as someone holds it
    number = {id(node): index for index, node in enumerate(nodes)}
    with every_pass() as passes:
        results = [answer(tensor) for _ in range(case.given.get("calls", 1))]

    def is_above(node: Node) -> bool:
        """Say whether a way leads from a node into this graph."""
        way, met = [node], {node, *elsewhere}
        for one in way:  # the list grows while it is read
            if id(one) in number:
                return True
            new = {to for to, _ in one.next_functions if to is not None} - met
            way += new
            met |= new
        elsewhere.update(way)
        return False

    elsewhere: set[Node] = set()  # nodes from which no way leads into this graph

    def place_of(item: object) -> Value:
        if id(item) in number:
            return number[id(item)]
        if not isinstance(item, Node):
            return type_name(item)
        above = item not in elsewhere and is_above(item)
        return ["node above" if above else "node", type_name(item)]

    seen: Observation = {"returned": [items(result, place_of) for result in results], "passes": len(passes)}
    if len(results) > 1:
        tensor.exp_()  # the same tensor, behind one node more
        seen["nodes after a write"] = len(graphs.nodes_behind(tensor))
        found = items(answer(tensor), type_name)
        seen["after a write"] = len(found) if isinstance(found, list) else 0
        seen["first, later"] = items(results[0], place_of)
    if tensor.is_leaf and tensor.requires_grad:
        seen["behind a result"] = items(answer(tensor.exp()), type_name)
    return seen
