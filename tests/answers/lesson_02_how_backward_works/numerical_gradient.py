"""Right and wrong answers to `numerical_gradient`."""

from itertools import product

import torch

from tests.answers.lesson_02_how_backward_works.spoiled import spoiled
from tests.answers.magnitudes import clipping_results, dropping_small
from tests.answers.said import said


def central(step):
    def answer(f, x):
        slopes = []
        for place in product(*map(range, x.shape)):
            shift = torch.zeros(x.shape, dtype=torch.float64)
            shift[place] = step
            slopes.append((f(x + shift) - f(x - shift)) / (2 * step))
        return torch.stack(slopes).reshape(x.shape)

    return answer


def central_in_turn(f, x):
    slopes = []
    for place in range(x.numel()):
        ends = []
        for sign in (1, -1):
            moved = x.to(torch.float64, copy=True).flatten()
            moved[place] += sign * 2e-6
            ends.append(f(moved.reshape(x.shape)))
        raised, lowered = ends
        slopes.append((raised - lowered) / 4e-6)
    return torch.stack(slopes).reshape(x.shape)


def central_in_proportion(f, x):
    """The step is a share of the number, and so none for a zero."""
    base, slopes = x.double(), []
    for place in product(*map(range, x.shape)):
        shift = torch.zeros(x.shape, dtype=torch.float64)
        shift[place] = 1e-5 * base[place]
        slopes.append((f(base + shift) - f(base - shift)) / (2 * shift[place]))
    return torch.stack(slopes).reshape(x.shape)


def calling_too_often(f, x):
    for _ in range(3):
        f(x.double())
    return central(1e-5)(f, x)


def moving_on_and_on(f, x):
    moved, step = x.to(torch.float64, copy=True).contiguous(), 1e-3
    result = torch.zeros(x.shape, dtype=torch.float64)
    for place in range(x.numel()):
        moved.view(-1)[place] += step
        above = f(moved)
        moved.view(-1)[place] -= 2 * step
        result.view(-1)[place] = (above - f(moved)) / (2 * step)
    return result


def by_flat_points(f, x):
    flat, step = x.double().flatten(), 1e-5
    shifts = step * torch.eye(x.numel(), dtype=torch.float64)
    return torch.stack([(f(flat + shift) - f(flat - shift)) / (2 * step) for shift in shifts]).reshape(x.shape)


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


def in_the_dtype_of_x(f, x):
    slopes = []
    for direction in torch.eye(x.numel(), dtype=x.dtype).reshape(-1, *x.shape):
        slopes.append((f(x + 1e-4 * direction) - f(x - 1e-4 * direction)).double() / 2e-4)
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


barely_one_sided = one_sided_and_more(1e-7)


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


def clear_with_zeros(f, x):
    x.grad = torch.zeros_like(x)


def asking_autograd_too(f, x):
    slopes = central(1e-5)(f, x)
    y = x.detach().double().requires_grad_()
    torch.autograd.grad(f(y), y)
    return slopes


def in_two_precisions(f, x):
    f(x.float())
    return central(1e-5)(f, x)


RIGHT = [central(1e-5), central_in_turn, central(1e-4), central(1e-6)]

MISCONCEIVED = {
    "one-sided differences": one_sided,
    "x itself is moved": moving_x_itself,
    "differences in float32": in_float32,
    "not put back": moving_on_and_on,
    "a copy is moved": moving_a_copy,
    "autograd is asked": asking_autograd,
}

WRONG = [
    central(1e-1),
    central(1e-12),
    said(barely_one_sided, "one-sided differences"),
    *(said(one_sided_and_more(step), "one-sided differences") for step in (1e-6, 1e-8, 1e-9)),
    said(moving_a_flat_copy, "a copy is moved"),
    by_vmap,
    by_complex_step,
    spoiled(central(1e-5), lambda f, x: x.requires_grad_()),
    said(lambda f, x: torch.func.grad(f)(x.double()), "autograd is asked"),
    lambda f, x: central(1e-5)(f, x).float(),
    central_in_proportion,
    calling_too_often,
    lambda f, x: central(1e-5)(f, x).reshape(-1),
    spoiled(central(1e-5), clear_with_zeros),
    lambda f, x: (central(1e-5)(f, x),),
    said(in_two_precisions, "differences in float32"),
    central(1e-2),
    said(asking_autograd_too, "autograd is asked"),
    by_flat_points,
    *(clipping_results(central(1e-5)), dropping_small(central(1e-5))),
    lambda f, x: central(1e-5)(f, x).squeeze(),
    said(in_the_dtype_of_x, "differences in float32"),
]

EQUIVALENT = {
    "RIGHT[0]: central(1e-05) -> central(-1e-05)": "A negative step lowers the number first and raises it then: the quotient is the same.",
    "RIGHT[2]: central(0.0001) -> central(-0.0001)": "A negative step lowers the number first and raises it then: the quotient is the same.",
    "RIGHT[3]: central(1e-06) -> central(-1e-06)": "A negative step lowers the number first and raises it then: the quotient is the same.",
}

GUARDS = {
    "Return the gradient of `f` at `x`": {"type": WRONG[16]},
    "by central differences": {"both sides": barely_one_sided},
    "as a float64 tensor in the shape of `x`": {"dtype": WRONG[11], "shape": WRONG[14]},
    "Call `f` with float64 tensors, even where `x` is float32.": {"dtype of f": in_two_precisions},
    "Up to two calls more are allowed in all.": {"calls": calling_too_often},
    "Measure: do not ask autograd.": {"autograd": asking_autograd_too},
    "Afterwards `x` holds exactly the numbers that it held before.": {"input": moving_x_itself},
    "`x` does not require grad, and stays so.": {"requires_grad": WRONG[9], "grad": WRONG[15]},
    "the error of the result: it stays below a millionth of the largest number in the gradient": {"value": WRONG[0]},
}


def central_at_points_that_require_grad(f, x):
    """Asks autograd nothing, and still gives f what it follows."""
    return RIGHT[0](lambda point: f(point.requires_grad_()).detach(), x)


WRONG += [said(central_at_points_that_require_grad, "autograd is asked")]


def central_into_a_copy(f, x):
    """Writes what it measured into a reshaped result: of one that is not contiguous, that is a copy."""
    base = x.detach().double()
    result = torch.zeros_like(base)
    for place, direction in enumerate(1e-5 * torch.eye(x.numel(), dtype=torch.float64).reshape(-1, *x.shape)):
        result.reshape(-1)[place] = (f(base + direction) - f(base - direction)) / 2e-5
    return result


MISCONCEIVED["quotients lost"] = central_into_a_copy
