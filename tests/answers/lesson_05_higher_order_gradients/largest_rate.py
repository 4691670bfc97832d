"""Right and wrong answers to `largest_rate`."""

import torch

from tests.answers.said import said


def power_iteration(loss, w, rounds=100, margin=0.99, numerator=2):
    own = w.detach().requires_grad_()
    (gradient,) = torch.autograd.grad(loss(own), own, create_graph=True)
    v = torch.randn(w.shape, dtype=w.dtype, generator=torch.Generator().manual_seed(0))
    for _ in range(rounds):
        (v,) = torch.autograd.grad(gradient, own, v / v.norm(), retain_graph=True)
    return margin * numerator / v.norm().item()


def whole_hessian(loss, w):
    curvatures = torch.linalg.eigvalsh(torch.func.hessian(loss)(w.detach()))
    return 2 / curvatures.max()


def differences(loss, w):
    """Without a second derivative: differences of gradients along v."""
    start = w.detach()

    def gradient(at):
        at = at.requires_grad_()
        return torch.autograd.grad(loss(at), at)[0]

    first, v = gradient(start.clone()), torch.randn_like(start)
    for _ in range(95):
        v = gradient(start + v / v.norm()) - first
    return 0.95 * 2 / float(v.norm())


def by_the_trace(loss, w):
    """The sum of all curvatures is a bound, and mostly a loose one."""
    return 2 / torch.func.hessian(loss)(w.detach()).trace().item()


def along_the_gradient(loss, w):
    own = w.detach().requires_grad_()
    (gradient,) = torch.autograd.grad(loss(own), own, create_graph=True)
    direction = gradient.detach() / gradient.norm().item()
    (bent,) = torch.autograd.grad(gradient, own, direction)
    return 2 / (direction @ bent).item()


def by_trying(loss, w):
    def explodes(rate):
        at, first = w.detach().clone(), loss(w.detach())
        for _ in range(30):
            at = at.requires_grad_()
            value = loss(at)
            at = at.detach() - rate * torch.autograd.grad(value, at)[0]
        return not loss(at) <= first

    low, high = 0.0, 10.0
    for _ in range(30):
        middle = (low + high) / 2
        low, high = (low, middle) if explodes(middle) else (middle, high)
    return 0.98 * low


def in_place(loss, w):
    rate = power_iteration(loss, w)
    with torch.no_grad():
        w.sub_(1)
    return rate


def by_backward(loss, w):
    loss(w).backward()
    return power_iteration(loss, w)


def called_often(loss, w):
    for _ in range(100):
        loss(w.detach())
    return power_iteration(loss, w)


def power_from(start):
    """Power iteration from a start that may have no part in the steepest direction."""

    def rate(loss, w):
        hessian, v, curvature = torch.func.hessian(loss)(w.detach()), start(loss, w), 0.0
        for _ in range(600):
            v = hessian @ v
            v, before, curvature = v / v.norm(), curvature, v.norm().item()
            if abs(curvature - before) < 1e-5 * curvature:
                break  # before rounding brings the steepest direction
        return 1.98 / curvature

    return rate


RIGHT = [power_iteration, whole_hessian, differences]


rate_from_ones = power_from(lambda loss, w: torch.ones_like(w))

MISCONCEIVED = {
    "half of the border": lambda loss, w: power_iteration(loss, w, margin=1, numerator=1),
    "a little above the border": lambda loss, w: power_iteration(loss, w, rounds=20, margin=1),
    "a direction never seen": rate_from_ones,
}

WRONG = [
    by_the_trace,
    along_the_gradient,
    by_trying,
    in_place,
    by_backward,
    called_often,
    lambda loss, w: power_iteration(loss, w, margin=0.8),
    lambda loss, w: power_iteration(loss, w, margin=2),
    lambda loss, w: [power_iteration(loss, w)],
    lambda loss, w: 0.1,
    said(power_from(lambda loss, w: torch.func.grad(loss)(w.detach())), "a direction never seen"),
    power_from(lambda loss, w: torch.eye(len(w), dtype=w.dtype)[0]),
    lambda loss, w: min(10.0, power_iteration(loss, w)),
    lambda loss, w: max(1e-4, power_iteration(loss, w)),
    lambda loss, w: -power_iteration(loss, w),
    lambda loss, w: 2 / (2 / power_iteration(loss, w) + 1e-2),
    power_from(lambda loss, w: w.detach()),
]

# The rate may be chosen: 1 % off is still below the border.
STILL_RIGHT = {"slightly off"}

