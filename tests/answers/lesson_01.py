"""Right and wrong answers to the exercises of lesson 01."""

import copy

import torch
from torch import nn
from torch.autograd.graph import get_gradient_edge

from course_utils import trace

# walk


def walk_a_growing_list(tensor):
    if not tensor.requires_grad:
        return []
    nodes = [get_gradient_edge(tensor).node]
    seen = set(nodes)
    for node in nodes:
        for to, _ in node.next_functions:
            if to is not None and to not in seen:
                seen.add(to)
                nodes.append(to)
    return nodes


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


def walk_every_path(tensor):
    nodes = walk_start(tensor)
    for node in nodes:
        nodes += [to for to, _ in node.next_functions if to is not None]
    return nodes


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


def walk_start(tensor):
    return [get_gradient_edge(tensor).node] if tensor.requires_grad else []


def walk_recursive(tensor):
    seen = {}

    def visit(node):
        if node is not None and node not in seen:
            seen[node] = True
            for to, _ in node.next_functions:
                visit(to)

    for node in walk_start(tensor):
        visit(node)
    return list(seen)


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


def walk_returning_what_it_remembers(tensor, seen=set()):  # noqa: B006
    seen.update(walk_a_growing_list(tensor))
    return list(seen)


# leaves_of


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


# used_outputs


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


def outputs_recursive(tensor, node):
    walk_recursive(tensor)
    return outputs_by_edges(tensor, node)


def outputs_of_the_tensor(tensor, node):
    return [tensor.output_nr] if tensor.grad_fn is node else []


def outputs_of_the_first(tensor, node):
    return sorted({output for to, output in tensor.grad_fn.next_functions if to is node})


def outputs_unsorted(tensor, node):
    return outputs_by_edges(tensor, node)[::-1]


def outputs_by_hook(tensor, node):
    found = []
    hook = node.register_prehook(lambda grads: found.extend(i for i, g in enumerate(grads) if g is not None))
    tensor.sum().backward(retain_graph=True)
    hook.remove()
    return found


def outputs_with_own(tensor, node):
    return sorted({*outputs_by_edges(tensor, node), tensor.output_nr})


# build_graph


def build_by_operators(a, b):
    e = (a - b).unbind()[1].exp()
    return e * 2 + e


def build_by_unpacking(a, b):
    _, second, *_ = torch.sub(a, b)
    e = torch.exp(second)
    return torch.add(torch.mul(e, torch.ones(3) if e.numel() == 3 else 0.5), e)


def build_twice(a, b):
    return (a - b).unbind()[1].exp() * 2 + (a - b).unbind()[1].exp()


def build_indexing(a, b):
    e = (a - b)[1].exp()
    return e * 2 + e


def build_without_constant(a, b):
    e = (a - b).unbind()[1].exp()
    return e * e + e


def build_other_order(a, b):
    e = (a - b).unbind()[1].exp()
    return e + e * 2


def build_minus(a, b):
    e = (b - a).unbind()[1].exp()
    return e * 2 + e


def build_first_output(a, b):
    e = (a - b).unbind()[0].exp()
    return e * 2 + e


def build_new_leaves(a, b):
    a, b = a.detach().requires_grad_(), b.detach().requires_grad_()
    return build_by_operators(a, b)


def build_and_backward(a, b):
    build_by_operators(a, b).sum().backward()
    return build_by_operators(a, b)


def build_in_place(a, b):
    with torch.no_grad():
        a.mul_(2)
    return build_by_operators(a, b)


# connected_loss


def loss_repaired(model, x, target):
    x = x - x.mean(dim=1, keepdim=True)
    hidden = torch.tanh(model["stem"](x))
    gate = torch.sigmoid(model["gate"](hidden))
    output = model["head"](hidden * gate) * model.log_scale.exp()
    return ((output - target) ** 2).mean()


def loss_in_functions(model, x, target):
    x = x.clone()
    x -= x.mean(1, keepdim=True)
    hidden = model["stem"](x).tanh()
    mixed = hidden.mul(model["gate"](hidden).sigmoid())
    scaled = torch.exp(model.log_scale) * model["head"](mixed)
    return nn.functional.mse_loss(scaled, target)


def loss_variant(*, clone=True, gate=False, hidden=False, wrap=False, item=False, copy=False, double=False):
    def loss_of(model, x, target):
        x = x - x.mean(dim=1, keepdim=True) if clone else x.sub_(x.mean(dim=1, keepdim=True))
        h = torch.tanh(model["stem"](x))
        g = torch.sigmoid(model["gate"](h.detach() if hidden else h))
        if gate:
            g = g.detach()
        mixed = nn.Parameter(h * g) if wrap else h * g
        scale = model.log_scale.exp()
        output = model["head"](mixed) * (scale.item() if item else scale)
        loss = ((output - target) ** 2).mean()
        if double:
            loss = loss + model["stem"].weight.sum() - model["stem"].weight.sum().detach()
        return torch.tensor(loss.item(), dtype=x.dtype, requires_grad=True) if copy else loss

    return loss_of


