"""Right and wrong answers to `hvp`."""

import torch

from tests.answers.leaving import gradients_off, leaving
from tests.answers.lesson_05_higher_order_gradients.side_effects import hook_on, leaf_at
from tests.answers.magnitudes import clipping_results, dropping_small


def recorded_gradient(f, own):
    (gradient,) = torch.autograd.grad(f(own), own, create_graph=True)
    return gradient


def hvp_by_seed(f, x, v):
    own = leaf_at(x)
    gradient = recorded_gradient(f, own)
    if not gradient.requires_grad:
        return torch.zeros_like(x)
    return torch.autograd.grad(gradient, own, v, materialize_grads=True)[0]


def hvp_forward_over_reverse(f, x, v):
    _, product = torch.func.jvp(torch.func.grad(f), (x,), (v,))
    return product.detach()


def hvp_by_scalar(f, x, v):
    own = leaf_at(x)
    along = (recorded_gradient(f, own) * v).sum()
    if not along.requires_grad:
        return torch.zeros_like(x)
    return torch.autograd.grad(along, own, materialize_grads=True)[0]


def hvp_into_parameters(f, x, v):
    """The second pass also writes to .grad of f's own parameters."""
    own = x.detach().clone().requires_grad_(True)
    (gradient,) = torch.autograd.grad(f(own), own, create_graph=True)
    if not gradient.requires_grad:
        return torch.zeros_like(x)
    (gradient * v.detach()).sum().backward()
    return own.grad if own.grad is not None else torch.zeros_like(x)


def hvp_measured_at_once(f, x, v):
    """Differences of gradients, with one call of f for all points."""
    h, shape = 1e-3, (-1, *[1] * x.dim())
    shifts = torch.tensor([1.0, -1.0, 2.0, -2.0], dtype=x.dtype) * h
    near, far, further, furthest = torch.func.vmap(torch.func.grad(f))(x.detach() + shifts.reshape(shape) * v)
    return ((8 * (near - far) - (further - furthest)) / (12 * h)).detach()


def hvp_reverse_over_forward(f, x, v):
    def slope(t):
        _, along = torch.func.jvp(f, (t,), (v,))
        return along

    return torch.func.grad(slope)(x).detach()


def hvp_by_library(f, x, v):
    _, product = torch.autograd.functional.hvp(f, x, v)
    return product


def hvp_gradient_times_v(f, x, v):
    return torch.func.grad(f)(x.detach()) * v.detach()


def hvp_row_sums(f, x, v):
    return hvp_by_seed(f, x, torch.ones_like(v)) * v.detach()


def hvp_whole(f, x, v):
    hessian = torch.func.hessian(f)(x.detach()).reshape(x.numel(), x.numel())
    return (hessian @ v.reshape(-1)).reshape(x.shape).detach()


def hvp_rows(f, x, v):
    """Row by row: no large matrix, but a pass for each row."""
    own = x.detach().requires_grad_()
    (gradient,) = torch.autograd.grad(f(own), own, create_graph=True)
    if not gradient.requires_grad:
        return torch.zeros_like(x)
    rows = [torch.autograd.grad(g, own, retain_graph=True)[0] for g in gradient.reshape(-1)]
    return torch.stack([(row * v.detach()).sum() for row in rows]).reshape(x.shape)


def hvp_differences(f, x, v):
    gradient, h = torch.func.grad(f), 1e-4
    return (gradient(x.detach() + h * v.detach()) - gradient(x.detach() - h * v.detach())) / (2 * h)


def hvp_on_x(f, x, v):
    x.requires_grad_()
    (gradient,) = torch.autograd.grad(f(x), x, create_graph=True)
    return torch.autograd.grad(gradient, x, v)[0] if gradient.requires_grad else torch.zeros_like(x)


def hvp_recorded(f, x, v):
    own = x.detach().requires_grad_()
    (gradient,) = torch.autograd.grad(f(own), own, create_graph=True)
    return torch.autograd.grad(gradient, own, v, create_graph=True)[0] if gradient.requires_grad else x * 0


def hvp_retained(f, x, v):
    own = x.detach().requires_grad_()
    (gradient,) = torch.autograd.grad(f(own), own, retain_graph=True)
    return torch.autograd.grad(gradient, own, v)[0] if gradient.requires_grad else torch.zeros_like(x)


def hvp_of_two_points(f, x, v):
    """One call, but for x and another point at once."""

    def product(at):
        return torch.func.jvp(torch.func.grad(f), (at,), (v,))[1]

    return torch.func.vmap(product)(torch.stack([x, 2 * x]).detach())[0].detach()


def hvp_with_two_more(f, x, v):
    """Two passes for nothing, over a graph of their own."""
    own = leaf_at(x)
    for _ in range(2):
        torch.autograd.grad((own * own).sum(), own)
    return hvp_by_seed(f, x, v)


def hvp_zero_at_rest(f, x, v):
    """Takes a gradient that is zero for one that does not depend on x."""
    own = leaf_at(x)
    gradient = recorded_gradient(f, own)
    if not gradient.requires_grad or not gradient.any():
        return torch.zeros_like(x)
    return torch.autograd.grad(gradient, own, v, materialize_grads=True)[0]


def hvp_along_a_direction(f, x, v):
    """Takes the length of v out first, which is 0 / 0 where v holds zeros only."""
    return hvp_by_seed(f, x, v / v.norm()) * v.norm()


