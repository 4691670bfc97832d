"""Right and wrong answers to `parameter_gradients`."""

from collections import defaultdict

import torch

from tests.answers.lesson_02_how_backward_works.spoiled import spoiled
from tests.answers.magnitudes import clipping_results, dropping_small
from tests.answers.said import said


def parameters_by_grad(loss, model):
    wanted = {name: parameter for name, parameter in model.named_parameters() if parameter.requires_grad}
    gradients = torch.autograd.grad(loss, list(wanted.values()), allow_unused=True)
    found = dict(zip(wanted, gradients, strict=True))
    return {name: found.get(name) for name, _ in model.named_parameters()}


def parameters_by_backward_and_restoring(loss, model):
    held = {parameter: parameter.grad for parameter in model.parameters()}
    for parameter in held:
        parameter.grad = None
    loss.backward()
    found = defaultdict(None, {name: parameter.grad for name, parameter in model.named_parameters()})
    for parameter in held:
        parameter.grad = held[parameter]
    return found


def with_old_of_the_frozen(loss, model):
    found = parameters_by_grad(loss, model)
    return {name: it.grad if not it.requires_grad else found[name] for name, it in model.named_parameters()}


def with_all_names(loss, model):
    found = parameters_by_grad(loss, model)
    by_id = {id(it): found[name] for name, it in model.named_parameters()}
    return {name: by_id[id(it)] for name, it in model.named_parameters(remove_duplicate=False)}


def by_hooks_that_stay(loss, model):
    for parameter in model.parameters():
        if parameter.requires_grad:
            parameter.register_hook(lambda gradient: gradient)
    return parameters_by_grad(loss, model)


def switching_all_on(loss, model):
    model.train()
    return parameters_by_grad(loss, model)


def in_two_passes(loss, model):
    wanted = {name: parameter for name, parameter in model.named_parameters() if parameter.requires_grad}
    torch.autograd.grad(loss, list(wanted.values()), allow_unused=True, retain_graph=True)
    return parameters_by_grad(loss, model)


def recorded_and_freed(loss, model):
    """Gradients that look as if they had a graph."""
    return {name: None if it is None else it.requires_grad_() for name, it in parameters_by_grad(loss, model).items()}


def doubled(loss, model):
    return {name: None if it is None else 2 * it for name, it in parameters_by_grad(loss, model).items()}


def none_for_zeros(loss, model):
    found = parameters_by_grad(loss, model)
    return {name: it if it is not None and it.count_nonzero() else None for name, it in found.items()}


@torch.no_grad()
def move_parameters(loss, model):
    for parameter in model.parameters():
        parameter.add_(0.1)


def zeros_for_none(loss, model):
    held = {parameter: parameter.grad for parameter in model.parameters()}
    for parameter in held:
        parameter.grad = None
    loss.backward()
    found = {name: parameter.grad for name, parameter in model.named_parameters()}
    for parameter, gradient in held.items():
        parameter.grad = torch.zeros_like(parameter) if gradient is None else gradient
    return found


def with_backward(loss, model):
    loss.backward()
    return {name: parameter.grad for name, parameter in model.named_parameters()}


def clearing(loss, model):
    model.zero_grad()
    loss.backward()
    found = {name: parameter.grad for name, parameter in model.named_parameters()}
    model.zero_grad()
    return found


def pass_for_each(loss, model):
    return {
        name: torch.autograd.grad(loss, parameter, retain_graph=True, allow_unused=True)[0]
        if parameter.requires_grad
        else None
        for name, parameter in model.named_parameters()
    }


def with_options(**options):
    def answer(loss, model):
        wanted = [parameter for parameter in model.parameters() if parameter.requires_grad]
        gradients = torch.autograd.grad(loss, wanted, allow_unused=True, **options)
        found = dict(zip(map(id, wanted), gradients, strict=True))
        return {name: found.get(id(parameter)) for name, parameter in model.named_parameters()}

    return answer


def only_used(loss, model):
    return {name: gradient for name, gradient in parameters_by_grad(loss, model).items() if gradient is not None}


def parameters_of_layers(loss, model):
    """Knows of layers' weights and biases only."""
    found = parameters_by_grad(loss, model)
    return {name: it for name, it in found.items() if name.endswith((".weight", ".bias"))}


def parameters_of_its_own(loss, model):
    """Asks for what the model itself holds: the pass goes no further, and frees no more."""
    own = dict(model.named_parameters(recurse=False))
    return dict(zip(own, torch.autograd.grad(loss, list(own.values())), strict=True))


def parameters_by_the_layers(part):
    """Takes a layer for frozen where this part of it is."""

    def answer(loss, model):
        every, found = dict(model.named_parameters()), parameters_by_grad(loss, model)
        asked = {name: every.get(f"{name.rpartition('.')[0]}.{part}", it) for name, it in every.items()}
        return {
            name: found[name] if asked[name].requires_grad == it.requires_grad else torch.zeros_like(it)
            for name, it in every.items()
        }

    return answer


def thawed_for_the_pass(loss, model):
    """Asks for what was frozen after the forward pass, too, and freezes it again."""
    flags = {parameter: parameter.requires_grad for parameter in model.parameters()}
    model.requires_grad_()
    gradients = torch.autograd.grad(loss, list(flags), allow_unused=True)
    for parameter, flag in flags.items():
        parameter.requires_grad_(flag)
    return dict(zip(dict(model.named_parameters()), gradients, strict=True))


