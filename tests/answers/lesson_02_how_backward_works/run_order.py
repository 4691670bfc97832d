"""Right and wrong answers to `run_order`."""

from collections import Counter

from torch.autograd.graph import get_gradient_edge

from tests.answers.lesson_02_how_backward_works.nodes import edge_counts, nodes_behind
from tests.answers.said import said


def order_by_counting(tensor):
    waiting = edge_counts(nodes_behind(tensor))
    ready = [get_gradient_edge(tensor).node]
    order = []
    while ready:
        node = max(ready, key=lambda node: node._sequence_nr())
        ready.remove(node)
        order.append(node)
        for to, _ in node.next_functions:
            if to is not None:
                waiting[to] -= 1
                if waiting[to] == 0:
                    ready.append(to)
    return order


def order_by_sorting(tensor):
    """In a graph that one thread made, the node with the highest number is always ready."""
    nodes = nodes_behind(tensor)
    waiting = edge_counts(nodes)
    leaves = {node for node in nodes if hasattr(node, "variable")}
    order = [node for node in nodes if node in leaves and not waiting[node]]
    for node in sorted(set(nodes) - leaves, key=lambda node: node._sequence_nr(), reverse=True):
        order.append(node)
        for to, _ in node.next_functions:
            if to in leaves:
                waiting[to] -= 1
                if not waiting[to]:
                    order.append(to)
    return order


def order_by_distinct(count_edges, lower_edges):
    """Treats two edges between the same nodes as one: in counting, in lowering, or in both."""

    def answer(tensor):
        waiting = Counter()
        for node in nodes_behind(tensor):
            targets = [to for to, _ in node.next_functions if to is not None]
            waiting.update(targets if count_edges else set(targets))
        ready, order = [get_gradient_edge(tensor).node], []
        while ready:
            node = max(ready, key=lambda node: node._sequence_nr())
            ready.remove(node)
            order.append(node)
            targets = [to for to, _ in node.next_functions if to is not None]
            for to in targets if lower_edges else dict.fromkeys(targets):
                waiting[to] -= 1
                if waiting[to] == 0:
                    ready.append(to)
        return order

    return answer


def order_first_come(tensor):
    waiting = edge_counts(nodes_behind(tensor))
    order = [get_gradient_edge(tensor).node]
    for node in order:
        for to, _ in node.next_functions:
            if to is not None:
                waiting[to] -= 1
                if waiting[to] == 0:
                    order.append(to)
    return order


def order_depth_first(tensor):
    order, stack = [], [get_gradient_edge(tensor).node]
    while stack:
        node = stack.pop()
        if node not in order:
            order.append(node)
            stack += [to for to, _ in reversed(node.next_functions) if to is not None]
    return order


def order_by_number(tensor):
    return sorted(nodes_behind(tensor), key=lambda node: node._sequence_nr(), reverse=True)


def order_leaves_last(tensor):
    return sorted(order_by_counting(tensor), key=lambda node: hasattr(node, "variable"))


def order_by_running(tensor):
    nodes, order = nodes_behind(tensor), []
    for node in nodes:
        node.register_prehook(lambda gradients, node=node: order.append(node))
    tensor.backward()
    return order


RIGHT = [
    order_by_counting,
    order_by_sorting,
    order_by_distinct(count_edges=False, lower_edges=False),  # two edges open and close together
]

MISCONCEIVED = {
    "the nearest first": nodes_behind,
    "by number alone": order_by_number,
    "leaves at the end": order_leaves_last,
    "one edge for two": order_by_distinct(count_edges=True, lower_edges=False),
}

WRONG = [
    said(order_by_distinct(count_edges=False, lower_edges=True), "one edge for two"),
    order_first_come,
    order_depth_first,
    order_by_running,
    lambda tensor: order_by_counting(tensor)[::-1],
    lambda tensor: [type(node).__name__ for node in order_by_counting(tensor)],
    lambda tensor: order_by_counting(tensor) * 2,
]
