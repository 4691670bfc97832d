"""Right and wrong answers to `used_outputs`."""

from torch.autograd.graph import get_gradient_edge

from tests.answers.lesson_01_graph_structure.walking import walk_a_growing_list, walk_recursive
from tests.answers.said import said


def outputs_by_edges(tensor, node):
    if not tensor.requires_grad:
        return []
    start = get_gradient_edge(tensor)
    edges = [(start.node, start.output_nr)]
    for other in walk_a_growing_list(tensor):
        edges += other.next_functions
    return sorted({output for to, output in edges if to is node})


def outputs_by_stack(tensor, node):
    found, seen, stack = set(), set(), [(tensor.grad_fn, tensor.output_nr)]
    while stack:
        to, output = stack.pop()
        if to == node:
            found.add(output)
        if to is None or to in seen:
            continue
        seen.add(to)
        stack.extend(to.next_functions)
    return sorted(found)


def outputs_between_nodes(tensor, node):
    nodes = walk_a_growing_list(tensor)
    return sorted({output for other in nodes for to, output in other.next_functions if to is node})


def outputs_per_edge(tensor, node):
    edges = [(tensor.grad_fn, tensor.output_nr)]
    for other in walk_a_growing_list(tensor):
        edges += other.next_functions
    return sorted(output for to, output in edges if to is node)


def outputs_all(tensor, node):
    return list(range(len(node._input_metadata)))


def outputs_by_name(tensor, node):
    edges = [(tensor.grad_fn, tensor.output_nr)]
    for other in walk_a_growing_list(tensor):
        edges += other.next_functions
    return sorted({output for to, output in edges if to is not None and to.name() == node.name()})


def outputs_until_found(tensor, node):
    """Goes no further than the first operation that uses the node."""
    if not tensor.requires_grad:
        return []
    edge = get_gradient_edge(tensor)
    if edge.node is node:
        return [edge.output_nr]
    for behind in walk_a_growing_list(tensor):
        found = {output for to, output in behind.next_functions if to is node}
        if found:
            return sorted(found)
    return []


def outputs_refused_without_a_graph(tensor, node):
    get_gradient_edge(tensor)
    return outputs_by_edges(tensor, node)


def outputs_of_the_first_edge(tensor, node):
    found, seen, stack = set(), set(), [(tensor.grad_fn, tensor.output_nr)]
    while stack:
        to, output = stack.pop()
        if to is None or to in seen:
            continue
        seen.add(to)
        if to is node:
            found.add(output)
        stack.extend(to.next_functions)
    return sorted(found)


def outputs_remembering(tensor, node, known=set()):  # noqa: B006
    if tensor in known:
        return []
    known.add(tensor)
    return outputs_by_edges(tensor, node)


def outputs_of_all_tensors(tensor, node, known={}):  # noqa: B006
    known.setdefault(node, set()).update(outputs_by_edges(tensor, node))
    return sorted(known[node])


def outputs_but_the_first(tensor, node):
    return [output for output in outputs_by_edges(tensor, node) if output]


def outputs_recursive(tensor, node):
    walk_recursive(tensor)
    return outputs_by_edges(tensor, node)


def outputs_of_the_tensor(tensor, node):
    return [tensor.output_nr] if tensor.grad_fn is node else []


def outputs_of_the_first(tensor, node):
    return sorted({output for to, output in tensor.grad_fn.next_functions if to is node})


def outputs_of_one_edge_each(tensor, node):
    """Looks no further at an operation when it has found one output among its inputs."""
    if not tensor.requires_grad:
        return []
    edge = get_gradient_edge(tensor)
    found = {edge.output_nr} if edge.node is node else set()
    for behind in walk_a_growing_list(tensor):
        found |= set([output for to, output in behind.next_functions if to is node][:1])
    return sorted(found)


def outputs_in_one_comprehension(tensor, node):
    """Every edge once, and of what they name the node's own."""
    edges, new = set(), {(get_gradient_edge(tensor).node, tensor.output_nr)} if tensor.requires_grad else set()
    while new:
        edges |= new
        new = {edge for to, _ in new for edge in to.next_functions if edge[0] is not None} - edges
    return sorted(output for to, output in edges if to is node)


def outputs_unsorted(tensor, node):
    return outputs_by_edges(tensor, node)[::-1]


def outputs_sorted_as_text(tensor, node):
    return sorted(outputs_by_edges(tensor, node), key=str)


def outputs_by_hook(tensor, node):
    found = []
    hook = node.register_prehook(lambda grads: found.extend(i for i, g in enumerate(grads) if g is not None))
    tensor.sum().backward(retain_graph=True)
    hook.remove()
    return found


def outputs_with_own(tensor, node):
    return sorted({*outputs_by_edges(tensor, node), tensor.output_nr})


def outputs_and_a_pass(tensor, node):
    if tensor.requires_grad:
        tensor.sum().backward(retain_graph=True)
    return outputs_by_edges(tensor, node)


