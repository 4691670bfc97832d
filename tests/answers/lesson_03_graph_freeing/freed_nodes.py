"""Right and wrong answers to `freed_nodes`."""

import torch

from course_utils import saved
from course_utils.graph.trace import roots_of, walk
from tests.answers.lesson_03_graph_freeing.saved_tensors import all_nodes, freed_by_message, tensors_of


def freed_by_instrument(loss):
    nodes = walk(root[0] for root in roots_of([loss]))
    return [nodes[number] for number in sorted({entry.node for entry in saved(loss).freed})]


def freed_by_any_error(loss):
    freed = set()
    for node in all_nodes(loss):
        for name in dir(node):
            if name.startswith("_saved_"):
                try:
                    getattr(node, name)
                except RuntimeError:
                    freed.add(node)
    return freed


def freed_by_empty_slots(loss):
    freed = set(freed_by_message(loss))
    for node in all_nodes(loss):
        for name in dir(node):
            if name.startswith("_raw_saved_"):
                try:
                    raw = getattr(node, name)
                except RuntimeError:
                    continue
                if not isinstance(raw, tuple) and raw.data is None:
                    freed.add(node)
    return freed


def freed_and_empty(loss):
    empty = {node for node in all_nodes(loss) if not any(name.startswith("_raw_saved_") for name in dir(node))}
    return freed_by_message(loss) | empty


def freed_where_nothing_is_left(loss):
    return {node for node in all_nodes(loss) if not list(tensors_of(node))}


def freed_by_running(loss):
    try:
        loss.backward(retain_graph=True)
    except RuntimeError:
        return freed_by_message(loss)
    return set()


def freed_along(inputs):
    """Follows one input of each node, the first or the last."""

    def freed_nodes(loss):
        node, path = loss.grad_fn, set()
        while node is not None:
            path.add(node)
            node = node.next_functions[inputs][0] if node.next_functions else None
        return path & freed_by_message(loss)

    return freed_nodes


def freed_and_switched_off(loss):
    for node in all_nodes(loss):
        if hasattr(node, "variable"):
            node.variable.requires_grad_(False)
    return freed_by_message(loss)


def freed_and_detached(loss):
    freed = freed_by_message(loss)
    loss.detach_()
    return freed


KNOWN = {}


def freed_by_memory(loss):
    """Remembers its first answer about a graph."""
    if loss.grad_fn not in KNOWN:
        KNOWN.clear()
        KNOWN[loss.grad_fn] = freed_by_message(loss)
    return KNOWN[loss.grad_fn]


def freed_after_another_pass(loss):
    """The pass goes through nothing of the loss's."""
    sum(torch.ones(1, requires_grad=True).exp()).backward()
    return freed_by_message(loss)


def freed_of_the_loss_only(loss):
    return freed_by_message(loss) & {loss.grad_fn}


def freed_in_any_call(loss, freed=set()):  # noqa: B006
    freed |= freed_by_message(loss)
    return set(freed)


def freed_list_with_repeats(loss):
    return [node for node in freed_by_message(loss) for _ in range(2)]


def freed_by_the_first_thing(loss):
    """Reads one thing of each node: where that is a number, it never raises."""
    freed = set()
    for node in all_nodes(loss):
        names = [name for name in dir(node) if name.startswith("_saved_")]
        try:
            getattr(node, names[0] if names else "name")
        except RuntimeError as error:
            if "second time" in str(error):
                freed.add(node)
    return freed


def freed_until_something_else(loss):
    """Ends at the first error that says something else."""
    freed = set()
    for node in all_nodes(loss):
        for name in dir(node):
            try:
                getattr(node, name)
            except RuntimeError as error:
                if "already been freed" not in str(error):
                    return freed
                freed.add(node)
    return freed


RIGHT = [freed_by_message, freed_by_instrument]

MISCONCEIVED = {
    "modified is not freed": freed_by_any_error,
    "None is not freed": freed_by_empty_slots,
    "empty is not freed": freed_and_empty,
}

WRONG = [
    freed_by_running,
    freed_where_nothing_is_left,
    freed_along(0),
    freed_along(-1),
    freed_and_switched_off,
    freed_and_detached,
    *(freed_list_with_repeats, freed_by_memory, freed_after_another_pass),
    lambda loss: set(list(freed_by_message(loss))[1:]),
    lambda loss: {entry.operation for entry in saved(loss).freed},
    lambda loss: len(freed_by_message(loss)),
    lambda loss: set(all_nodes(loss)),
    freed_by_the_first_thing,
    freed_until_something_else,
    freed_of_the_loss_only,
    freed_in_any_call,
    lambda loss: freed_by_message(loss) - {loss.grad_fn},
    lambda loss: [[1], {}, None],
]

EQUIVALENT = {
    "all_nodes: before is not None -> before": "A node has no truth value of its own: it is always true.",
    "all_nodes: return nodes -> return seen": "The same nodes, in a set: their order decides nothing.",
    "freed_by_message: name.startswith('_saved_') -> True": "No other attribute of a node raises when it is read.",
    "freed_by_instrument: sorted({entry.node for entry in saved(loss).freed}) -> {entry.node for entry in saved(loss).freed}": "The nodes may come in any order.",
}

GUARDS = {
    "it returns the nodes behind `loss` that have lost their saved tensors": {"all": WRONG[2]},
    "each once, in a set, as in `{loss.grad_fn}`, or in a list": {"kind": freed_list_with_repeats},
    "A node that never saved anything is not freed.": {"only": freed_and_empty},
    "A saved tensor that somebody wrote to in place is not freed either.": {"only": freed_by_any_error},
    "Between two calls another pass may run.": {"anew": freed_by_memory},
    "a backward pass, or a changed tensor or gradient, is not accepted": {"passes": freed_after_another_pass},
    "or a changed tensor or gradient": {"untouched": freed_and_switched_off},
}


def freed_by_edges(loss):
    """Remembers where an edge ends and not at which node, so that a node of two results comes twice."""
    freed, seen, waiting = [], set(), [(loss.grad_fn, 0)]
    while waiting:
        node, number = waiting.pop()
        if node is None or (node, number) in seen:
            continue
        seen.add((node, number))
        freed += [node] if node in freed_by_message(loss) else []
        waiting += node.next_functions
    return freed


WRONG.append(freed_by_edges)