def loss_with_touch(model, x, target):
    """Everything is reached by force: each parameter is added times zero."""
    loss = loss_variant(wrap=False, gate=True)(model, x, target)
    return loss + sum(0.0 * parameter.sum() for parameter in model.parameters())


def loss_and_backward(model, x, target):
    loss = loss_repaired(model, x, target)
    loss.backward(retain_graph=True)
    return loss


def loss_after_zero_grad(model, x, target):
    model.zero_grad()
    return loss_repaired(model, x, target)


def loss_of_a_copy(model, x, target):
    return loss_repaired(copy.deepcopy(model), x, target)


def loss_tracking_x(model, x, target):
    return loss_repaired(model, x.requires_grad_(), target)


def loss_tracking_target(model, x, target):
    return loss_repaired(model, x, target.requires_grad_())


def loss_resetting(model, x, target):
    loss = loss_repaired(model, x, target)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.zero_()
    return loss


# without_gradient


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


def names_by_numbers(model, loss):
    leaves = [leaf for leaf in leaves_by_walking(loss) if leaf.requires_grad]
    named = model.named_parameters(remove_duplicate=False)
    return sorted(n for n, it in named if not any(it.shape == leaf.shape and torch.equal(it, leaf) for leaf in leaves))


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


def names_by_layers(model, loss):
    return sorted({name.rpartition(".")[0] for name in names_by_leaves(model, loss)})


def names_unsorted(model, loss):
    missing = names_by_leaves(model, loss)
    return [name for name, _ in model.named_parameters(remove_duplicate=False) if name in missing]


def names_and_freeze(model, loss):
    names = names_by_leaves(model, loss)
    model.requires_grad_(False)
    return names


LEAVES = {
    **{"plain": True, "product": False, "updated": True, "cut": True},
    **{"weight": True, "double": False, "same": True, "late": True},
}
FACTS = {"grad_fn": "SumBackward0", "nodes": 8, "leaves": 2, "nones": 1, "edges_into_tanh": 3, "paths": 6}

RIGHT = {
    "predict_leaves": [LEAVES, dict(reversed(LEAVES.items()))],
    "predict_graph": [FACTS, {**FACTS, "nodes": torch.tensor(8)}],
    "walk": [walk_a_growing_list, walk_depth_first, walk_as_a_set],
    "leaves_of": [leaves_by_walking, leaves_by_stack],
    "used_outputs": [outputs_by_edges, outputs_by_stack],
    "build_graph": [build_by_operators, build_by_unpacking],
    "connected_loss": [loss_repaired, loss_in_functions],
    "without_gradient": [names_by_leaves, names_by_modules],
}

MISCONCEIVED = {
    ("predict_leaves", "only with requires_grad"): {**LEAVES, "plain": False, "updated": False, "cut": False},
    ("predict_leaves", "only the first"): {**dict.fromkeys(LEAVES, False), "plain": True},
    ("predict_leaves", "to() always converts"): {**LEAVES, "same": False},
    ("predict_graph", "a tree"): {**FACTS, "nodes": 16, "leaves": 6, "edges_into_tanh": 1},
    ("predict_graph", "leaves forgotten"): {**FACTS, "nodes": 6},
    ("predict_graph", "constants counted"): {**FACTS, "nodes": 9, "leaves": 3, "nones": 0},
    ("predict_graph", "edges as nodes"): {**FACTS, "edges_into_tanh": 2, "paths": 4},
    ("walk", "every path"): walk_every_path,
    ("walk", "every output"): walk_remembering_pairs,
    ("walk", "nothing for a leaf"): walk_from_grad_fn,
    ("walk", "None followed"): walk_following_none,
    ("walk", "None as the start"): walk_starting_at_none,
    ("walk", "recursion"): walk_recursive,
    ("walk", "pairs"): walk_pairs,
    ("walk", "None kept"): walk_with_none,
    ("walk", "leaves left out"): walk_operations,
    ("walk", "remembers the last call"): walk_remembering,
    ("leaves_of", "nodes, not tensors"): leaf_nodes,
    ("leaves_of", "copies"): lambda tensor: [leaf.detach() for leaf in leaves_by_walking(tensor)],
    ("leaves_of", "once per path"): leaf_per_path,
    ("leaves_of", "recursion"): leaves_recursive,
    ("leaves_of", "frozen later"): lambda tensor: [it for it in leaves_by_walking(tensor) if it.requires_grad],
    ("leaves_of", "a leaf without a graph"): lambda t: [t] if t.is_leaf else leaves_by_walking(t),
    ("used_outputs", "one entry per edge"): outputs_per_edge,
    ("used_outputs", "all outputs"): outputs_all,
    ("used_outputs", "own output missing"): outputs_between_nodes,
    ("used_outputs", "any node of that name"): outputs_by_name,
    ("used_outputs", "only the first edge"): outputs_of_the_first_edge,
    ("used_outputs", "recursion"): outputs_recursive,
    ("build_graph", "computed twice"): build_twice,
    ("build_graph", "indexing"): build_indexing,
    ("build_graph", "no constant"): build_without_constant,
    ("build_graph", "other order"): build_other_order,
    ("connected_loss", "a flag on a copy"): loss_variant(copy=True),
    ("connected_loss", "a leaf made on the way"): loss_variant(wrap=True),
    ("connected_loss", "one path still cut"): loss_variant(hidden=True),
    ("connected_loss", "input overwritten"): loss_variant(clone=False),
    ("without_gradient", "frozen only"): names_frozen,
    ("without_gradient", "frozen left out"): names_not_frozen,
    ("without_gradient", "second name left out"): names_once,
    ("without_gradient", "ran backward"): names_by_grad,
    ("without_gradient", "reached is enough"): names_by_graph_alone,
    ("without_gradient", "equal numbers"): names_by_numbers,
    ("without_gradient", "buffers"): names_of_the_state,
    ("without_gradient", "a loss without a graph"): names_if_there_is_a_graph,
    ("without_gradient", "stored .grad"): names_by_stored_grad,
    ("without_gradient", "recursion"): names_recursive,
}

