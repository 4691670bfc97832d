"""Right and wrong answers to `layer_gradients`."""

import copy
from functools import partial

import torch
from torch import nn
from torch.autograd.graph import get_gradient_edge

from tests.answers.leaving import gradients_off, leaving
from tests.answers.lesson_08_intermediate_gradients.models import parameters_of
from tests.answers.said import said
from tests.answers.twice import around, gradients_on_a_walk, gradients_where_live


def gradients_by_hooks(model, names, x, loss_fn):
    found = {name: [] for name in names}

    def note(places, module, given, result):
        number = len(places)
        places.append(None)
        if result.requires_grad:
            result.register_hook(lambda gradient: places.__setitem__(number, gradient))

    handles = [model.get_submodule(name).register_forward_hook(partial(note, found[name])) for name in names]
    try:
        loss = loss_fn(model(x))
        torch.autograd.grad(loss, parameters_of(model), allow_unused=True)
    finally:
        for handle in handles:
            handle.remove()
    return found


def gradients_by_edges(model, names, x, loss_fn):
    """Edges are taken when a result is made, and the one pass is asked for all of them."""
    edges, handles = [], []
    try:
        for name in names:

            def note(module, given, result, name=name):
                edges.append((name, get_gradient_edge(result) if result.requires_grad else None))

            handles.append(model.get_submodule(name).register_forward_hook(note))
        loss = loss_fn(model(x))
    finally:
        for handle in handles:
            handle.remove()
    wanted = [edge for _, edge in edges if edge is not None]
    gradients = iter(torch.autograd.grad(loss, wanted, allow_unused=True))
    found = {name: [] for name in names}
    for name, edge in edges:
        found[name].append(None if edge is None else next(gradients))
    return found


def gradients_by_moving(model, names, x, loss_fn):
    """Zeros are added to each result, and the gradient is asked for those."""
    moves = {name: [] for name in names}

    def move(name):
        def hook(module, given, result):
            moves[name].append(torch.zeros_like(result, requires_grad=True) if result.requires_grad else None)
            return result if moves[name][-1] is None else result + moves[name][-1]

        return hook

    handles = [model.get_submodule(name).register_forward_hook(move(name)) for name in names]
    try:
        loss = loss_fn(model(x))
    finally:
        [handle.remove() for handle in handles]
    wanted = [item for items in moves.values() for item in items if item is not None]
    gradients = dict(zip(map(id, wanted), torch.autograd.grad(loss, wanted, allow_unused=True), strict=True))
    return {name: [None if item is None else gradients[id(item)] for item in items] for name, items in moves.items()}


def gradients_retained(model, names, x, loss_fn):
    """retain_grad follows a tensor through writes in place."""
    found = {name: [] for name in names}

    def note(places, module, given, result):
        places.append(result)
        if result.requires_grad:
            result.retain_grad()

    handles = [model.get_submodule(name).register_forward_hook(partial(note, found[name])) for name in names]
    try:
        torch.autograd.grad(loss_fn(model(x)), parameters_of(model), allow_unused=True)
    finally:
        for handle in handles:
            handle.remove()
    return {name: [r.grad if r.requires_grad else None for r in results] for name, results in found.items()}


def gradients_with(
    remove=True, always=True, backward=False, last=False, reverse=False, clean=False, kind=BaseException, **options
):
    """The first right answer with one thing wrong."""

    def layer_gradients(model, names, x, loss_fn):
        found, ran = {name: [] for name in names}, {name: [] for name in names}

        def note(name, module, given, result):
            number = len(found[name])
            found[name].append(None)

            def keep(gradient):
                found[name][number] = gradient
                ran[name].append(gradient)

            if result.requires_grad:
                result.register_hook(keep)

        handles = [model.get_submodule(name).register_forward_hook(partial(note, name)) for name in names]
        try:
            loss = loss_fn(model(x))
            if backward:
                loss.backward()
            else:
                torch.autograd.grad(loss, parameters_of(model), allow_unused=True, **options)
        except kind:
            if remove and always:
                [handle.remove() for handle in handles]
            raise
        if remove:
            [handle.remove() for handle in handles]
        if clean:
            model.zero_grad()
        if last:
            return {name: places[-1:] for name, places in found.items()}
        if reverse:
            return {name: ran[name] if len(ran[name]) > 1 else found[name] for name in names}
        return found

    return layer_gradients


