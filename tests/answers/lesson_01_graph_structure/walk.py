"""Right and wrong answers to `walk`."""

import functools

from torch.autograd.graph import get_gradient_edge

from course_utils import trace
from tests.answers.lesson_01_graph_structure.walking import (
    walk_a_growing_list,
    walk_every_path,
    walk_recursive,
    walk_start,
)
from tests.answers.said import said


def walk_depth_first(tensor):
    if tensor.grad_fn is not None:
        stack = [tensor.grad_fn]
    elif tensor.requires_grad:
        stack = [tensor.view_as(tensor).grad_fn.next_functions[0][0]]
    else:
        stack = []
    found = {}
    while stack:
        node = stack.pop()
        if node in found:
            continue
        found[node] = True
        stack += [to for to, _ in node.next_functions if to is not None]
    return tuple(found)


def walk_as_a_set(tensor):
    return set(walk_depth_first(tensor))


def walk_every_path_in_calls(tensor):
    nodes = []

    def visit(node):
        if node is not None:
            nodes.append(node)
            for to, _ in node.next_functions:
                visit(to)

    for node in walk_start(tensor):
        visit(node)
    return list(dict.fromkeys(nodes))


def walk_pairs(tensor):
    pairs = [tuple(get_gradient_edge(tensor))[:2]] if tensor.requires_grad else []
    seen = {node for node, _ in pairs}
    for node, _ in pairs:
        for to, output in node.next_functions:
            if to is not None and to not in seen:
                seen.add(to)
                pairs.append((to, output))
    return pairs


def walk_with_none(tensor):
    nodes = walk_start(tensor)
    seen = set(nodes)
    for node in nodes:
        for to, _ in () if node is None else node.next_functions:
            if to not in seen:
                seen.add(to)
                nodes.append(to)
    return nodes


def walk_first_outputs(tensor):
    nodes = walk_start(tensor)
    for node in nodes:
        nodes += [to for to, output in node.next_functions if output == 0 and to is not None and to not in nodes]
    return nodes


def walk_into_one_list(tensor, nodes=[]):  # noqa: B006
    nodes[:] = walk_a_growing_list(tensor)
    return nodes


def walk_operations(tensor):
    return [node for node in walk_a_growing_list(tensor) if not hasattr(node, "variable")]


def walk_remembering(tensor, seen=None, known=set()):  # noqa: B006
    nodes = [node for node in walk_a_growing_list(tensor) if node not in known]
    known.update(nodes)
    return nodes


def walk_after_backward(tensor):
    if tensor.requires_grad:
        tensor.sum().backward(retain_graph=True)
    return walk_a_growing_list(tensor)


def walk_first_inputs(tensor):
    nodes = walk_start(tensor)
    while nodes and nodes[-1].next_functions:
        nodes.append(nodes[-1].next_functions[0][0])
    return nodes


def walk_by_name(tensor):
    return list({node.name(): node for node in walk_a_growing_list(tensor)}.values())


def walk_remembering_pairs(tensor):
    pairs = [tuple(get_gradient_edge(tensor))[:2]] if tensor.requires_grad else []
    seen = set(pairs)
    for node, _ in pairs:
        for pair in node.next_functions:
            if pair[0] is not None and pair not in seen:
                seen.add(pair)
                pairs.append(pair)
    return [node for node, _ in pairs]


def walk_from_grad_fn(tensor):
    return walk_a_growing_list(tensor) if tensor.grad_fn is not None else []


def walk_following_none(tensor):
    nodes = walk_start(tensor)
    seen = set(nodes)
    for node in nodes:
        for to, _ in node.next_functions:
            if to not in seen:
                seen.add(to)
                nodes.append(to)
    return nodes


def walk_starting_at_none(tensor):
    return list(tensor.grad_fn.next_functions) and walk_a_growing_list(tensor)


def walk_refused_without_a_graph(tensor):
    get_gradient_edge(tensor)
    return walk_a_growing_list(tensor)


def walk_returning_what_it_remembers(tensor, seen=set()):  # noqa: B006
    seen.update(walk_a_growing_list(tensor))
    return list(seen)


@functools.cache
def walk_cached(tensor):
    """Keeps the list of a tensor, which has other nodes once it was written in place."""
    return walk_a_growing_list(tensor)


def walk_marking_late(tensor):
    nodes, seen, stack = [], set(), walk_start(tensor)
    while stack:
        node = stack.pop()
        seen.add(node)
        nodes.append(node)
        stack += [to for to, _ in node.next_functions if to is not None and to not in seen]
    return nodes


def walk_level_by_level(tensor):
    nodes, level = [], set(walk_start(tensor))
    while level:
        nodes += level
        level = {to for node in level for to, _ in node.next_functions if to is not None}
    return nodes


def walk_to_tensors(tensor):
    return [getattr(node, "variable", node) for node in walk_a_growing_list(tensor)]


def walk_one_of_each_name(tensor):
    nodes = walk_start(tensor)
    names = {node.name() for node in nodes}
    for node in nodes:
        for to, _ in node.next_functions:
            if to is not None and to.name() not in names:
                names.add(to.name())
                nodes.append(to)
    return nodes


def walk_the_first_way(tensor):
    nodes = walk_start(tensor)
    for node in nodes:
        nodes += [to for to, _ in node.next_functions if to is not None][:1]
    return nodes


def walk_from_a_view(tensor):
    return walk_a_growing_list(tensor.view_as(tensor)) if tensor.requires_grad else []


def walk_without_the_first(tensor):
    return walk_a_growing_list(tensor)[1:] or walk_start(tensor)


