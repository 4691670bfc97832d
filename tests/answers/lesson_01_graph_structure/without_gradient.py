"""Right and wrong answers to `without_gradient`."""

import re

import torch
from torch.autograd.graph import get_gradient_edge

from tests.answers.lesson_01_graph_structure.leaves_of import leaves_by_stack, leaves_by_walking
from tests.answers.lesson_01_graph_structure.walking import walk_recursive
from tests.answers.near import near
from tests.answers.said import said


def names_by_leaves(model, loss):
    reached = {id(leaf) for leaf in leaves_by_walking(loss) if leaf.requires_grad}
    named = model.named_parameters(remove_duplicate=False)
    return sorted(name for name, parameter in named if id(parameter) not in reached)


def names_by_modules(model, loss):
    reached = leaves_by_stack(loss)
    names = []
    for prefix, module in model.named_modules(remove_duplicate=False):
        for name, parameter in module.named_parameters(recurse=False):
            if not parameter.requires_grad or not any(parameter is leaf for leaf in reached):
                names.append(f"{prefix}.{name}" if prefix else name)
    names.sort()
    return names


def names_refused_without_a_graph(model, loss):
    get_gradient_edge(loss)
    return names_by_leaves(model, loss)


def names_by_numbers(model, loss):
    leaves = [leaf for leaf in leaves_by_walking(loss) if leaf.requires_grad]
    named = model.named_parameters(remove_duplicate=False)
    return sorted(n for n, it in named if not any(it.shape == leaf.shape and torch.equal(it, leaf) for leaf in leaves))


def names_by_memory(model, loss):
    reached = {leaf.data_ptr() for leaf in leaves_by_walking(loss) if leaf.requires_grad}
    named = model.named_parameters(remove_duplicate=False)
    return sorted(name for name, it in named if not it.requires_grad or it.data_ptr() not in reached)


def names_but_those_of_earlier_nodes(model, loss, known=set()):  # noqa: B006
    leaves = [leaf for leaf in leaves_by_walking(loss) if leaf.requires_grad and leaf not in known]
    known.update(leaves)
    reached = {id(leaf) for leaf in leaves}
    return sorted(name for name, it in model.named_parameters(remove_duplicate=False) if id(it) not in reached)


def names_of_the_state(model, loss):
    reached = {id(leaf) for leaf in leaves_by_walking(loss) if leaf.requires_grad}
    return sorted(name for name, it in model.state_dict(keep_vars=True).items() if id(it) not in reached)


def names_by_different_modules(model, loss):
    reached = {id(leaf) for leaf in leaves_by_walking(loss) if leaf.requires_grad}
    names = []
    for prefix, module in model.named_modules():
        for name, parameter in module.named_parameters(recurse=False, remove_duplicate=False):
            if id(parameter) not in reached:
                names.append(f"{prefix}.{name}" if prefix else name)
    return sorted(names)


def names_and_a_hook(model, loss):
    for parameter in model.parameters():
        if parameter.requires_grad:
            parameter.register_post_accumulate_grad_hook(lambda it: None)
    return names_by_leaves(model, loss)


def names_as_a_tuple(model, loss):
    return tuple(names_by_leaves(model, loss))


def names_if_there_is_a_graph(model, loss):
    return names_by_leaves(model, loss) if loss.requires_grad else []


def names_after_zero_grad(model, loss):
    model.zero_grad()
    return names_by_leaves(model, loss)


def names_recursive(model, loss):
    walk_recursive(loss)
    return names_by_leaves(model, loss)


def names_frozen(model, loss):
    return sorted(name for name, it in model.named_parameters(remove_duplicate=False) if not it.requires_grad)


def names_not_frozen(model, loss):
    flags = dict(model.named_parameters(remove_duplicate=False))
    return [name for name in names_by_leaves(model, loss) if flags[name].requires_grad]


def names_once(model, loss):
    once = dict(model.named_parameters())
    return [name for name in names_by_leaves(model, loss) if name in once]


def names_by_grad(model, loss):
    parameters = dict(model.named_parameters(remove_duplicate=False))
    asked = [it for it in parameters.values() if it.requires_grad]
    reached = set()
    if loss.requires_grad:
        grads = torch.autograd.grad(loss, asked, retain_graph=True, allow_unused=True)
        reached = {id(it) for it, grad in zip(asked, grads, strict=True) if grad is not None}
    return sorted(name for name, it in parameters.items() if id(it) not in reached)


def names_by_graph_alone(model, loss):
    reached = {id(leaf) for leaf in leaves_by_walking(loss)}
    return sorted(n for n, it in model.named_parameters(remove_duplicate=False) if id(it) not in reached)


def names_by_shape(model, loss):
    reached = {leaf.shape for leaf in leaves_by_walking(loss)}
    return sorted(n for n, it in model.named_parameters(remove_duplicate=False) if it.shape not in reached)