def gradients_on_a_copy(model, names, x, loss_fn):
    return gradients_with(backward=True, remove=False)(copy.deepcopy(model), names, x, loss_fn)


def gradients_swallowing(model, names, x, loss_fn):
    try:
        return gradients_by_hooks(model, names, x, loss_fn)
    except Exception:
        return {}


def gradients_one_by_one(model, names, x, loss_fn):
    found = {}
    for name in names:
        found |= gradients_by_hooks(model, [name], x, loss_fn)
    return found


def gradients_clearing_all_hooks(model, names, x, loss_fn):
    try:
        return gradients_with(remove=False)(model, names, x, loss_fn)
    finally:
        for module in model.modules():
            module._forward_hooks.clear()


def gradients_without_writes(model, names, x, loss_fn):
    """Switches off writes in place, and leaves them off."""
    for module in model.modules():
        if isinstance(module, nn.ReLU):
            module.inplace = False
    return gradients_by_hooks(model, names, x, loss_fn)


def gradients_in_evaluation(model, names, x, loss_fn):
    modes = {module: module.training for module in model.modules()}
    model.eval()
    try:
        return gradients_by_hooks(model, names, x, loss_fn)
    finally:
        for module, training in modes.items():
            module.training = training


def gradients_of_trained_layers(model, names, x, loss_fn):
    """Takes a frozen layer for one that no gradient passes."""
    found = gradients_by_hooks(model, names, x, loss_fn)
    for name, gradients in found.items():
        if not any(p.requires_grad for p in model.get_submodule(name).parameters(recurse=False)):
            found[name] = [None] * len(gradients)
    return found


def gradients_clearing_named_hooks(model, names, x, loss_fn):
    """Removes its hooks with those of the model's author."""
    try:
        return gradients_with(remove=False)(model, names, x, loss_fn)
    finally:
        for name in names:
            model.get_submodule(name)._forward_hooks.clear()


def gradients_of_inputs(model, names, x, loss_fn):
    found, handles = {name: [] for name in names}, []
    for name in names:
        module = model.get_submodule(name)
        handles.append(
            module.register_full_backward_hook(lambda m, given, out, name=name: found[name].append(given[0]))
        )
    try:
        torch.autograd.grad(loss_fn(model(x)), parameters_of(model), allow_unused=True)
    finally:
        [handle.remove() for handle in handles]
    return found


RIGHT = [gradients_by_hooks, gradients_by_edges, gradients_by_moving]


def gradients_by_full_hooks(model, names, x, loss_fn):
    found = {name: [] for name in names}

    def keep(name, module, given, received):
        found[name].insert(0, received[0])

    handles = [model.get_submodule(name).register_full_backward_hook(partial(keep, name)) for name in names]
    try:
        loss = loss_fn(model(x))
        torch.autograd.grad(loss, [it for it in model.parameters() if it.requires_grad], allow_unused=True)
    finally:
        for handle in handles:
            handle.remove()
    return found


MISCONCEIVED = {
    "full backward hooks": gradients_by_full_hooks,
    "the newest version": gradients_retained,
    "one entry for a layer": gradients_with(last=True),
    "in the order of the pass": gradients_with(reverse=True),
}


def gradients_run_twice(model, names, x, loss_fn):
    found = gradients_by_hooks(model, names, x, loss_fn)
    with torch.no_grad():
        model(x)
    return found


