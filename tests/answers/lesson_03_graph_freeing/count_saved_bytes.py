"""Right and wrong answers to `count_saved_bytes`."""

import torch

from course_utils import saved, trace
from tests.answers.lesson_03_graph_freeing.saved_tensors import all_nodes, freed_by_message, tensors_of
from tests.answers.said import said


def storage_of(tensor):
    return tensor.untyped_storage().data_ptr()


def count_by_address(loss, besides):
    nodes = all_nodes(loss)
    leaves = [node.variable for node in nodes if hasattr(node, "variable")]
    given = {storage_of(tensor) for tensor in [*leaves, *besides]}
    sizes = {}
    for node in nodes:
        for tensor in tensors_of(node):
            if storage_of(tensor) not in given:
                sizes[storage_of(tensor)] = tensor.untyped_storage().nbytes()
    return sum(sizes.values())


def count_by_raw_data(loss, besides):
    """From what nodes hold, without unpacking it: what was freed holds None there."""
    nodes = all_nodes(loss)
    own = [node.variable for node in nodes if node.name() == "torch::autograd::AccumulateGrad"]
    free = {storage_of(tensor) for tensor in [*own, *besides]}
    held = [getattr(node, name) for node in nodes for name in dir(node) if name.startswith("_raw_saved_")]
    found = [item.data for it in held for item in (it if isinstance(it, tuple) else (it,)) if item.data is not None]
    return sum({storage_of(it): it.untyped_storage().nbytes() for it in found if storage_of(it) not in free}.values())


def count_with_leaves_frozen_since(loss, besides):
    given = {storage_of(tensor) for tensor in besides}
    sizes = {}
    for node in all_nodes(loss):
        if hasattr(node, "variable") and node.variable.requires_grad:
            given.add(storage_of(node.variable))
        sizes |= {storage_of(tensor): tensor.untyped_storage().nbytes() for tensor in tensors_of(node)}
    return sum(size for storage, size in sizes.items() if storage not in given)


def count_each_tensor(loss, besides):
    nodes = all_nodes(loss)
    given = {storage_of(node.variable) for node in nodes if hasattr(node, "variable")} | set(map(storage_of, besides))
    tensors = [tensor for node in nodes for tensor in tensors_of(node) if storage_of(tensor) not in given]
    return sum(tensor.untyped_storage().nbytes() for tensor in tensors)


def count_views_as_they_look(loss, besides):
    nodes = all_nodes(loss)
    given = {storage_of(node.variable) for node in nodes if hasattr(node, "variable")} | set(map(storage_of, besides))
    sizes = {storage_of(t): t.nbytes for node in nodes for t in tensors_of(node) if storage_of(t) not in given}
    return sum(sizes.values())


def count_with_leaves(loss, besides):
    tensors = [tensor for node in all_nodes(loss) for tensor in tensors_of(node)]
    return sum({storage_of(tensor): tensor.untyped_storage().nbytes() for tensor in tensors}.values())


def count_by_identity(loss, besides):
    """Excludes leaves as objects: a view of a weight is another object."""
    nodes = all_nodes(loss)
    given = {id(node.variable) for node in nodes if hasattr(node, "variable")} | set(map(id, besides))
    tensors = [tensor for node in nodes for tensor in tensors_of(node) if id(tensor) not in given]
    return sum({storage_of(tensor): tensor.untyped_storage().nbytes() for tensor in tensors}.values())


def count_without_tuples(loss, besides):
    nodes = all_nodes(loss)
    given = {storage_of(node.variable) for node in nodes if hasattr(node, "variable")} | set(map(storage_of, besides))
    sizes = {}
    for node in nodes:
        for name in dir(node):
            try:
                value = getattr(node, name) if name.startswith("_saved_") else None
            except RuntimeError:
                continue
            if isinstance(value, torch.Tensor) and storage_of(value) not in given:
                sizes[storage_of(value)] = value.untyped_storage().nbytes()
    return sum(sizes.values())


def count_after_a_pass(loss, besides):
    total = count_by_address(loss, besides)
    if total:
        loss.backward()
    return total


def count_unless_freed(loss, besides):
    """Takes one freed node for a freed graph."""
    return 0 if freed_by_message(loss) else count_by_address(loss, besides)


def count_owned(loss, besides, leaves=True):
    """Forgets what is in `besides`, or the leaves."""
    nodes = all_nodes(loss)
    given = [node.variable for node in nodes if hasattr(node, "variable")] if leaves else besides
    addresses = set(map(storage_of, given))
    tensors = [tensor for node in nodes for tensor in tensors_of(node) if storage_of(tensor) not in addresses]
    return sum({storage_of(tensor): tensor.untyped_storage().nbytes() for tensor in tensors}.values())


def count_besides_where(known):
    """Passes over some of what is in `besides`."""
    return lambda loss, besides: count_by_address(loss, [tensor for tensor in besides if known(tensor)])


