"""Right and wrong answers to `numerical_gradient`."""

import torch

from tests.answers.lesson_02_how_backward_works.spoiled import spoiled
from tests.answers.said import said


def central(step):
    def answer(f, x):
        base = x.detach().double()
        result = torch.zeros(x.shape, dtype=torch.float64)
        for index in torch.cartesian_prod(*map(torch.arange, x.shape)).reshape(-1, x.dim()) if x.dim() else [()]:
            place = tuple(index)
            higher, lower = base.clone(), base.clone()
            higher[place] += step
            lower[place] -= step
            result[place] = (f(higher) - f(lower)) / (2 * step)
        return result

    return answer


def central_by_directions(f, x):
    base, step = x.to(torch.float64).clone(), 2e-6
    slopes = []
    for direction in torch.eye(x.numel(), dtype=torch.float64).reshape(x.numel(), *x.shape):
        slopes.append((f(base + step * direction).item() - f(base - step * direction).item()) / (2 * step))
    return torch.tensor(slopes, dtype=torch.float64).reshape(x.shape)


def one_sided(f, x):
    base, step = x.double(), 1e-8
    at_x = f(base)
    slopes = [
        (f(base + step * direction) - at_x) / step
        for direction in torch.eye(x.numel(), dtype=torch.float64).reshape(-1, *x.shape)
    ]
    return torch.stack(slopes).reshape(x.shape)


def moving_x_itself(f, x):
    base, step = x.double(), 1e-5  # no copy where x is float64 already
    result = torch.zeros(x.shape, dtype=torch.float64)
    for place in torch.cartesian_prod(*map(torch.arange, x.shape)).reshape(-1, x.dim()) if x.dim() else [()]:
        place = tuple(place)
        base[place] += step
        higher = f(base)
        base[place] -= 2 * step
        result[place] = (higher - f(base)) / (2 * step)
        base[place] += step
    return result


def in_float32(f, x):
    step = 1e-3
    slopes = [
        (f((x + step * direction).float()) - f((x - step * direction).float())).double() / (2 * step)
        for direction in torch.eye(x.numel()).reshape(-1, *x.shape)
    ]
    return torch.stack(slopes).reshape(x.shape)


def moving_a_copy(f, x):
    base = x.double().clone(memory_format=torch.preserve_format)
    spaced = base.T.contiguous().T if base.dim() == 2 else base.expand(1, *base.shape)
    flat, step = spaced.reshape(-1).clone(), 1e-5
    result = torch.zeros(x.numel(), dtype=torch.float64)
    for place in range(x.numel()):
        flat[place] += step
        higher = f(base)
        flat[place] -= 2 * step
        result[place] = (higher - f(base)) / (2 * step)
        flat[place] += step
    return result.reshape(x.shape)


def asking_autograd(f, x):
    y = x.detach().double().requires_grad_()
    for _ in range(2 * x.numel() - 1):
        f(y)
    return torch.autograd.grad(f(y), y)[0]


def one_sided_and_more(step):
    """One-sided differences with a step so small that only the points tell, and enough calls."""

    def answer(f, x):
        base = x.double()
        result = torch.zeros_like(base).contiguous()
        for place, direction in enumerate(torch.eye(x.numel(), dtype=torch.float64).reshape(-1, *x.shape)):
            result.view(-1)[place] = (f(base + step * direction) - f(base)) / step
        return result

    return answer


def moving_a_flat_copy(f, x):
    base, step = x.double(), 1e-5
    result = torch.zeros(x.numel(), dtype=torch.float64)
    for place in range(x.numel()):
        higher, lower = base.clone(), base.clone()
        higher.flatten()[place] += step
        lower.flatten()[place] -= step
        result[place] = (f(higher) - f(lower)) / (2 * step)
    return result.reshape(x.shape)


def by_vmap(f, x):
    base, step = x.double(), 1e-5
    directions = step * torch.eye(x.numel(), dtype=torch.float64).reshape(-1, *x.shape)
    together = torch.func.vmap(f)
    return ((together(base + directions) - together(base - directions)) / (2 * step)).reshape(x.shape)


def by_complex_step(f, x):
    base = x.to(torch.complex128)
    directions = torch.eye(x.numel(), dtype=torch.complex128).reshape(-1, *x.shape)
    f(base)
    return torch.stack([f(base + 1e-20j * direction).imag / 1e-20 for direction in directions]).reshape(x.shape)


RIGHT = [central(1e-5), central_by_directions, central(1e-4), central(1e-6)]

MISCONCEIVED = {
    "one-sided differences": one_sided,
    "x itself is moved": moving_x_itself,
    "differences in float32": in_float32,
    "a copy is moved": moving_a_copy,
    "autograd is asked": asking_autograd,
}

WRONG = [
    central(1e-1),
    central(1e-12),
    *(said(one_sided_and_more(step), "one-sided differences") for step in (1e-6, 1e-7, 1e-8, 1e-9)),
    said(moving_a_flat_copy, "a copy is moved"),
    by_vmap,
    by_complex_step,
    spoiled(central(1e-5), lambda f, x: x.requires_grad_()),
    said(lambda f, x: torch.func.grad(f)(x.double()), "autograd is asked"),
    lambda f, x: central(1e-5)(f, x).float(),
]