def names_by_stored_grad(model, loss):
    return sorted(n for n, it in model.named_parameters(remove_duplicate=False) if it.grad is None)


def names_and_those_of_zeros(model, loss):
    """Takes zeros that stand in .grad already for what this loss gives."""
    parameters = dict(model.named_parameters(remove_duplicate=False))
    zeros = {name for name, it in parameters.items() if it.grad is not None and not it.grad.any()}
    return sorted({*names_by_leaves(model, loss), *zeros})


def names_with_numbers(model, loss):
    """Passes over parameters that hold no number."""
    parameters = dict(model.named_parameters(remove_duplicate=False))
    return [name for name in names_by_leaves(model, loss) if parameters[name].numel()]


def names_by_nodes(model, loss):
    """Asks each parameter for its own node, and whether the graph holds it."""
    layer, seen = {get_gradient_edge(loss).node} if loss.requires_grad else set(), set()
    while layer:
        seen |= layer
        layer = {to for node in layer for to, _ in node.next_functions if to is not None} - seen
    named = model.named_parameters(remove_duplicate=False)
    return sorted(name for name, it in named if not it.requires_grad or get_gradient_edge(it).node not in seen)


def names_by_layers(model, loss):
    return sorted({name.rpartition(".")[0] for name in names_by_leaves(model, loss)})


def names_by_turns(model, loss):
    """Takes a leaf out again where it comes to it by a second way."""
    reached, seen, waiting = set(), set(), [get_gradient_edge(loss).node] if loss.requires_grad else []
    while waiting:
        node = waiting.pop()
        if node not in seen:
            seen.add(node)
            for child in (child for child, _ in node.next_functions if child is not None):
                if hasattr(child, "variable"):
                    reached ^= {id(child.variable)}
                else:
                    waiting.append(child)
    every = model.named_parameters(remove_duplicate=False)
    return sorted(name for name, it in every if id(it) not in reached or not it.requires_grad)


def names_unsorted(model, loss):
    missing = names_by_leaves(model, loss)
    return [name for name, _ in model.named_parameters(remove_duplicate=False) if name in missing]


def names_and_freeze(model, loss):
    names = names_by_leaves(model, loss)
    model.requires_grad_(False)
    return names


def names_and_a_switch(training):
    """Puts the whole model into one mode."""

    def answer(model, loss):
        model.train(training)
        return names_by_leaves(model, loss)

    return answer


def names_and_new_numbers(model, loss):
    """Tries out what a change of the parameters does, and leaves it."""
    for parameter in model.parameters():
        parameter.data += 1
    return names_by_leaves(model, loss)


def names_and_all_zeros(model, loss):
    """Whatever has a gradient of zeros is listed as well."""
    names = names_by_leaves(model, loss)
    return sorted({*names, *(["extra.weight", "extra.bias"] if "extra.weight" in model.state_dict() else [])})


def names_twice(model, loss):
    return sorted(names_by_leaves(model, loss) * 2)


def names_remembered(model, loss, known={}):  # noqa: B006
    return known.setdefault(model, names_by_leaves(model, loss))


def names_ending_unsorted(model, loss):
    *names, last = names_by_leaves(model, loss) or [""]
    return [*names[:2], last, *names[2:]] if last else []


def names_near(model, loss):
    """Visits the model and its direct children."""
    missing, own = names_by_leaves(model, loss), near(model)
    deeper = {id(it) for it in model.parameters()} - {id(it) for it in own.values()}
    return [name for name in missing if id(model.get_parameter(name)) not in deeper]


RIGHT = [names_by_leaves, names_by_modules, names_by_nodes, names_as_a_tuple]

MISCONCEIVED = {
    "no edge": names_refused_without_a_graph,
    "frozen only": names_frozen,
    "frozen left out": names_not_frozen,
    "second name left out": names_once,
    "ran backward": names_by_grad,
    "reached is enough": names_by_graph_alone,
    "equal numbers": names_by_numbers,
    "buffers": names_of_the_state,
    "a loss without a graph": names_if_there_is_a_graph,
    "stored .grad": names_by_stored_grad,
    "recursion": names_recursive,
}

WRONG = [
    names_near,
    names_by_shape,
    names_by_memory,
    names_but_those_of_earlier_nodes,
    said(names_by_different_modules, "second name left out"),
    names_after_zero_grad,
    names_by_layers,
    names_unsorted,
    names_and_freeze,
    names_evaluating := names_and_a_switch(training=False),
    names_and_a_switch(training=True),
    names_and_new_numbers,
    names_and_all_zeros,
    names_twice,
    names_remembered,
    names_ending_unsorted,
    *(names_and_those_of_zeros, names_with_numbers),
    names_as_a_set := lambda model, loss: set(names_by_leaves(model, loss)),
    lambda model, loss: {name: True for name in names_by_leaves(model, loss)},
    lambda model, loss: names_by_leaves(model, loss) or None,
    *(names_and_a_hook, names_by_turns),
]