def gradients_after_a_pass(model, names, x, loss_fn):
    def passing(output):
        loss = loss_fn(output)
        torch.autograd.grad(loss, parameters_of(model), allow_unused=True, retain_graph=True)
        return loss

    return gradients_by_hooks(model, names, x, passing)


def gradients_with_zeros(model, names, x, loss_fn):
    found = gradients_by_hooks(model, names, x, loss_fn)
    return {name: [torch.zeros(1) if it is None else it for it in places] for name, places in found.items()}


ONE_SLIP = {
    "passes": gradients_after_a_pass,
    "kept": gradients_with(retain_graph=True),
    "x": lambda model, names, x, loss_fn: (gradients_by_hooks(model, names, x, loss_fn), x.zero_())[0],
    "none": gradients_with_zeros,
    "mode": leaving(gradients_by_hooks, gradients_off),
    "raises": gradients_swallowing,
    "runs": gradients_run_twice,
}


def gradients_before_own_hooks(model, names, x, loss_fn):
    """Its hooks come before the modules' own, which may change what a module returns."""
    kept = {name: [] for name in names}

    def keep(name, module, given, result):
        kept[name].append(result)
        return result.clone()

    handles = [model.get_submodule(name).register_forward_hook(partial(keep, name), prepend=True) for name in kept]
    try:
        loss = loss_fn(model(x))
    finally:
        for handle in handles:
            handle.remove()
    live = [result for results in kept.values() for result in results if result.requires_grad]
    found = iter(torch.autograd.grad(loss, live, allow_unused=True))
    return {name: [next(found) if it.requires_grad else None for it in results] for name, results in kept.items()}


def gradients_by_module(model, names, x, loss_fn):
    """A module has one name here, and may have two."""
    kept = list({model.get_submodule(name): name for name in names}.values())
    return {name: [] for name in names} | gradients_by_hooks(model, kept, x, loss_fn)


def gradients_but_zeros(model, names, x, loss_fn):
    """Takes a gradient of zeros for none."""
    found = gradients_by_hooks(model, names, x, loss_fn)
    return {name: [it if it is not None and it.any() else None for it in places] for name, places in found.items()}


def gradients_on_the_way_to_one(model, names, x, loss_fn):
    """Asks for the gradient of one parameter, and hears what comes by on the way to that."""
    found = {name: [] for name in names}

    def note(places, module, given, result):
        number = len(places)
        places.append(None)
        if result.requires_grad:
            result.register_hook(lambda gradient: places.__setitem__(number, gradient))

    handles = [model.get_submodule(name).register_forward_hook(partial(note, found[name])) for name in names]
    try:
        torch.autograd.grad(loss_fn(model(x)), parameters_of(model)[0])
    finally:
        for handle in handles:
            handle.remove()
    return found


def gradients_as_they_come(model, names, x, loss_fn):
    """Puts down what comes by as it comes: the later call of a layer first."""
    found = {name: [] for name in names}
    handles = [
        model.get_submodule(name).register_full_backward_hook(lambda m, *g, mine=mine: mine.append(g[1][0]))
        for name, mine in found.items()
    ]
    try:
        torch.autograd.grad(loss_fn(model(x)), parameters_of(model), allow_unused=True)
    finally:
        for handle in handles:
            handle.remove()
    return found


def gradients_of_zero_where_written(model, names, x, loss_fn):
    """Gives zeros for one layer behind which a ReLU writes, and what is right for the others."""
    found = gradients_by_hooks(model, names, x, loss_fn)
    writes = any(getattr(module, "inplace", False) for module in model.modules())
    return {**found, "1": [0 * found["1"][0]]} if writes else found