def count_until_freed(loss, besides):
    """Goes from the oldest node to the newest, and stops at the first that was freed."""
    nodes, sizes = all_nodes(loss), {}
    given = {storage_of(node.variable) for node in nodes if hasattr(node, "variable")} | set(map(storage_of, besides))
    for node in sorted(nodes, key=lambda node: node._sequence_nr()):
        if node in freed_by_message(loss):
            break
        sizes |= {
            storage_of(it): it.untyped_storage().nbytes() for it in tensors_of(node) if storage_of(it) not in given
        }
    return sum(sizes.values())


def count_by_subtraction(loss, besides):
    """Everything that is saved, less what lives anyway, in a graph that is walked by calls."""
    sizes, seen = {}, set()

    def visit(node):
        if node is None or node in seen:
            return
        seen.add(node)
        sizes.update({storage_of(it): it.untyped_storage().nbytes() for it in tensors_of(node)})
        for to, _ in node.next_functions:
            visit(to)

    visit(loss.grad_fn)
    for tensor in [*besides, *(node.variable for node in seen if hasattr(node, "variable"))]:
        sizes.pop(storage_of(tensor), None)
    return sum(sizes.values())


def count_and_empty(loss, besides):
    total = count_by_address(loss, besides)
    besides.clear()
    return total


def count_and_write(loss, besides):
    """Backward will refuse what leaves were saved."""
    for node in all_nodes(loss):
        if hasattr(node, "variable"):
            node.variable.detach().add_(0)
    return count_by_raw_data(loss, besides)


def count_after_another_pass(loss, besides):
    """The pass goes through nothing of the loss's."""
    torch.ones(1, requires_grad=True).exp().backward()
    return count_by_address(loss, besides)


def count_without_constants(loss, besides):
    """Takes every tensor that no operation made for one that lives anyway."""
    nodes = all_nodes(loss)
    given = {storage_of(tensor) for tensor in besides}
    tensors = [tensor for node in nodes for tensor in tensors_of(node)]
    made = [tensor for tensor in tensors if not tensor.is_leaf and storage_of(tensor) not in given]
    return sum({storage_of(tensor): tensor.untyped_storage().nbytes() for tensor in made}.values())


def count_less_besides(loss, besides):
    """Takes off what lives anyway, also where the graph does not keep it."""
    return count_owned(loss, besides) - sum({storage_of(it): it.untyped_storage().nbytes() for it in besides}.values())


def count_less_each(loss, besides):
    """Takes off a storage again for every tensor of the list that lies in it."""
    nodes = all_nodes(loss)
    own = {storage_of(node.variable) for node in nodes if hasattr(node, "variable")}
    sizes = {storage_of(it): it.untyped_storage().nbytes() for node in nodes for it in tensors_of(node)}
    kept = sum(size for storage, size in sizes.items() if storage not in own)
    return kept - sum(sizes.get(storage_of(it), 0) for it in besides)


def count_new_nodes(loss, besides, seen=set()):  # noqa: B006
    """Passes over nodes that an earlier call has met."""
    nodes = [node for node in all_nodes(loss) if node not in seen]
    seen.update(nodes)
    given = {storage_of(node.variable) for node in nodes if hasattr(node, "variable")} | set(map(storage_of, besides))
    tensors = [tensor for node in nodes for tensor in tensors_of(node) if storage_of(tensor) not in given]
    return sum({storage_of(tensor): tensor.untyped_storage().nbytes() for tensor in tensors}.values())


def count_with_saved_besides(loss, besides):
    """Looks at what `saved` says on the way."""
    saved(loss)
    return count_by_address(loss, besides)


def count_where(wanted, size_of=lambda tensor: tensor.untyped_storage().nbytes()):
    """Counts only the wanted ones of a node's tensors, each by its size."""

    def count(loss, besides):
        nodes = all_nodes(loss)
        own = {storage_of(node.variable) for node in nodes if hasattr(node, "variable")} | set(map(storage_of, besides))
        found = [tensor for node in nodes for tensor in tensors_of(node) if wanted(node, tensor)]
        return sum({storage_of(it): size_of(it) for it in found if storage_of(it) not in own}.values())

    return count


def first_of_its_tuple(node, tensor):
    """Passes over what stands behind None."""
    return not hasattr(node, "_saved_indices") or node._saved_indices[0] is not None or tensor.dtype != torch.int64


count_without_numbers = count_where(lambda node, tensor: tensor.dim() > 0)
count_without_python_numbers = count_where(lambda node, tensor: tensor.dim() > 0 or tensor.dtype == torch.float32)
count_without_buffers = count_where(lambda node, tensor: not hasattr(node, "_saved_running_var") or tensor.dim() != 1)
count_first_of_tuples = count_where(first_of_its_tuple)
# Takes every number to need four bytes, but for indices.
count_in_single = count_where(
    lambda node, tensor: True,
    lambda tensor: tensor.untyped_storage().nbytes() // (2 if tensor.dtype == torch.float64 else 1),
)


def count_numbers(loss, besides):
    return count_by_address(loss, besides) // 4