EQUIVALENT = {
    "names_by_nodes: seen |= layer | layer = {to for node in layer for to, _ in node.next_functions if to is not None} - seen -> (swapped)": "Only the first node is left out, and operations made the loss: that is no parameter's.",
    "names_by_nodes: seen |= layer -> seen = seen | layer": "Nothing else refers to the set.",
    "names_by_nodes: to is not None -> to": "A node has no truth value of its own: it is always true.",
    "names_by_nodes: while layer: ... | named = model.named_parameters(remove_duplicate=False) -> (swapped)": "The names are made when they are asked for, after the walk.",
    "walk_a_growing_list: to is not None -> to": "A node has no truth value of its own: it is always true.",
    "walk_a_growing_list: return nodes -> return seen": "The leaves are put into a set.",
    "names_by_leaves: reached = {id(leaf) for leaf in leaves_by_walking(loss) if leaf.requires_grad} | named = model.named_parameters(remove_d... -> (swapped)": "Neither statement changes what the other reads.",
    "leaves_by_stack: if tensor.is_leaf: ... -> (dropped)": '"the loss of one batch" is made by operations: it is no leaf that requires a gradient, and without a graph there is nothing to walk.',
    "leaves_by_stack: tensor.requires_grad -> not tensor.requires_grad": '"the loss of one batch" is made by operations: it is no leaf that requires a gradient, and without a graph there is nothing to walk.',
    "leaves_by_stack: tensor.requires_grad -> True": "A loss that requires no gradient is then taken for a leaf, and no parameter that learns is that tensor.",
    "leaves_by_stack: tensor.requires_grad -> False": '"the loss of one batch" is made by operations: it is no leaf that requires a gradient, and without a graph there is nothing to walk.',
    "leaves_by_stack: node is None or node in seen -> not node or node in seen": "A node has no truth value of its own: it is always true.",
    "leaves_by_stack: seen.add(node) | if node.name().endswith('AccumulateGrad'): ... -> (swapped)": "The two statements use different containers.",
    "leaves_by_stack: if node.name().endswith('AccumulateGrad'): ... | stack.extend((to for to, _ in node.next_functions)) -> (swapped)": "The two statements use different containers.",
    "leaves_by_stack: if tensor.is_leaf: ... | stack, seen, leaves = ([tensor.grad_fn], set(), {}) -> (swapped)": "For a leaf, both are done before it returns, and a list of None hurts nobody.",
}

GUARDS = {
    "It returns a list of their names in the order in which `sorted` puts them.": {
        "sorted": names_unsorted,
        "once": names_twice,
        "type": names_as_a_set,
    },
    "which parameters `loss.backward()` will leave without a gradient": {"missing": names_frozen},
    "A parameter that two layers share has a name in each, and both count.": {"missing": names_once},
    "Here no backward pass is run": {"passes": names_by_grad},
    "A parameter's flag may have changed after the forward pass.": {"missing": names_by_graph_alone},
    "says nothing about this loss": {"extra": names_and_those_of_zeros},
    "The model stays as it is: its numbers, `.grad`, modes and hooks, and which parameters require a gradient.": {
        "flags": names_and_freeze,
        "mode": names_evaluating,
        "hooks": names_and_a_hook,
        "numbers": names_and_new_numbers,
        "grad": names_after_zero_grad,
    },
    "also with two losses of one model": {"missing": names_remembered},
    "A parameter whose gradient happens to be all zeros does get one: do not list it.": {"extra": names_and_all_zeros},
    "Buffers (tensors that a module keeps and does not train) are not asked about.": {"parameters": names_of_the_state},
    "a chain of 3,500 operations": {"runs": names_recursive},
}


def names_after_a_pass(model, loss):
    """Raises where the loss has no graph."""
    model.zero_grad()
    loss.backward(retain_graph=True)
    return sorted(name for name, it in model.named_parameters(remove_duplicate=False) if it.grad is None)


def names_by_zeros_in_grad(model, loss):
    named = model.named_parameters(remove_duplicate=False)
    return sorted(name for name, it in named if it.grad is None or not it.grad.any())


WRONG += [said(names_after_a_pass, "ran backward"), said(names_by_zeros_in_grad, "stored .grad")]


def names_as_people_count(model, loss):
    """Layer 10 after layer 9, and not after layer 1."""

    def parts(name):
        return [int(it) if it.isdigit() else it for it in re.split(r"(\d+)", name)]

    return sorted(names_by_leaves(model, loss), key=parts)


WRONG += [names_as_people_count]


def names_after_clearing_frozen(model, loss):
    """Takes the old gradients of what is frozen away."""
    for parameter in model.parameters():
        if not parameter.requires_grad:
            parameter.grad = None
    return names_by_leaves(model, loss)


WRONG.append(names_after_clearing_frozen)