def hvp_zero_of_layers(f, x, v):
    """Takes each layer for a straight line."""
    product = hvp_by_seed(f, x, v)
    return torch.zeros_like(product) if isinstance(f, torch.nn.Module) else product


def hvp_of_matrices(f, x, v):
    """Multiplies rows by columns where the sizes allow it."""
    return hvp_by_seed(f, x, v.T if v.dim() == 2 and v.shape[0] == v.shape[1] else v)


_known = {}


def hvp_of_a_function_known(f, x, v):
    """Takes a function for known by its name, also at another point."""
    key = f, x.shape
    if key not in _known:
        own = leaf_at(x)
        _known[key] = own, recorded_gradient(f, own)
    own, gradient = _known[key]
    if not gradient.requires_grad:
        return torch.zeros_like(x)
    return torch.autograd.grad(gradient, own, v, retain_graph=True, materialize_grads=True)[0]


RIGHT = [hvp_by_seed, hvp_forward_over_reverse, hvp_by_scalar, hvp_reverse_over_forward, hvp_by_library]

MISCONCEIVED = {
    "not recorded": hvp_retained,
    "the gradient times v": hvp_gradient_times_v,
    "row sums times v": hvp_row_sums,
    "the whole Hessian": hvp_whole,
}

WRONG = [
    hvp_rows,
    hvp_into_parameters,
    hvp_measured_at_once,
    leaving(hvp_by_seed, lambda f, x, v: hook_on(x)),
    lambda f, x, v: hvp_by_seed(f, x.double(), v.double()),
    hvp_differences,
    hvp_on_x,
    hvp_recorded,
    lambda f, x, v: torch.func.grad(f)(x.detach()),
    lambda f, x, v: (v * hvp_by_seed(f, x, v)).sum(),
    lambda f, x, v: hvp_by_seed(f, x, v) / v.norm(),
    lambda f, x, v: hvp_by_seed(f, x, v).reshape(-1),
    lambda f, x, v: (f(x), hvp_by_seed(f, x, v)),
    lambda f, x, v: torch.zeros_like(x),
    lambda f, x, v: hvp_by_seed(f, x.view(-1), v.view(-1)).view(x.shape),
    lambda f, x, v: hvp_by_seed(f, x, v) + 1e-3 * v,
    hvp_twice := lambda f, x, v: (f(x.detach()), hvp_by_seed(f, x, v))[1],
    hvp_live := lambda f, x, v: hvp_by_seed(f, x, v).requires_grad_(),
    hvp_writing := leaving(hvp_by_seed, lambda f, x, v: v.data.mul_(2)),
    hvp_flagging := leaving(hvp_by_seed, lambda f, x, v: v.requires_grad_()),
    hvp_grading := leaving(hvp_by_seed, lambda f, x, v: setattr(v, "grad", v.clone())),
    hvp_off := leaving(hvp_by_seed, gradients_off),
    hvp_hooked := leaving(
        hvp_by_seed,
        lambda f, x, v: f.register_forward_hook(lambda *run: None) if isinstance(f, torch.nn.Module) else None,
    ),
    hvp_of_two_points,
    leaving(hvp_by_seed, lambda f, x, v: isinstance(f, torch.nn.Module) and f.requires_grad_()),
    hvp_with_two_more,
    hvp_of_a_function_known,
    *(clipping_results(hvp_by_seed), dropping_small(hvp_by_seed, 1e-8)),
    *(hvp_zero_at_rest, hvp_zero_of_layers, hvp_of_matrices),
    hvp_along_a_direction,
    *(lambda f, x, v: hvp_by_seed(f, x, v).squeeze(), lambda f, x, v: [len(x), hvp_by_seed(f, x, v)][1]),
    leaving(hvp_by_seed, lambda f, x, v: v.requires_grad_(False)),
    leaving(hvp_by_seed, lambda f, x, v: setattr(v, "grad", None)),
]

EQUIVALENT = {
    "leaf_at: x.detach().requires_grad_ -> x.clone().requires_grad_": "No gradient for x is asked for, and what is returned has no graph.",
    "recorded_gradient: ...n, create_graph=True) -> ...n, create_graph=True, retain_graph=True)": "Recording a pass keeps its graph as well.",
    "hvp_by_seed: ...terialize_grads=True) -> ...terialize_grads=True, retain_graph=True)": "The graph ends with the function.",
    "hvp_by_scalar: ...terialize_grads=True) -> ...terialize_grads=True, retain_graph=True)": "The graph ends with the function.",
}

GUARDS = {
    "It returns the Hessian of `f` at `x` times `v`": {"value": hvp_row_sums},
    "no tensor of it may have more than 20 n numbers": {"size": hvp_whole},
    "`f` is called once, for the one point `x`": {"calls": hvp_twice, "one point": hvp_of_two_points},
    "at most three backward passes run": {"passes": hvp_with_two_more},
    "The result has no graph": {"recorded": hvp_live},
    "`x` and `v` stay as they were": {
        "changed": hvp_writing,
        "requiring": hvp_flagging,
        "graded": hvp_grading,
    },
    "and so does `f` with its parameter": {"own parameter": hvp_into_parameters},
    "And recording stays switched on.": {"left": hvp_hooked},
}

STILL_RIGHT = {"keeps every graph"}


def hvp_of_a_number_as_of_a_line(f, x, v):
    """Takes a gradient of one number for a constant."""
    product = hvp_by_seed(f, x, v)
    return product if x.dim() else torch.zeros_like(product)


WRONG += [hvp_of_a_number_as_of_a_line]
