"""Right and wrong answers to `leaves_of`."""

import torch
from torch.autograd.graph import get_gradient_edge

from tests.answers.lesson_01_graph_structure.walking import walk_a_growing_list, walk_every_path, walk_recursive
from tests.answers.said import said


def leaves_by_walking(tensor):
    return [node.variable for node in walk_a_growing_list(tensor) if hasattr(node, "variable")]


def leaves_by_stack(tensor):
    if tensor.is_leaf:
        return [tensor] if tensor.requires_grad else []
    stack, seen, leaves = [tensor.grad_fn], set(), {}
    while stack:
        node = stack.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        if node.name().endswith("AccumulateGrad"):
            leaves[id(node.variable)] = node.variable
        stack.extend(to for to, _ in node.next_functions)
    return list(leaves.values())


def leaves_refused_without_a_graph(tensor):
    get_gradient_edge(tensor)
    return leaves_by_walking(tensor)


def leaf_nodes(tensor):
    return [node for node in walk_a_growing_list(tensor) if hasattr(node, "variable")]


def leaf_per_path(tensor):
    return [node.variable for node in walk_every_path(tensor) if hasattr(node, "variable")]


def leaf_per_edge(tensor):
    leaves = [tensor] if tensor.is_leaf and tensor.requires_grad else []
    for node in walk_a_growing_list(tensor):
        leaves += [to.variable for to, _ in node.next_functions if hasattr(to, "variable")]
    return leaves


def leaves_recursive(tensor):
    return [node.variable for node in walk_recursive(tensor) if hasattr(node, "variable")]


def leaves_by_backward(tensor):
    if tensor.requires_grad:
        tensor.sum().backward()
    return leaves_by_walking(tensor)


def leaves_changed(tensor):
    leaves = leaves_by_walking(tensor)
    for leaf in leaves:
        leaf.data.mul_(2)
    return leaves


def leaves_and_what_is_saved(tensor):
    """Constants that an operation saved are taken for leaves behind the result."""
    saved = (getattr(node, "_saved_other", None) for node in walk_a_growing_list(tensor))
    rows = [it for it in saved if isinstance(it, torch.Tensor) and it.dim() == 1]  # numbers are saved as well
    constants = [it for it in rows if it.is_leaf and not it.requires_grad]
    return list({id(leaf): leaf for leaf in [*leaves_by_walking(tensor), *constants]}.values())


def leaves_and_a_pass(tensor):
    leaves = leaves_by_walking(tensor)
    asked = [leaf for leaf in leaves if leaf.requires_grad]
    if asked:
        torch.autograd.grad(tensor.sum(), asked, retain_graph=True)
    return leaves


def leaves_with_zeros(tensor):
    leaves = leaves_by_walking(tensor)
    for leaf in leaves:
        leaf.grad = torch.zeros_like(leaf)
    return leaves


def leaves_remembering(tensor, seen=set()):  # noqa: B006
    leaves = [leaf for leaf in leaves_by_walking(tensor) if id(leaf) not in {id(it) for it in seen}]
    seen.update(leaves)
    return leaves


def leaves_by_object(tensor, known={}):  # noqa: B006
    """Remembers what it found behind a tensor, which can be written to."""
    return known.setdefault(tensor, leaves_by_walking(tensor))


def leaves_without_gradients(tensor):
    leaves = leaves_by_walking(tensor)
    for leaf in leaves:
        leaf.grad = None
    return leaves


def leaves_down_every_path(tensor):
    """Names each leaf once, and still walks every path."""
    return list({leaf: None for leaf in leaf_per_path(tensor)})


def leaves_and_copies(tensor):
    return [*leaves_by_walking(tensor), *(leaf.detach() for leaf in leaves_by_walking(tensor))]


def leaves_by_memory(tensor):
    return list({leaf.data_ptr(): leaf for leaf in leaves_by_walking(tensor)}.values())


def leaves_with_numbers(tensor):
    """A leaf of no numbers is no leaf of less."""
    return [leaf for leaf in leaves_by_walking(tensor) if leaf.numel()]


def leaves_switched_on(tensor):
    """Lets all leaves learn, also those that were frozen."""
    leaves = leaves_by_walking(tensor)
    for leaf in leaves:
        leaf.requires_grad_()
    return leaves


def leaves_by_layers(tensor):
    """One set of nodes after the other, by their distance."""
    layer = {get_gradient_edge(tensor).node} if tensor.requires_grad else set()
    seen, leaves = set(), set()
    while layer:
        seen |= layer
        leaves |= {node.variable for node in layer if hasattr(node, "variable")}
        layer = {to for node in layer for to, _ in node.next_functions if to is not None} - seen
    return leaves


def leaves_of_modules(tensor):
    leaves = leaves_by_walking(tensor)
    return [leaf for leaf in leaves if isinstance(leaf, torch.nn.Parameter)] or leaves


RIGHT = [leaves_by_walking, leaves_by_stack, leaves_by_layers]