EQUIVALENT = {
    "power_iteration: ...n(loss, w, rounds=100, margin=0.99, numer... -> ...n(loss, w, rounds=101, margin=0.99, numer...": "The task bounds the rate, not the rounds.",
    "power_iteration: w.detach().requires_grad_ -> w.requires_grad_": "A leaf, its copy and its detached self give the same derivatives; autograd.grad writes nothing to w.",
    "power_iteration: w.detach().requires_grad_ -> w.clone().requires_grad_": "A leaf, its copy and its detached self give the same derivatives; autograd.grad writes nothing to w.",
    "power_iteration: ...n, create_graph=True) -> ...n, create_graph=True, retain_graph=True)": "The flag keeps or records more than is needed, and the rate is the same.",
    "power_iteration: ...orch.randn(w.shape, dtype=w.dtype, generator=torch.Gene... -> ...orch.randn(w.shape, generator=torch.Gene...": "Any start of the power iteration that is not orthogonal to the steepest direction serves.",
    "power_iteration: ...shape, dtype=w.dtype, generator=torch.Generator().manual_seed(0)) -> ...shape, dtype=w.dtype)": "Any start of the power iteration that is not orthogonal to the steepest direction serves.",
    "power_iteration: torch.Generator().manual_seed(0) -> torch.Generator().manual_seed(1)": "Any start of the power iteration that is not orthogonal to the steepest direction serves.",
    "power_iteration: for _ in range(rounds): ... -> for _ in range(rounds + 1): ...": "The task bounds the rate, not the rounds.",
    "power_iteration: for _ in range(rounds): ... -> for _ in range(rounds - 1): ...": "The task bounds the rate, not the rounds.",
    "power_iteration: ...), retain_graph=True) -> ...), retain_graph=True, create_graph=True)": "The flag keeps or records more than is needed, and the rate is the same.",
    "power_iteration: v.norm().item() -> v.norm()": "A tensor with one number is one real number, too.",
    "power_iteration: gradient, = torch.autograd.grad(loss(own), own, create_graph=True) | v = torch.randn(w.shape, dtype=w.dtype, generator=t... -> (swapped)": "The flag keeps or records more than is needed, and the rate is the same.",
    "whole_hessian: torch.func.hessian(loss)(w.detach()) -> torch.func.hessian(loss)(w)": "A leaf, its copy and its detached self give the same derivatives; autograd.grad writes nothing to w.",
    "whole_hessian: torch.func.hessian(loss)(w.detach()) -> torch.func.hessian(loss)(w.clone())": "A leaf, its copy and its detached self give the same derivatives; autograd.grad writes nothing to w.",
    "differences: start = w.detach() -> start = w": "A leaf, its copy and its detached self give the same derivatives; autograd.grad writes nothing to w.",
    "differences: start = w.detach() -> start = w.clone()": "A leaf, its copy and its detached self give the same derivatives; autograd.grad writes nothing to w.",
    "differences.gradient: torch.autograd.grad(loss(at), at) -> torch.autograd.grad(loss(at), at, retain_graph=True)": "The flag keeps or records more than is needed, and the rate is the same.",
    "differences.gradient: torch.autograd.grad(loss(at), at) -> torch.autograd.grad(loss(at), at, create_graph=True)": "The flag keeps or records more than is needed, and the rate is the same.",
    "differences: gradient(start.clone()) -> gradient(start)": "A leaf, its copy and its detached self give the same derivatives; autograd.grad writes nothing to w.",
    "differences: gradient(start.clone()) -> gradient(start.detach())": "A leaf, its copy and its detached self give the same derivatives; autograd.grad writes nothing to w.",
    "differences: for _ in range(95): ... -> for _ in range(96): ...": "The task bounds the rate, not the rounds.",
    "differences: start + v / v.norm() -> start - v / v.norm()": "A leaf, its copy and its detached self give the same derivatives; autograd.grad writes nothing to w.",
    "differences: float(v.norm()) -> v.norm()": "A tensor with one number is one real number, too.",
}

GUARDS = {
    "Return one real number": {"number": WRONG[8]},
    "does not explode from any start": {"explodes": WRONG[7]},
    "at least 0.9 of the border": {"large": WRONG[6]},
    "You may call `loss` 100 times": {"calls": called_often},
    "The numbers in `w`": {"moved": in_place},
    "`w.grad` stay as they are": {"graded": by_backward},
}


def by_differences_along_each_axis(loss, w):
    """Calls loss once for each number of w, and once more."""
    start = w.detach()

    def gradient(at):
        at = at.clone().requires_grad_()
        return torch.autograd.grad(loss(at), at)[0]

    first = gradient(start)
    hessian = torch.stack([gradient(start + axis) - first for axis in torch.eye(len(start), dtype=start.dtype)])
    return 1.98 / torch.linalg.eigvalsh((hessian + hessian.T) / 2).max().item()


WRONG += [by_differences_along_each_axis]


def by_differences_as_long_as_w(loss, w):
    """Divides by the length of w, which may be zero."""
    at, gradient = w.detach(), torch.func.grad(loss)
    base, size = gradient(at), 1e-3 * at.norm()
    v = torch.randn(w.shape, dtype=w.dtype, generator=torch.Generator().manual_seed(3))
    for _ in range(90):
        v = (gradient(at + size * v / v.norm()) - base) / size
    return float(0.99 * 2 / v.norm())


WRONG.append(by_differences_as_long_as_w)
