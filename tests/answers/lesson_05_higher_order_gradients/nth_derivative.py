"""Right and wrong answers to `nth_derivative`."""

import torch

from tests.answers.leaving import gradients_off, leaving
from tests.answers.lesson_05_higher_order_gradients.side_effects import hook_on, leaf_at
from tests.answers.magnitudes import clipping_results, dropping_small


def nth_by_passes(f, x, n):
    own = leaf_at(x)
    y = f(own)
    for _ in range(n):
        if not y.requires_grad:
            return torch.zeros_like(x)
        (y,) = torch.autograd.grad(y.sum(), own, create_graph=True, materialize_grads=True)
    return y.detach()


def nth_by_func(f, x, n):
    """Nested torch.func.grad: they give zeros where autograd raises."""

    def derivative(g):
        return torch.func.grad(lambda t: g(t).sum())

    g = f
    for _ in range(n):
        g = derivative(g)
    return g(x).detach()


def nth_by_ones(f, x, n):
    own = leaf_at(x)
    y = f(own)
    for _ in range(n):
        if not y.requires_grad:
            return torch.zeros_like(x)
        (y,) = torch.autograd.grad(y, own, torch.ones_like(y), create_graph=True, allow_unused=True)
        if y is None:
            return torch.zeros_like(x)
    return y.detach()


def nth_forward_mode(f, x, n):
    def derivative(g):
        def slope(t):
            _, along = torch.func.jvp(g, (t,), (torch.ones_like(t),))
            return along

        return slope

    g = f
    for _ in range(n):
        g = derivative(g)
    return g(x).detach()


def nth_without_zeros(f, x, n):
    """Fails where what f's parameter leaves over does not depend on x."""
    own = x.detach().requires_grad_()
    y = f(own)
    for _ in range(n):
        if not y.requires_grad:
            return torch.zeros_like(x)
        (y,) = torch.autograd.grad(y.sum(), own, create_graph=True)
    return y.detach()


def nth_into_parameters(f, x, n):
    """With backward, which also writes to .grad of f's own parameters."""
    own = x.detach().requires_grad_()
    y = f(own)
    for _ in range(n):
        if not y.requires_grad:
            return torch.zeros_like(x)
        own.grad = None
        y.sum().backward(create_graph=True)
        y = own.grad if own.grad is not None else torch.zeros_like(own)
    own.grad = None
    return y.detach()


def nth_accumulated(f, x, n):
    own = x.detach().clone().requires_grad_()
    y = f(own)
    if n == 0:
        return y.detach()
    for _ in range(n):
        if not y.requires_grad:
            break
        y.sum().backward(create_graph=True)
        y = own.grad
    result = own.grad.detach() if own.grad is not None else torch.zeros_like(x)
    own.grad = None
    return result


def nth_one_more(f, x, n):
    return nth_by_passes(f, x, n + 1)


def nth_retained(f, x, n):
    own = x.detach().requires_grad_()
    y = f(own)
    for _ in range(n):
        if not y.requires_grad:
            return torch.zeros_like(x)
        (y,) = torch.autograd.grad(y.sum(), own, retain_graph=True)
    return y.detach()


def nth_unguarded(f, x, n):
    own = x.detach().requires_grad_()
    y = f(own)
    for _ in range(n):
        (y,) = torch.autograd.grad(y.sum(), own, create_graph=True)
    return y.detach()


def nth_recorded(f, x, n):
    own = x.detach().requires_grad_()
    y = f(own)
    for _ in range(n):
        if not y.requires_grad:
            return torch.zeros_like(x)
        (y,) = torch.autograd.grad(y.sum(), own, create_graph=True)
    return y


def nth_by_differences(f, x, n):
    def derivative(g, h=1e-3):
        return lambda t: (g(t + h) - g(t - h)) / (2 * h)

    g = f
    for _ in range(n):
        g = derivative(g)
    return g(x.detach())


def nth_on_x(f, x, n):
    x.requires_grad_()
    y = f(x)
    for _ in range(n):
        if not y.requires_grad:
            return torch.zeros_like(x)
        (y,) = torch.autograd.grad(y.sum(), x, create_graph=True)
    return y.detach()


def nth_forward_each_time(f, x, n):
    nth_by_passes(f, x, n)
    return nth_by_passes(f, x, n)


def nth_after_clearing(f, x, n):
    """With backward, clearing .grad of x itself."""
    x.requires_grad_()
    y = f(x)
    for _ in range(n):
        if not y.requires_grad:
            return torch.zeros_like(x)
        x.grad = None
        y.sum().backward(create_graph=True)
        y = x.grad
    x.grad = None
    return y.detach()


def nth_remembered():
    """Remembers what it returned, by the shape of x and n."""
    known = {}

    def derivative(f, x, n):
        if (x.shape, n) not in known:
            known[x.shape, n] = nth_by_passes(f, x, n)
        return known[x.shape, n]

    return derivative


