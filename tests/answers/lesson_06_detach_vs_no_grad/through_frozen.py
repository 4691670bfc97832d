"""Right and wrong answers to `through_frozen`."""

import copy

import torch
from torch import nn
from torch.func import functional_call

from tests.answers.leaving import gradients_off, leaving
from tests.answers.lesson_06_detach_vs_no_grad.side_effects import hook_on_module
from tests.answers.near import near
from tests.answers.said import said


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


def through_with(secure=True, after=None, kind=BaseException):
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
        except kind:
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
        module._parameters[name] = parameter.detach()
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
    except Exception:
        return None


def through_clearing(layer, x):
    layer.zero_grad()
    return through_by_flags(layer, x)


def through_new_parameters(layer, x):
    y = through_by_functional_call(layer, x)
    for module in layer.modules():
        for name, parameter in list(module.named_parameters(recurse=False)):
            setattr(module, name, nn.Parameter(parameter.detach().clone(), parameter.requires_grad))
    return y


def through_twice(layer, x):
    through_by_functional_call(layer, x)
    return through_by_functional_call(layer, x)


def through_past_hooks(layer, x):
    """Calls forward, so that the layer's own hooks are left out."""
    before = [(parameter, parameter.requires_grad) for parameter in layer.parameters()]
    try:
        layer.requires_grad_(False)
        return layer.forward(x)
    finally:
        for parameter, flag in before:
            parameter.requires_grad_(flag)


def through_steeper(layer, x):
    """The right value with twice the gradient."""
    y = through_by_flags(layer, x)
    return 2 * y - y.detach()


def through_thawing_in_training(layer, x):
    """Gives the flags back in training, where it thinks that they are needed."""
    before = [(parameter, parameter.requires_grad) for parameter in layer.parameters()]
    try:
        layer.requires_grad_(False)
        return layer(x)
    finally:
        for parameter, flag in before:
            parameter.requires_grad_(flag and layer.training)


class Again(torch.autograd.Function):
    """Runs a layer unrecorded, and once more in the backward."""

    @staticmethod
    def forward(ctx, x, layer):
        ctx.layer = layer
        ctx.save_for_backward(x)
        return layer(x)

    @staticmethod
    def backward(ctx, gradient):
        with torch.enable_grad():
            x = ctx.saved_tensors[0].detach().requires_grad_()
            return torch.autograd.grad(ctx.layer(x), x, gradient)[0], None


def through_new_objects(layer, x):
    """Puts other parameters with the same numbers, gradients and flags into all places."""
    y, known = through_by_flags(layer, x), {}
    for part in layer.modules():
        for name, its in list(part._parameters.items()):
            if its not in known:
                known[its] = nn.Parameter(its.detach(), its.requires_grad)
                known[its].grad = its.grad
            part._parameters[name] = known[its]
    return y


def through_the_near(layer, x):
    """Freezes the layer's own parameters and those of its direct children."""
    before = [(parameter, parameter.requires_grad) for parameter in near(layer).values()]
    try:
        for parameter, _ in before:
            parameter.requires_grad_(False)
        return layer(x)
    finally:
        for parameter, flag in before:
            parameter.requires_grad_(flag)


RIGHT = [through_by_flags, through_by_functional_call, through_by_swapping]

MISCONCEIVED = {
    "no_grad around it": through_no_grad,
    "frozen for good": through_with(after=lambda layer: None),
    "thawed": through_with(after=lambda layer: layer.requires_grad_(True)),
    "a copy ran": lambda layer, x: copy.deepcopy(layer).requires_grad_(False)(x),
}

WRONG = [
    through_the_near,
    through_evaluating,
    through_new_leaf,
    through_hiding,
    through_clearing,
    through_new_parameters,
    through_twice,
    said(through_a_copy_loaded, "a copy ran"),
    through_new_objects,
    through_untied,
    through_with_hook,
    through_all := lambda layer, x: layer(x),
    through_with(secure=False),
    through_with(kind=RuntimeError),
    said(through_thawing_in_training, "frozen for good"),
    lambda layer, x: Again.apply(x, layer),
    through_stopped := through_with(kind=Exception),
    through_past_hooks,
    said(lambda layer, x: through_by_flags(layer, x).detach(), "no_grad around it"),
    through_off := leaving(through_by_flags, gradients_off),
    through_writing := leaving(through_by_flags, lambda layer, x: layer[2].bias.data.mul_(2)),
    through_switching := leaving(
        through_by_flags, lambda layer, x: layer[0].eval() if layer.training else layer[0].train()
    ),
    through_counting := leaving(through_by_flags, lambda layer, x: layer[1].num_batches_tracked.add_(1)),
    through_steeper,
    through_peeking := leaving(through_by_flags, lambda layer, x: layer[0](torch.ones(2, 3))),
    lambda layer, x: through_by_flags(layer, x) * 2,
    lambda layer, x: layer(x.detach()),
]

GUARDS = {
    "It returns what `layer(x)` returns.": {"value": through_past_hooks},
    "A gradient goes through it to `x`": {
        "graph": through_no_grad,
        "value": through_steeper,
    },
    "the graph leads to **no** parameter of the layer": {"only x": through_all},
    "the same parameter objects": {"objects": through_new_objects},
    "each with the numbers, the `requires_grad` and the `.grad` that it had": {
        "numbers": through_writing,
        "flags": MISCONCEIVED["thawed"],
        "gradients": through_clearing,
    },
    "the same modes and hooks": {"modes": through_switching, "hooks": through_with_hook},
    "batch norm's statistics updated if the layer is in training": {"value": through_counting},
    "Recording stays switched on.": {"grad mode": through_off},
    "let the exception through, whatever its kind": {"raised": through_hiding},
    "leave no parameter frozen that was not": {"flags": through_stopped},
    "The layer itself runs once.": {"runs": through_peeking},
}
