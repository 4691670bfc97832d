"""Right and wrong answers to `through_frozen`."""

import copy

import torch
from torch import nn
from torch.func import functional_call

from tests.answers.lesson_06_detach_vs_no_grad.side_effects import hook_on_module


def through_by_flags(layer, x):
    before = [(parameter, parameter.requires_grad) for parameter in layer.parameters()]
    try:
        layer.requires_grad_(False)
        return layer(x)
    finally:
        for parameter, flag in before:
            parameter.requires_grad_(flag)


def through_by_functional_call(layer, x):
    constants = {name: parameter.detach() for name, parameter in layer.named_parameters()}
    return functional_call(layer, constants, (x,))


def through_with(secure=True, after=None):
    """Freezes, and puts back in a wrong way."""

    def through(layer, x):
        before = [(parameter, parameter.requires_grad) for parameter in layer.parameters()]

        def put_back():
            if after is not None:
                return after(layer)
            for parameter, flag in before:
                parameter.requires_grad_(flag)

        layer.requires_grad_(False)
        try:
            y = layer(x)
        except RuntimeError:
            if secure:
                put_back()
            raise
        put_back()
        return y

    return through


def through_by_swapping(layer, x):
    """Puts constants into the places of the parameters, for one run."""
    places = [(module, name, its) for module in layer.modules() for name, its in module._parameters.items()]
    for module, name, parameter in places:
        module._parameters[name] = None if parameter is None else parameter.detach()
    try:
        return layer(x)
    finally:
        for module, name, parameter in places:
            module._parameters[name] = parameter


def through_a_copy_loaded(layer, x):
    """Runs a copy, and copies the statistics back."""
    other = copy.deepcopy(layer).requires_grad_(False)
    y = other(x)
    layer.load_state_dict(other.state_dict())
    return y


def through_untied(layer, x):
    """Puts new parameters into each place, so that a shared weight is shared no longer."""
    places = [(part, name, its) for part in layer.modules() for name, its in part.named_parameters(recurse=False)]
    try:
        return through_by_flags(layer, x)
    finally:
        for part, name, parameter in places:
            setattr(part, name, nn.Parameter(parameter.detach(), parameter.requires_grad))


def through_with_hook(layer, x):
    hook_on_module(layer)
    return through_by_flags(layer, x)


def through_no_grad(layer, x):
    with torch.no_grad():
        return layer(x)


def through_evaluating(layer, x):
    layer.eval()
    return through_by_flags(layer, x)


def through_new_leaf(layer, x):
    return through_by_flags(layer, x.detach().requires_grad_())


def through_hiding(layer, x):
    try:
        return through_by_flags(layer, x)
    except RuntimeError:
        return None


def through_clearing(layer, x):
    layer.zero_grad()
    return through_by_flags(layer, x)


def through_new_parameters(layer, x):
    y = through_by_functional_call(layer, x)
    for module in layer:
        for name, parameter in list(module.named_parameters()):
            setattr(module, name, nn.Parameter(parameter.detach().clone(), parameter.requires_grad))
    return y


def through_twice(layer, x):
    through_by_functional_call(layer, x)
    return through_by_functional_call(layer, x)


RIGHT = [through_by_flags, through_by_functional_call, through_by_swapping]

MISCONCEIVED = {
    "no_grad around it": through_no_grad,
    "frozen for good": through_with(after=lambda layer: None),
    "thawed": through_with(after=lambda layer: layer.requires_grad_(True)),
    "stuck after an error": through_with(secure=False),
    "a copy ran": lambda layer, x: copy.deepcopy(layer).requires_grad_(False)(x),
}

WRONG = [
    through_evaluating,
    through_new_leaf,
    through_hiding,
    through_clearing,
    through_new_parameters,
    through_twice,
    through_a_copy_loaded,
    through_untied,
    through_with_hook,
    lambda layer, x: layer(x),
    lambda layer, x: through_by_flags(layer, x) * 2,
    lambda layer, x: layer(x.detach()),
]