MISCONCEIVED = {
    "no edge": leaves_refused_without_a_graph,
    "nodes, not tensors": leaf_nodes,
    "copies": lambda tensor: [leaf.detach() for leaf in leaves_by_walking(tensor)],
    "once per path": leaf_per_path,
    "recursion": leaves_recursive,
    "frozen later": lambda tensor: [it for it in leaves_by_walking(tensor) if it.requires_grad],
    "a leaf without a graph": lambda t: [t] if t.is_leaf else leaves_by_walking(t),
}

WRONG = [
    said(leaf_per_edge, "once per path"),
    leaves_by_backward,
    leaves_changed,
    leaves_and_what_is_saved,
    leaves_and_a_pass,
    leaves_with_zeros,
    leaves_remembering,
    leaves_by_object,
    leaves_without_gradients,
    said(leaves_down_every_path, "once per path"),
    said(leaves_by_memory, "one of a kind"),
    *(leaves_with_numbers, leaves_switched_on),
    leaves_of_modules,
    said(leaves_and_copies, "copies"),
    lambda tensor: [*leaves_by_walking(tensor), tensor.grad_fn],
    said(lambda tensor: [leaf.clone() for leaf in leaves_by_walking(tensor)], "copies"),
    said(lambda tensor: [leaf.data for leaf in leaves_by_walking(tensor)], "copies"),
    lambda tensor: leaves_by_walking(tensor)[:1],
    lambda tensor: [] if tensor.is_leaf else leaves_by_walking(tensor),
    lambda tensor: {id(leaf): leaf for leaf in leaves_by_walking(tensor)},
    lambda tensor: [torch.zeros(2).to_sparse()],
]

STILL_RIGHT = {"reversed list"}

EQUIVALENT = {
    "leaves_by_layers: leaves |= {node.variable for ... -> leaves = leaves | {node.variable for ...": "Nothing else refers to the set.",
    "leaves_by_layers: seen |= layer | leaves |= {node.variable for node in layer if hasattr(node, 'variable')} -> (swapped)": "The two add to different sets.",
    "leaves_by_layers: seen |= layer -> (dropped)": "A graph has no cycle: without the set the walk comes to some nodes again, finds the same leaves, and ends.",
    "leaves_by_layers: seen |= layer -> seen = layer": "A graph has no cycle: the walk comes to some nodes again, finds the same leaves, and ends.",
    "leaves_by_layers: seen |= layer -> seen = seen | layer": "Nothing else refers to the set.",
    "leaves_by_layers: seen |= layer -> seen &= layer": "A graph has no cycle: the walk comes to some nodes again, finds the same leaves, and ends.",
    "leaves_by_layers: to is not None -> to": "A node has no truth value of its own: it is always true.",
    "walk_a_growing_list: to is not None -> to": "A node has no truth value of its own: it is always true.",
    "walk_a_growing_list: return nodes -> return seen": '"in any order".',
    "leaves_by_stack: node is None or node in seen -> not node or node in seen": "A node has no truth value of its own: it is always true.",
    "leaves_by_stack: seen.add(node) | if node.name().endswith('AccumulateGrad'): ... -> (swapped)": "The two statements use different containers, and a node is never an input of itself.",
    "leaves_by_stack: if node.name().endswith('AccumulateGrad'): ... | stack.extend((to for to, _ in node.next_functions)) -> (swapped)": "The two statements use different containers, and a node is never an input of itself.",
    "leaves_by_stack: if tensor.is_leaf: ... | stack, seen, leaves = ([tensor.grad_fn], set(), {}) -> (swapped)": "For a leaf, both are done before it returns, and a list of None hurts nobody.",
}

GUARDS = {
    "It returns a list of the leaf tensors": {"type": WRONG[-2], "leaves only": WRONG[15]},
    "that the graph of `tensor` ends in": {"all": WRONG[-3], "dependence": leaves_and_what_is_saved},
    "each once": {"once": leaf_per_edge},
    "The list holds the leaves themselves and no copies": {"the leaves themselves": leaves_and_copies},
    "A tensor that requires no gradient has no leaves behind it.": {
        "not itself": MISCONCEIVED["a leaf without a graph"]
    },
    "A leaf that was frozen after the forward pass is still in the graph": {"all": MISCONCEIVED["frozen later"]},
    "nothing may be left over from an earlier call": {"all": leaves_by_object},
    "Your function runs no backward pass": {
        "passes": leaves_and_a_pass,
        "grad": leaves_with_zeros,
        "numbers": leaves_changed,
    },
    "and whether they require a gradient": {"flags": leaves_switched_on},
    "The chain of 3,500 operations is among the cases here, too.": {"runs": leaves_recursive},
}


def leaves_of_each_shape(tensor):
    return list({leaf.shape: leaf for leaf in leaves_by_walking(tensor)}.values())


MISCONCEIVED["one of a kind"] = leaves_of_each_shape


def leaves_collected_for_each_tensor(tensor, known={}):  # noqa: B006
    """Adds to the list of an earlier call."""
    known.setdefault(tensor, []).extend(leaves_by_walking(tensor))
    return list(known[tensor])


WRONG += [lambda tensor: leaves_by_walking(tensor) * 2, leaves_collected_for_each_tensor]