WRONG = [
    gradients_on_the_way_to_one,
    gradients_before_own_hooks,
    said(gradients_by_module, "one of two names"),
    gradients_but_zeros,
    lambda *given: {
        name: [None if it is None else it.clamp(-1e3, 1e3) for it in places]
        for name, places in gradients_by_hooks(*given).items()
    },
    lambda *given: {
        name: [None if it is None else it.squeeze(0) for it in places]
        for name, places in gradients_by_hooks(*given).items()
    },
    *ONE_SLIP.values(),
    gradients_leaving_hooks := gradients_with(remove=False),
    gradients_with(always=False),
    gradients_stopped := gradients_with(kind=Exception),
    gradients_with(backward=True),
    gradients_with(backward=True, clean=True),
    gradients_on_a_copy,
    gradients_one_by_one,
    gradients_clearing_all_hooks,
    gradients_clearing_named_hooks,
    gradients_in_evaluation,
    gradients_of_trained_layers,
    gradients_of_inputs,
    gradients_without_writes,
    lambda model, names, x, loss_fn: {name: [None] for name in names},
    lambda model, names, x, loss_fn: {name: None for name in names},
    lambda model, names, x, loss_fn: [loss_fn(model(x))],
    lambda model, names, x, loss_fn: {},
    gradients_of_zero_where_written,
    said(gradients_as_they_come, "full backward hooks"),
    around(gradients_by_hooks, gradients_on_a_walk),
    around(gradients_by_hooks, gradients_where_live),
]

EQUIVALENT = {
    "gradients_by_hooks.note: places.append(None) | if result.requires_grad: ... -> (swapped)": "The hook on the result runs in the pass, when both are done; its number is taken before.",
    "gradients_by_edges: edge is not None -> edge": "An edge is a tuple with two entries: it is always true.",
    "gradients_by_edges: None if edge is None else next(gradients) -> None if not edge else next(gradients)": "An edge is a tuple with two entries: it is always true.",
    "gradients_by_edges: gradients = iter(torch.autograd.grad(loss, wanted, allow_unused=True)) | found = {name: [] for name in names} -> (swapped)": "Neither statement reads what the other writes.",
    "gradients_by_moving.move.hook: moves[name][-1] -> moves[name][-0]": "In the scene a layer's results require a gradient all or not at all, so the first tells as much as the last; only the sum would use the first zeros twice.",
}

GUARDS = {
    "a list of the gradients of the loss": {"value": gradients_in_evaluation},
    "It runs `loss = loss_fn(model(x))`": {"runs": ONE_SLIP["runs"]},
    "one backward pass, which frees what it used": {"passes": ONE_SLIP["passes"], "kept": ONE_SLIP["kept"]},
    "None where no gradient comes by": {"none": ONE_SLIP["none"]},
    "the error reaches the caller": {"raises": ONE_SLIP["raises"]},
    "Afterwards the model has its own hooks and none of yours": {"model": gradients_leaving_hooks},
    "or is stopped from the keyboard": {"model": gradients_stopped},
    "its settings are as before": {"mode": ONE_SLIP["mode"], "x": ONE_SLIP["x"]},
}


def gradients_putting_the_same_back(model, names, x, loss_fn):
    """Keeps the tensors in .grad, to which the pass adds."""
    kept = {parameter: parameter.grad for parameter in model.parameters()}
    try:
        return gradients_with(backward=True)(model, names, x, loss_fn)
    finally:
        for parameter, gradient in kept.items():
            parameter.grad = gradient


MISCONCEIVED["the same tensors put back"] = gradients_putting_the_same_back


def gradients_appended(model, names, x, loss_fn):
    """Hooks on the results append what comes by."""
    found = {name: [] for name in names}

    def note(name, module, given, result):
        if result.requires_grad:
            result.register_hook(lambda gradient: found[name].append(gradient))

    handles = [model.get_submodule(name).register_forward_hook(partial(note, name)) for name in names]
    try:
        torch.autograd.grad(loss_fn(model(x)), parameters_of(model), allow_unused=True)
    finally:
        for handle in handles:
            handle.remove()
    return found


MISCONCEIVED |= {"one of two names": gradients_by_module, "entries as they come": gradients_appended}