def nth_and_a_pass(f, x, n):
    """Runs a pass more, over a graph of its own."""
    own = leaf_at(x)
    torch.autograd.grad((own * own).sum(), own)
    return nth_by_passes(f, x, n)


def nth_after(change):
    """Does something to f, where it is a layer."""

    def derivative(f, x, n):
        result = nth_by_passes(f, x, n)
        if isinstance(f, torch.nn.Module):
            change(f)
        return result

    return derivative


def nth_until_all_are_zero(f, x, n):
    """Takes a derivative that is zero at all given numbers for one that is zero everywhere."""
    for order in range(1, n + 1):
        if not nth_by_passes(f, x, order).any():
            return torch.zeros_like(x).detach()
    return nth_by_passes(f, x, n)


def nth_up_to_a_constant(f, x, n):
    """Takes the last derivative that depends on nothing for all that follow."""
    own = x.detach().requires_grad_()
    y = f(own)
    for done in range(n):
        if not y.requires_grad:
            return y.detach() if done else torch.zeros_like(x)
        (y,) = torch.autograd.grad(y.sum(), own, create_graph=True, materialize_grads=True)
    return y.detach()


RIGHT = [nth_by_passes, nth_by_func, nth_by_ones, nth_forward_mode]

MISCONCEIVED = {
    "all derivatives added up": nth_accumulated,
    "one pass too many": nth_one_more,
    "retained, not recorded": nth_retained,
}

WRONG = [
    nth_until_all_are_zero,
    nth_up_to_a_constant,
    nth_unguarded,
    nth_without_zeros,
    nth_into_parameters,
    nth_remembered(),
    nth_and_a_pass,
    lambda f, x, n: nth_by_passes(f, x, n) if n < 4 or f(x).dtype == torch.float32 else f(x).detach(),
    leaving(nth_by_passes, lambda f, x, n: hook_on(x)),
    lambda f, x, n: nth_by_passes(f, x.double(), n),
    nth_recorded,
    nth_by_differences,
    nth_on_x,
    nth_forward_each_time,
    nth_after_clearing,
    lambda f, x, n: torch.func.grad(lambda t: f(t).sum())(x.detach()) ** n,
    lambda f, x, n: nth_by_passes(f, x, min(n, 4)) * (n < 5),
    lambda f, x, n: nth_by_passes(f, x.flatten(), n),
    lambda f, x, n: nth_by_passes(f, x, n).sum(),
    lambda f, x, n: [[None], "x", {}],
    nth_twice := lambda f, x, n: (f(x.detach()), nth_by_passes(f, x, n))[1],
    nth_live := lambda f, x, n: nth_by_passes(f, x, n).requires_grad_(),
    nth_writing := leaving(nth_by_passes, lambda f, x, n: x.data.mul_(2)),
    nth_flagging := leaving(nth_by_passes, lambda f, x, n: x.requires_grad_(not x.requires_grad)),
    nth_grading := leaving(nth_by_passes, lambda f, x, n: setattr(x, "grad", torch.zeros_like(x))),
    nth_off := leaving(nth_by_passes, gradients_off),
    nth_hooked := nth_after(lambda f: f.register_forward_hook(lambda *run: None)),
    nth_frozen := nth_after(lambda f: f.requires_grad_(False)),
    *(clipping_results(nth_by_passes), dropping_small(nth_by_passes)),
    lambda f, x, n: nth_by_passes(f, x, n) if n else f(x.detach()),
    lambda f, x, n: nth_by_passes(f, x, n).squeeze(),
    lambda f, x, n: (
        torch.zeros(x.shape, dtype=torch.float64) if n > 1 and not f(x + 1).requires_grad else nth_by_passes(f, x, n)
    ),
]

EQUIVALENT = {
    "leaf_at: x.detach().requires_grad_ -> x.clone().requires_grad_": "No gradient for x is asked for, and the result is detached.",
    "nth_by_passes: ...terialize_grads=True) -> ...terialize_grads=True, retain_graph=True)": "Recording a pass keeps its graph as well.",
    "nth_by_ones: ...e, allow_unused=True) -> ...e, allow_unused=True, retain_graph=True)": "Recording a pass keeps its graph as well.",
}

GUARDS = {
    "which returns the nth derivative of `f` at each number of `x`": {"value": MISCONCEIVED["retained, not recorded"]},
    "Return zeros there.": {"runs": nth_unguarded},
    "The result has no graph.": {"recorded": nth_live},
    "`x` stays as it was": {
        "changed": nth_writing,
        "requiring": nth_flagging,
        "graded": nth_grading,
    },
    "and so does `f` with its parameter": {"own parameter": nth_frozen},
    "And recording stays switched on.": {"left": nth_hooked},
    "`f` is called once, and at most n backward passes run.": {"calls": nth_twice, "passes": nth_and_a_pass},
}