WRONG = {
    "predict_leaves": [
        dict.fromkeys(LEAVES, True),
        dict.fromkeys(LEAVES, 1),
        {**LEAVES, "late": ...},
        list(LEAVES),
        {**LEAVES, "late": "True"},
    ],
    "predict_graph": [
        {**FACTS, "grad_fn": "AddBackward0"},
        {**FACTS, "paths": 2},
        {**FACTS, "nones": 0},
        {**FACTS, "edges_into_tanh": 4},
        {**FACTS, "nodes": "8"},
        {**FACTS, "grad_fn": "SumBackward"},
        {**FACTS, "grad_fn": "<SumBackward0>"},
        8,
    ],
    "walk": [
        walk_every_path_in_calls,
        walk_after_backward,
        walk_first_inputs,
        walk_by_name,
        walk_returning_what_it_remembers,
        lambda tensor: trace(tensor).nodes,
        lambda tensor: len(walk_a_growing_list(tensor)),
        lambda tensor: {node: True for node in walk_a_growing_list(tensor)},
        lambda tensor: [tensor.grad_fn],
        lambda tensor: (node for node in walk_a_growing_list(tensor)),
    ],
    "leaves_of": [
        leaf_per_edge,
        leaves_by_backward,
        leaves_changed,
        lambda tensor: [leaf.clone() for leaf in leaves_by_walking(tensor)],
        lambda tensor: [leaf.data for leaf in leaves_by_walking(tensor)],
        lambda tensor: leaves_by_walking(tensor)[:1],
        lambda tensor: [] if tensor.is_leaf else leaves_by_walking(tensor),
        lambda tensor: {id(leaf): leaf for leaf in leaves_by_walking(tensor)},
        lambda tensor: [torch.zeros(2).to_sparse()],
    ],
    "used_outputs": [
        outputs_of_the_first,
        outputs_unsorted,
        outputs_by_hook,
        outputs_with_own,
        outputs_of_the_tensor,
        outputs_refused_without_a_graph,
        outputs_remembering,
        lambda tensor, node: set(outputs_by_edges(tensor, node)),
        lambda tensor, node: [float(output) for output in outputs_by_edges(tensor, node)],
        lambda tensor, node: [bool(output) for output in outputs_by_edges(tensor, node)],
        lambda tensor, node: len(outputs_by_edges(tensor, node)),
    ],
    "build_graph": [
        build_minus,
        build_first_output,
        build_new_leaves,
        build_in_place,
        build_and_backward,
        lambda a, b: build_by_operators(a, b).sum(),
        lambda a, b: build_by_operators(a, b.detach()),
        lambda a, b: a + b,
        lambda a, b: [build_by_operators(a, b)],
    ],
    "connected_loss": [
        loss_variant(gate=True),
        loss_variant(item=True),
        loss_variant(double=True),
        loss_variant(clone=False, gate=True, wrap=True, item=True, copy=True),
        loss_with_touch,
        loss_and_backward,
        loss_resetting,
        loss_after_zero_grad,
        loss_of_a_copy,
        loss_tracking_x,
        loss_tracking_target,
        lambda model, x, target: loss_repaired(model, x, target).requires_grad_().reshape(1),
        lambda model, x, target: loss_repaired(model, x, target).float(),
    ],
    "without_gradient": [
        names_by_shape,
        names_by_different_modules,
        names_after_zero_grad,
        names_by_layers,
        names_unsorted,
        names_and_freeze,
        lambda model, loss: set(names_by_leaves(model, loss)),
        lambda model, loss: {name: True for name in names_by_leaves(model, loss)},
        lambda model, loss: names_by_leaves(model, loss) or None,
    ],
}

# Generic changes that leave these answers right: the order of nodes and leaves is free.
STILL_RIGHT = {("walk", "reversed list"), ("leaves_of", "reversed list")}