def walk_marking_nodes(tensor):
    nodes = [node for node in walk_a_growing_list(tensor) if "seen" not in node.metadata]
    for node in nodes:
        node.metadata["seen"] = True
    return nodes


def walk_to_leaves_that_learn(tensor):
    """Leaves out the node of a leaf that was frozen after the forward pass."""
    nodes = walk_a_growing_list(tensor)
    return [node for node in nodes if not hasattr(node, "variable") or node.variable.requires_grad]


def walk_breadth_first_marking_late(tensor):
    """Goes on from a node each time that it is taken from the queue: with 40 doublings without an end."""
    nodes, seen, queue = [], set(), walk_start(tensor)
    while queue:
        node = queue.pop(0)
        seen.add(node)
        nodes.append(node)
        queue += [to for to, _ in node.next_functions if to is not None and to not in seen]
    return nodes


def walk_by_names_of_all_inputs(tensor):
    return [to for node in walk_a_growing_list(tensor) for to, _ in node.next_functions if to.name()]


def walk_to_leaves_with_numbers(tensor):
    nodes = walk_a_growing_list(tensor)
    return [node for node in nodes if not hasattr(node, "variable") or node.variable.numel()]


RIGHT = [walk_a_growing_list, walk_depth_first, walk_as_a_set]

MISCONCEIVED = {
    "every path": walk_every_path,
    "every depth": walk_level_by_level,
    "marked late": walk_marking_late,
    "tensors for leaves": walk_to_tensors,
    "one of each name": walk_one_of_each_name,
    "first inputs": walk_the_first_way,
    "no edge": walk_refused_without_a_graph,
    "every output": walk_remembering_pairs,
    "nothing for a leaf": walk_from_grad_fn,
    "None followed": walk_following_none,
    "None as the start": walk_starting_at_none,
    "recursion": walk_recursive,
    "pairs": walk_pairs,
    "None kept": walk_with_none,
    "leaves left out": walk_operations,
    "remembers the last call": walk_remembering,
}

WRONG = [
    said(walk_every_path_in_calls, "every path"),
    walk_after_backward,
    said(walk_first_inputs, "first inputs"),
    walk_by_name,
    walk_returning_what_it_remembers,
    walk_from_a_view,
    walk_without_the_first,
    said(walk_marking_nodes, "remembers the last call"),
    lambda tensor: trace(tensor).nodes,
    lambda tensor: len(walk_a_growing_list(tensor)),
    lambda tensor: {node: True for node in walk_a_growing_list(tensor)},
    lambda tensor: [tensor.grad_fn],
    lambda tensor: (node for node in walk_a_growing_list(tensor)),
    walk_cached,
    walk_first_outputs,
    walk_into_one_list,
    walk_to_leaves_that_learn,
    said(walk_breadth_first_marking_late, "marked late"),
    said(lambda tensor: walk_a_growing_list(tensor) if tensor.requires_grad else [tensor.grad_fn], "None as the start"),
    lambda tensor: walk_a_growing_list(tensor) if tensor.requires_grad else [tensor],
    lambda tensor: walk_a_growing_list(tensor.requires_grad_()),
    lambda tensor: walk_a_growing_list(tensor.detach()) or [get_gradient_edge(tensor.detach())],
    lambda tensor: walk_a_growing_list(tensor.clone().clone()),
    walk_by_names_of_all_inputs,
    walk_to_leaves_with_numbers,
]

GUARDS = {
    "It returns a list of all nodes behind the tensor": {"all": walk_operations, "type": WRONG[9]},
    "each once": {"once": walk_remembering_pairs},
    "The nodes are PyTorch's own objects, those that `grad_fn` and `next_functions` give.": {
        "nodes only": walk_with_none
    },
    "then the list holds this one node": {"all": walk_from_grad_fn},
    "For a tensor that requires no gradient, the list is empty.": {"runs": walk_refused_without_a_graph},
    "a chain of 3,500 operations": {"runs": walk_recursive},
    "40 times `y = y + y`": {"ends": walk_every_path_in_calls},
    "Your function runs no backward pass.": {"passes": walk_after_backward},
    "nothing may be left over from an earlier call": {
        "own nodes": walk_returning_what_it_remembers,
        "all": walk_remembering,
        "renewed": walk_cached,
        "kept": walk_into_one_list,
    },
}

STILL_RIGHT = {"reversed list"}

EQUIVALENT = {
    "walk_a_growing_list: to is not None -> to": "A node has no truth value of its own: it is always true.",
    "walk_a_growing_list: return nodes -> return seen": '"in any order": a set of the nodes is taken, as walk_as_a_set shows.',
    "walk_depth_first: tensor.grad_fn is not None -> False": "The node that a view leads to is the tensor's own.",
    "walk_depth_first: tensor.grad_fn is not None -> tensor.grad_fn": "A node has no truth value of its own: it is always true.",
    "walk_depth_first: found[node] = True -> found[node] = False": "The dict is used for its keys alone.",
    "walk_depth_first: stack += [to for to, _ in no... -> stack = stack + [to for to, _ in no...": "No one else holds the list.",
    "walk_depth_first: to is not None -> to": "A node has no truth value of its own: it is always true.",
    "walk_depth_first: found[node] = True | stack += [to for to, _ in node.next_functions if to is not None] -> (swapped)": "A node is never an input of itself, so it does not matter when it is noted.",
    "walk_as_a_set: set(walk_depth_first(tensor)) -> walk_depth_first(tensor)": '"in any order", and a tuple is taken as well as a set.',
}
