"""Right and wrong answers to `run_order`."""

from collections import Counter
from functools import cache
from heapq import heappop, heappush
from itertools import count

from torch.autograd.graph import get_gradient_edge

from tests.answers.lesson_02_how_backward_works.nodes import edge_counts, nodes_behind
from tests.answers.said import said


def order_by_counting(tensor):
    waiting, ready, order = edge_counts(nodes_behind(tensor)), [get_gradient_edge(tensor).node], []
    while ready:
        ready.sort(key=lambda node: node._sequence_nr())
        order.append(ready.pop())
        for to, _ in order[-1].next_functions:
            waiting[to] -= 1
            if to and not waiting[to]:
                ready.append(to)
    return order


def order_of_distinct(tensor):
    """Two edges to one node open and close together."""
    behind = {node: {to for to, _ in node.next_functions} for node in nodes_behind(tensor)}
    order = []
    while behind:
        waited_for = set().union(*behind.values())
        order.append(max((node for node in behind if node not in waited_for), key=lambda node: node._sequence_nr()))
        del behind[order[-1]]
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


def order_after_running(tensor):
    order = order_by_counting(tensor)
    tensor.backward(retain_graph=True)
    return order


def order_remembering(tensor, known={}):  # noqa: B006
    """Counts the edges of all nodes that it has ever seen: of those behind another result, too."""
    known.update(dict.fromkeys(nodes_behind(tensor)))
    waiting, ready, order = edge_counts(known), [get_gradient_edge(tensor).node], []
    while ready:
        ready.sort(key=lambda node: node._sequence_nr())
        order.append(ready.pop())
        for to, _ in order[-1].next_functions:
            waiting[to] -= 1
            if to and not waiting[to]:
                ready.append(to)
    return order


def order_by_heap(tensor):
    """The newest ready node, from a heap; a count stands before the nodes, which cannot be compared."""
    number, waiting, order = count(), edge_counts(nodes_behind(tensor)), []
    heap = [(0, next(number), get_gradient_edge(tensor).node)]
    while heap:
        order.append(heappop(heap)[2])
        for to, _ in order[-1].next_functions:
            waiting[to] -= 1
            if to and not waiting[to]:
                heappush(heap, (-to._sequence_nr(), next(number), to))
    return tuple(order)


def order_refusing_leaves(tensor):
    return tensor.grad_fn.name() and order_by_counting(tensor)


RIGHT = [
    order_by_counting,
    order_of_distinct,
    order_by_heap,
]

MISCONCEIVED = {
    "the nearest first": nodes_behind,
    "by number alone": order_by_number,
    "leaves at the end": order_leaves_last,
    "one edge for two": order_by_distinct(count_edges=True, lower_edges=False),
}

WRONG = [
    said(order_by_distinct(count_edges=False, lower_edges=True), "one edge for two"),
    said(order_first_come, "first come, first served"),
    order_depth_first,
    order_by_running,
    lambda tensor: order_by_counting(tensor)[::-1],
    lambda tensor: [type(node).__name__ for node in order_by_counting(tensor)],
    lambda tensor: order_by_counting(tensor) * 2,
    lambda tensor: set(order_by_counting(tensor)),
    order_after_running,
    order_refusing_leaves,
    order_remembering,
]

EQUIVALENT = {
    "order_by_heap: return tuple(order) -> return order": "The text leaves open whether it is a list or a tuple.",
    "order_by_heap: (0, next(number), get_gradient_edge(tensor).node) -> (1, next(number), get_gradient_edge(tensor).node)": "The first node leaves the heap before another comes in: its rank compares with nothing.",
}

GUARDS = {
    "Return a list of the node objects": {"type": WRONG[7], "nodes": WRONG[5]},
    "AccumulateGrad nodes included": {"count": WRONG[6]},
    "the order in which `tensor.backward()` would run the nodes of the graph behind `tensor`.": {
        "order": order_first_come
    },
    "nothing may be left over from an earlier call": {"count": order_remembering},
    "Do not run a backward pass": {"passes": order_after_running},
    "Start from `get_gradient_edge(tensor).node`, not from `tensor.grad_fn`:": {"runs": order_refusing_leaves},
}


def order_leaves_first(tensor):
    """The operations in the right order, after all leaves: sorted by number that is the same."""
    return sorted(RIGHT[0](tensor), key=lambda node: not hasattr(node, "variable"))


def order_from_a_view(tensor):
    return RIGHT[0](tensor.view_as(tensor))


WRONG += [order_leaves_first, order_from_a_view]

MISCONCEIVED["first come, first served"] = order_first_come


def order_by_sorting(tensor):
    """By number alone, and each leaf with its last user: but a node may be younger than its user."""
    operations = [node for node in nodes_behind(tensor) if node.next_functions]
    waiting, order = edge_counts(operations), []
    for node in sorted(operations, key=lambda node: -node._sequence_nr()):
        order.append(node)
        for to, _ in node.next_functions:
            waiting[to] -= 1
            if not waiting[to] and hasattr(to, "variable"):
                order.append(to)
    return order or nodes_behind(tensor)


WRONG += [order_by_sorting]


_known = cache(order_by_counting)


def order_by_tensor(tensor):
    """Remembers by tensor, behind which a write in place puts another graph."""
    return _known(tensor)


WRONG += [order_by_tensor]