RIGHT = [outputs_by_edges, outputs_by_stack, outputs_in_one_comprehension]

MISCONCEIVED = {
    "one entry per edge": outputs_per_edge,
    "all outputs": outputs_all,
    "own output missing": outputs_between_nodes,
    "any node of that name": outputs_by_name,
    "only the first edge": outputs_of_the_first_edge,
    "recursion": outputs_recursive,
    "no edge": outputs_refused_without_a_graph,
}


def outputs_at_once(tensor, node):
    """Ends at a tensor that is an output of the node's kind, although the graph may come to the node below it."""
    if not tensor.requires_grad:
        return []
    edge = get_gradient_edge(tensor)
    if edge.node.name() == node.name():
        return [edge.output_nr] if edge.node == node else []
    return outputs_by_edges(tensor, node)


WRONG = [
    outputs_at_once,
    outputs_of_the_first,
    outputs_unsorted,
    outputs_by_hook,
    outputs_sorted_as_text,
    outputs_with_own,
    outputs_of_the_tensor,
    outputs_until_found,
    outputs_of_one_edge_each,
    outputs_remembering,
    outputs_of_all_tensors,
    said(outputs_but_the_first, "0 taken for nothing"),
    outputs_and_a_pass,
    lambda tensor, node: set(outputs_by_edges(tensor, node)),
    lambda tensor, node: [float(output) for output in outputs_by_edges(tensor, node)],
    lambda tensor, node: [bool(output) for output in outputs_by_edges(tensor, node)],
    lambda tensor, node: len(outputs_by_edges(tensor, node)),
]

EQUIVALENT = {
    "outputs_in_one_comprehension: (output for to, output in edges if to is node) -> (output for to, output in edges if to == node)": "Nodes are equal only to themselves.",
    "outputs_in_one_comprehension: edges |= new -> edges = edges | new": "Nothing else refers to the set.",
    "outputs_in_one_comprehension: edge[0] is not None -> edge[0]": "A node has no truth value of its own: it is always true.",
    "walk_a_growing_list: if not tensor.requires_grad: ... -> (dropped)": "outputs_by_edges has returned already where the tensor has no graph.",
    "walk_a_growing_list: return [] -> return tensor": "outputs_by_edges has returned already where the tensor has no graph.",
    "walk_a_growing_list: return [] -> return nodes": "outputs_by_edges has returned already where the tensor has no graph.",
    "walk_a_growing_list: return [] -> return seen": "outputs_by_edges has returned already where the tensor has no graph.",
    "walk_a_growing_list: return [] -> return node": "outputs_by_edges has returned already where the tensor has no graph.",
    "walk_a_growing_list: return [] -> return to": "outputs_by_edges has returned already where the tensor has no graph.",
    "walk_a_growing_list: to is not None -> to": "A node has no truth value of its own: it is always true.",
    "walk_a_growing_list: return nodes -> return seen": "The nodes are asked for their edges in any order, and the result is sorted.",
    "walk_a_growing_list: if not tensor.requires_grad: ... | nodes = [get_gradient_edge(tensor).node] -> (swapped)": "outputs_by_edges has returned already where the tensor has no graph.",
    "outputs_by_edges: {output for to, output in edges if to is node} -> {output for to, output in edges if to == node}": "Nodes have no equality of their own: == is identity.",
    "outputs_by_stack: to is None or to in seen -> not to or to in seen": "A node has no truth value of its own: it is always true.",
    "outputs_by_stack: seen.add(to) | stack.extend(to.next_functions) -> (swapped)": "A node is never an input of itself, so it does not matter when it is noted.",
}

GUARDS = {
    "the indices of those outputs of `node` at which the graph of `tensor` arrives": {"outputs": outputs_all},
    "as whole numbers": {"type": WRONG[-3]},
    "each once": {"once": outputs_per_edge},
    "in rising order": {"sorted": outputs_sorted_as_text},
    "or if `tensor` has no graph": {"runs": outputs_refused_without_a_graph},
    "`tensor` may itself be one of the outputs.": {"outputs": outputs_between_nodes},
    "a chain of 3,500 operations": {"runs": outputs_recursive},
    "nothing may be left over from an earlier call": {
        "calls": outputs_remembering,
        "outputs": outputs_of_all_tensors,
    },
    "Your function runs no backward pass.": {"passes": outputs_and_a_pass},
}

MISCONCEIVED["0 taken for nothing"] = outputs_but_the_first


def outputs_remembering_each_node(tensor, node, known={}):  # noqa: B006
    known.setdefault(node, set()).update(outputs_by_edges(tensor, node))
    return sorted(known[node])


def outputs_unless_its_own_is_the_first(tensor, node):
    """Looks at the tensor's own edge where its index is true: 0 is not."""
    own = tensor.grad_fn is node and tensor.output_nr == 0
    return [] if own else outputs_by_edges(tensor, node)


WRONG += [outputs_remembering_each_node, said(outputs_unless_its_own_is_the_first, "0 taken for nothing")]