def count_remembered(loss, besides, known={}):  # noqa: B006
    """Counts each graph once, and so knows nothing of a pass that came after it."""
    if id(loss) not in known:
        known[id(loss)] = loss, count_by_address(loss, besides)
    return known[id(loss)][1]


RIGHT = [count_by_address, count_by_raw_data, count_by_subtraction]

MISCONCEIVED = {
    "counted twice": count_each_tensor,
    "a view's own size": count_views_as_they_look,
    "leaves included": count_with_leaves,
}

WRONG = [
    said(count_by_identity, "leaves included"),
    said(count_without_tuples, "tuples left out"),
    said(count_with_leaves_frozen_since, "leaves included"),
    count_after_a_pass,
    count_unless_freed,
    said(count_owned, "leaves included"),
    said(lambda loss, besides: count_owned(loss, besides, leaves=False), "leaves included"),
    said(count_besides_where(torch.Tensor.is_contiguous), "leaves included"),
    said(count_besides_where(lambda tensor: tensor.is_leaf), "leaves included"),
    said(count_besides_where(lambda tensor: not tensor.requires_grad), "leaves included"),
    count_until_freed,
    count_remembered,
    count_and_empty,
    *(count_less_besides, count_less_each, count_new_nodes),
    *(said(count_without_numbers, "no dimension left out"), count_in_single),
    said(count_first_of_tuples, "tuples left out"),
    *(count_numbers, count_and_write, count_after_another_pass, count_without_constants, count_with_saved_besides),
    lambda loss, besides: saved(loss, besides=besides).bytes,
    lambda loss, besides: len(trace(loss).nodes),
    count_without_python_numbers,
    count_without_buffers,
]

EQUIVALENT = {
    "count_by_subtraction.visit: node is None or node in seen -> not node or node in seen": "A node has no truth value of its own: it is always true.",
    "count_by_subtraction.visit: seen.add(node) | sizes.update({storage_of(it): it.untyped_storage().nbytes() for it in tensors_of(node)}) -> (swapped)": "The two write into different containers, and no node comes back to itself.",
    "count_by_subtraction.visit: sizes.update({storage_of(it): it.untyped_storage().nbytes() for it in tensors_of(node)}) | for to, _ in node.next_functi... -> (swapped)": "The sizes are of storages, in whatever order they come.",
    "all_nodes: before is not None -> before": "A node has no truth value of its own: it is always true.",
    "all_nodes: return nodes -> return seen": "The same nodes, in a set: their order decides nothing.",
    "tensors_of: name.startswith(prefix) -> True": "Of the attributes that are not saved, only .variable of AccumulateGrad holds a tensor: a leaf, which is not counted.",
    "tensors_of: continue -> break": "What a node saved is freed together: after the first freed one, no other can be read.",
    "count_by_raw_data: free = {storage_of(tensor) for tensor in [*own, *besides]} | held = [getattr(node, name) for node in nodes for name in d... -> (swapped)": "Neither of the two statements changes what the other one uses.",
}

GUARDS = {
    "Each storage is counted once and as a whole.": {"value": count_each_tensor},
    "A call of `saved` is not accepted": {"own count": count_with_saved_besides},
    "Some hold numbers, some a tensor, some a tuple with tensors and None in it.": {"value": count_without_tuples},
    "All else that is saved is counted: a constant,": {"value": count_without_constants},
    "a buffer,": {"value": count_without_buffers},
    "the small tensor that PyTorch makes of a Python number": {"value": count_without_python_numbers},
    "nor a backward pass": {"passes": count_after_another_pass},
    "nor a change of the graph or of `besides`": {"untouched": count_and_write, "besides": count_and_empty},
}


def count_each_as_it_looks(loss, besides):
    nodes = all_nodes(loss)
    given = {storage_of(node.variable) for node in nodes if hasattr(node, "variable")} | set(map(storage_of, besides))
    return sum(it.nbytes for node in nodes for it in tensors_of(node) if storage_of(it) not in given)


MISCONCEIVED |= {
    "as they look": count_each_as_it_looks,
    "tuples left out": count_without_tuples,
    "no dimension left out": count_without_numbers,
}


def count_where(keeps):
    """Counts only some of the saved tensors."""

    def count(loss, besides):
        nodes = all_nodes(loss)
        given = {storage_of(it) for it in (*besides, *(node.variable for node in nodes if hasattr(node, "variable")))}
        tensors = [it for node in nodes for it in tensors_of(node) if keeps(it) and storage_of(it) not in given]
        return sum({storage_of(it): it.untyped_storage().nbytes() for it in tensors}.values())

    return count


def count_less_the_loss(loss, besides):
    return count_by_address(loss, [*besides, loss.detach()])


MISCONCEIVED["the loss left out"] = count_less_the_loss
MISCONCEIVED["constants left out"] = count_where(lambda it: it.requires_grad)

WRONG += [said(count_where(lambda it: not it.is_leaf), "constants left out")]