parameters_by_their_weight = parameters_by_the_layers("weight")
parameters_by_their_bias = parameters_by_the_layers("bias")


def parameters_without_spare_nodes(loss, model):
    """A pass to the parameters that require grad now: what leads only to one that was frozen since does not run."""
    asked = [parameter for parameter in model.parameters() if parameter.requires_grad]
    found = dict(zip(asked, torch.autograd.grad(loss, asked, allow_unused=True), strict=True))
    return {name: found.get(parameter) for name, parameter in model.named_parameters()}


RIGHT = [parameters_by_grad, parameters_by_backward_and_restoring, parameters_without_spare_nodes]

MISCONCEIVED = {
    "zeros in place of None": zeros_for_none,
    "writes into .grad": with_backward,
    "clears .grad": clearing,
    "one pass for each parameter": pass_for_each,
    "the graph is kept": with_options(retain_graph=True),
}


def parameters_two_levels_down(loss, model):
    """Forgets that parts have parts."""
    own = dict(model.named_parameters(recurse=False))
    for part, child in model.named_children():
        own |= {f"{part}.{name}": parameter for name, parameter in child.named_parameters(recurse=False)}
    live = [parameter for parameter in own.values() if parameter.requires_grad]
    found = dict(zip(live, torch.autograd.grad(loss, live, allow_unused=True), strict=True))
    return {name: found.get(parameter) for name, parameter in own.items() if name in dict(model.named_parameters())}


WRONG = [
    only_used,
    spoiled(parameters_by_grad, lambda loss, model: model.requires_grad_()),
    spoiled(parameters_by_grad, lambda loss, model: model.requires_grad_(False)),
    spoiled(parameters_by_grad, lambda loss, model: model.eval()),
    spoiled(parameters_by_grad, move_parameters),
    said(with_options(create_graph=True), "the graph is kept"),
    with_options(materialize_grads=True),
    lambda loss, model: list(parameters_by_grad(loss, model).values()),
    with_old_of_the_frozen,
    with_all_names,
    by_hooks_that_stay,
    switching_all_on,
    in_two_passes,
    recorded_and_freed,
    doubled,
    none_for_zeros,
    *(clipping_results(parameters_by_grad), dropping_small(parameters_by_grad, 1e-5)),
    *(parameters_of_its_own, thawed_for_the_pass),
    *(parameters_of_layers, parameters_by_their_weight, parameters_by_their_bias, parameters_two_levels_down),
    spoiled(parameters_by_grad, lambda loss, model: model._forward_hooks.clear()),
]

GUARDS = {
    "It returns a dict": {"type": WRONG[7]},
    "for each name in `model.named_parameters()` the gradient of `loss`, and no other entry": {
        "keys": only_used,
        "unknown keys": with_all_names,
        "value": doubled,
    },
    "A parameter that does not require grad, or that the loss does not depend on, gets `None`.": {
        "unused": with_old_of_the_frozen
    },
    "After the call the `.grad` of every parameter is what it was before": {"grad": zeros_for_none},
    "the numbers in the parameters": {"values": WRONG[4]},
    "which of them require grad": {"unfrozen": WRONG[1], "frozen": WRONG[2]},
    "the mode of each part (training or evaluating)": {"mode": switching_all_on},
    "The rest of the model stays as it was:": {"own hooks": WRONG[-1]},
    "no hook is left on it": {"hooks": by_hooks_that_stay},
    "It runs one backward pass over the graph of `loss`.": {"passes": in_two_passes},
    "afterwards its saved tensors are freed": {"graph": MISCONCEIVED["the graph is kept"]},
    "the gradients have no graph of their own": {"recorded": recorded_and_freed},
}


def gradients_and_zeros_left(loss, model):
    """Clears .grad with zeros, whatever it held, and at the end once more."""
    found = RIGHT[0](loss, model)
    for parameter in model.parameters():
        parameter.grad = torch.zeros_like(parameter)
    return found


def gradients_scaling_what_was_there(loss, model):
    for parameter in model.parameters():
        if parameter.grad is not None:
            parameter.grad.mul_(0.5)
    return RIGHT[0](loss, model)


WRONG += [
    said(gradients_and_zeros_left, "clears .grad", "zeros in place of None"),
    said(gradients_scaling_what_was_there, "writes into .grad"),
]


def gradients_by_both_names(loss, model):
    """A parameter that is known by two names is named once by named_parameters()."""
    found = RIGHT[0](loss, model)
    return {name: found.get(name) for name, _ in model.named_parameters(remove_duplicate=False)}


WRONG += [gradients_by_both_names]


def putting_the_same_back(loss, model):
    """Keeps the tensors in .grad, to which the pass adds."""
    kept = {parameter: parameter.grad for parameter in model.parameters()}
    before = {parameter: 0 if held is None else held.clone() for parameter, held in kept.items()}
    loss.backward()
    found = {
        name: None if it.grad is None or not it.requires_grad else it.grad - before[it]
        for name, it in model.named_parameters()
    }
    for parameter, held in kept.items():
        parameter.grad = held
    return found


MISCONCEIVED["the same tensors put back"] = putting_the_same_back
