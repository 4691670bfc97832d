"""How a walk that goes wrong visits the nodes of a graph: twice, or not at all."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import cache

from course_utils.checks.data import Case, Observation
from course_utils.checks.scenes.lesson_01_graph_structure.graphs import graph_of
from course_utils.graph.trace import Graph, trace


def graph_for(case: Case) -> Graph:
    """Return the graph behind the tensor of a case."""
    if "shape" in case.given:
        return _graph_of_shape(case.given["shape"])
    return trace(graph_of(case)[0])


@cache
def _graph_of_shape(shape: str) -> Graph:
    return trace(graph_of(Case("", {"shape": shape}))[0])


def when(visited: Callable[[Graph, list[int]], bool | None]) -> Callable[[Case, Observation], bool | None]:
    """Make what a misconception asks of an observation from what can be told of a list of nodes."""

    def seen_in(case: Case, seen: Observation) -> bool | None:
        every = seen["returned"]
        if not all(isinstance(items, list) and all(type(item) is int for item in items) for items in every):
            return False
        fits = {visited(graph_for(case), items) for items in every}
        return False if False in fits else None if None in fits else True

    return seen_in


def every_path(graph: Graph, items: list[int]) -> bool:
    """Tell whether each node came once for each path to it."""
    return _repeats(graph, items) and Counter(items) == _paths(graph) and not every_output(graph, items)


def every_depth(graph: Graph, items: list[int]) -> bool:
    """Tell whether each node came once for each length of a path to it, as it does level by level."""
    return _repeats(graph, items) and Counter(items) == _depths(graph)


def every_output(graph: Graph, items: list[int]) -> bool:
    """Tell whether each node came once for each of its outputs that is reached."""
    arriving = Counter(node for node, _ in {(edge.node, edge.output) for _, edge in graph.edges})
    return _repeats(graph, items) and Counter(items) == Counter({0: 1}) | arriving


def marked_late(graph: Graph, items: list[int]) -> bool | None:
    """Tell whether nodes came again, none more often than paths lead to it; None where others do so, too."""
    if not _repeats(graph, items) or not Counter(items) <= _paths(graph):
        return False
    others = (every_path, every_depth, every_output)
    return None if any(other(graph, items) for other in others) else True


def one_of_a_name(graph: Graph, items: list[int]) -> bool | None:
    """Tell whether no two nodes of a name came, and no input misses but for its name; None where only leaves miss."""
    nodes = graph.nodes
    names = {nodes[item].name for item in items}
    inputs = {nodes[index].name for item in items for index in _inputs(graph, item)}
    fits = len(items) == len(names) < len(nodes) and 0 in items and inputs <= names
    return None if fits and all(node.is_leaf for node in nodes if node.index not in items) else fits


def first_inputs(graph: Graph, items: list[int]) -> bool:
    """Tell whether only the way came that takes the first input of each node, of those that need a gradient."""
    way = [0]
    while inputs := _inputs(graph, way[-1]):
        way.append(inputs[0])
    return items == way and len(way) < len(graph.nodes)


def _repeats(graph: Graph, items: list[int]) -> bool:
    """Tell whether all nodes came, and some more than once."""
    return len(items) > len(graph.nodes) == len(set(items))


def _paths(graph: Graph) -> Counter[int]:
    """Count for each node the paths that lead to it from the first one."""
    paths = Counter({0: 1})
    for index in _inputs_last(graph):
        for it in _inputs(graph, index):
            paths[it] += paths[index]
    return paths


def _depths(graph: Graph) -> Counter[int]:
    """Count for each node the different lengths of the paths to it."""
    depths = dict.fromkeys(range(len(graph.nodes)), 0) | {0: 1}  # bit n is set where a path has n edges
    for index in _inputs_last(graph):
        for it in _inputs(graph, index):
            depths[it] |= depths[index] << 1
    return Counter({index: bits.bit_count() for index, bits in depths.items()})


def _inputs(graph: Graph, index: int) -> list[int]:
    return [edge.node for edge in graph.nodes[index].inputs if edge is not None]


def _inputs_last(graph: Graph) -> list[int]:
    """Return the nodes in an order in which each comes before its inputs."""
    waiting = Counter(edge.node for _, edge in graph.edges)
    order = [0]
    for index in order:  # the list grows while it is read
        for it in _inputs(graph, index):
            waiting[it] -= 1
            if not waiting[it]:
                order.append(it)
    return order
