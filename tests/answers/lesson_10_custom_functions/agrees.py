"""Right and wrong answers to `agrees`."""

import torch
from torch.autograd.gradcheck import get_analytical_jacobian, get_numerical_jacobian_wrt_specific_input

from tests.answers.lesson_10_custom_functions.side_effects import gradients_off_after
from tests.answers.said import said


def agrees(function, x):
    leaf = x.clone().requires_grad_()
    result = function(leaf)
    by_backward, by_difference = [], []
    for place in range(result.numel()):
        seed = torch.zeros(result.numel(), dtype=x.dtype)
        seed[place] = 1
        (row,) = torch.autograd.grad(result, leaf, seed.reshape(result.shape), retain_graph=True, allow_unused=True)
        by_backward.append(torch.zeros(x.numel(), dtype=x.dtype) if row is None else row.reshape(-1))
    for place in range(x.numel()):
        step = torch.zeros(x.numel(), dtype=x.dtype)
        step[place] = 1e-6
        step = step.reshape(x.shape)
        by_difference.append(((function(x + step) - function(x - step)) / 2e-6).reshape(-1))
    return torch.allclose(torch.stack(by_backward), torch.stack(by_difference, 1), rtol=1e-5, atol=1e-6)


usual = agrees  # the grader's cell binds the exercise's name to the answer that it tries


def agrees_on_random_lines(function, x, step=1e-5):
    generator = torch.Generator().manual_seed(0)
    for _ in range(8):
        line = torch.randn(x.shape, dtype=x.dtype, generator=generator)
        slope = (function(x + step * line) - function(x - step * line)) / (2 * step)
        leaf = x.clone().requires_grad_()
        result = function(leaf)
        g = torch.randn(result.shape, dtype=x.dtype, generator=generator)
        result.backward(g)
        gradient = torch.zeros_like(x) if leaf.grad is None else leaf.grad
        off = abs((gradient * line).sum() - (g * slope).sum())
        if not off <= 1e-6 * (1 + slope.abs().max()):  # NaN is off, too
            return False
    return torch.tensor(True)


def gradient_of_sum(function, x):
    leaf = x.clone().requires_grad_()
    function(leaf).sum().backward()
    return torch.zeros_like(x) if leaf.grad is None else leaf.grad


def agrees_on_the_sum(function, x, step=1e-6):
    gradient = gradient_of_sum(function, x)
    for place in range(x.numel()):
        move = torch.zeros(x.numel(), dtype=x.dtype)
        move[place] = step
        move = move.reshape(x.shape)
        slope = (function(x + move).sum() - function(x - move).sum()) / (2 * step)
        if not abs(slope - gradient.reshape(-1)[place]) <= 1e-5 * (1 + abs(slope)):
            return False
    return True


def agrees_all_at_once(function, x):
    """Moves all numbers of x together, with random incoming gradients."""
    generator = torch.Generator().manual_seed(0)
    slope = (function(x + 1e-6) - function(x - 1e-6)) / 2e-6
    for _ in range(4):
        leaf = x.clone().requires_grad_()
        result = function(leaf)
        g = torch.randn(result.shape, dtype=x.dtype, generator=generator)
        (gradient,) = torch.autograd.grad(result, leaf, g, allow_unused=True)
        total = 0.0 if gradient is None else gradient.sum()
        if not abs(total - (g * slope).sum()) <= 1e-5 * (1 + slope.abs().max()):
            return False
    return True


def agrees_coarsely(step=1e-6, one_sided=False, rtol=1e-5, atol=1e-6):
    def verify(function, x):
        leaf = x.clone().requires_grad_()
        result = function(leaf)
        rows = []
        for place in range(result.numel()):
            seed = torch.zeros(result.numel(), dtype=x.dtype)
            seed[place] = 1
            seed = seed.reshape(result.shape)
            (row,) = torch.autograd.grad(result, leaf, seed, retain_graph=True, allow_unused=True)
            rows.append(torch.zeros(x.numel(), dtype=x.dtype) if row is None else row.reshape(-1))
        columns = []
        for place in range(x.numel()):
            move = torch.zeros(x.numel(), dtype=x.dtype)
            move[place] = step
            move = move.reshape(x.shape)
            before = function(x) if one_sided else function(x - move)
            columns.append(((function(x + move) - before) / (step if one_sided else 2 * step)).reshape(-1))
        return torch.allclose(torch.stack(rows), torch.stack(columns, 1), rtol=rtol, atol=atol)

    return verify


def agrees_by_library(function, x):
    return torch.autograd.gradcheck(function, x.clone().requires_grad_(), raise_exception=False)


def agrees_and_leaves_a_gradient(function, x):
    answer = agrees_on_random_lines(function, x)
    x.requires_grad_()
    return answer


def agrees_by_measure(alike):
    """Compares the two whole Jacobians by a measure that is given."""

    def verify(function, x):
        exact = torch.autograd.functional.jacobian(function, x.clone()).reshape(-1, x.numel())
        steps = 1e-6 * torch.eye(x.numel(), dtype=x.dtype).reshape(-1, *x.shape)
        columns = [(function(x + step) - function(x - step)).reshape(-1) / 2e-6 for step in steps]
        return bool(alike(exact, torch.stack(columns, 1)))

    return verify


by_single_entries = agrees


def agrees_unless_none(function, x):
    """Takes a backward that returns None for wrong, also where zeros are right."""
    leaf = x.detach().clone().requires_grad_()
    (gradient,) = torch.autograd.grad(function(leaf).sum(), leaf, allow_unused=True)
    return gradient is not None and agrees_on_random_lines(function, x)


def agrees_on_zeros(function, x):
    """Takes a gradient of zeros for right."""
    leaf = x.clone().requires_grad_()
    (gradient,) = torch.autograd.grad(function(leaf).sum(), leaf, allow_unused=True)
    return agrees_on_random_lines(function, x) or (
        gradient is not None and not gradient.any() and function(x).dim() > 0
    )


def agrees_but_not_on_one_number(function, x):
    return function(x).dim() > 0 and bool(agrees_on_random_lines(function, x))


RIGHT = [agrees, agrees_on_random_lines]

MISCONCEIVED = {
    "only the sum": agrees_on_the_sum,
    "all numbers at once": agrees_all_at_once,
    "a coarse difference": agrees_coarsely(step=1e-2),
    "too tolerant": agrees_coarsely(rtol=0.1),
    "NaN let through": agrees_by_measure(lambda a, b: not ((a - b).abs() > 1e-5 + 1e-5 * b.abs()).any()),
}


def agrees_where_it_moves(function, x):
    """Compares whole Jacobians, but not where the measured slope is zero."""
    leaf = x.clone().requires_grad_()
    result = function(leaf)
    rows = []
    for seed in torch.eye(result.numel(), dtype=x.dtype).reshape(-1, *result.shape):
        (row,) = torch.autograd.grad(result, leaf, seed, retain_graph=True, allow_unused=True)
        rows.append(torch.zeros(x.numel(), dtype=x.dtype) if row is None else row.reshape(-1))
    columns = []
    for move in 1e-5 * torch.eye(x.numel(), dtype=x.dtype).reshape(-1, *x.shape):
        columns.append(((function(x + move) - function(x - move)) / 2e-5).reshape(-1))
    claimed, measured = torch.stack(rows), torch.stack(columns, 1)
    return torch.allclose(
        torch.where((measured == 0) & claimed.isfinite(), measured, claimed), measured, rtol=1e-3, atol=1e-8
    )


WRONG = [
    agrees_by_library,
    agrees_and_leaves_a_gradient,
    lambda function, x: True,
    lambda function, x: False,
    lambda function, x: "right",
    lambda function, x: 1,
    said(agrees_coarsely(step=1e-3, one_sided=True), "a coarse difference"),
    agrees_coarsely(step=1e-13),
    said(agrees_coarsely(rtol=0, atol=1e-3), "too tolerant"),
    agrees_coarsely(rtol=10, atol=10),
    gradients_off_after(agrees),
    agrees_by_measure(lambda a, b: (a - b).norm() <= 0.005 * b.norm()),
    said(agrees_by_measure(lambda a, b: torch.allclose(a.nan_to_num(), b.nan_to_num(), atol=1e-7)), "NaN let through"),
    lambda function, x: by_single_entries(function, torch.randn(x.shape, dtype=x.dtype)),
    lambda function, x: function(x).dim() == 0 or by_single_entries(function, x),
    agrees_coarsely(atol=0),
    agrees_by_measure(lambda a, b: torch.allclose(a.abs(), b.abs(), rtol=1e-5, atol=1e-6)),
    lambda function, x: agrees_coarsely()(function, x.abs() + 0.2),
    said(agrees_coarsely(atol=1e-4), "too tolerant"),
    agrees_unless_none,
    agrees_on_zeros,
    agrees_but_not_on_one_number,
    said(agrees_by_measure(lambda a, b: torch.allclose(a, b, rtol=1e-11, atol=1e-9)), "a coarse difference"),
    said(agrees_coarsely(step=1e-2, one_sided=True, rtol=1e-3), "a coarse difference"),
    said(agrees_where_it_moves, "only the sum"),
]

EQUIVALENT = {
    "agrees_on_random_lines: abs((gradient * line).sum() - (g * slope).sum()) -> (gradient * line).sum() - (g * slope).sum()": "Of eight lines, where the two differ, some have a difference above 0.",
    "agrees: ...(by_difference, 1), rtol=1e-05, atol=1e-06) -> ...(by_difference, 1), atol=1e-06)": "The text leaves open how near is near, within one percent.",
    "agrees: ...e, allow_unused=True) -> ...e, allow_unused=True, create_graph=True)": "The graph goes with its result. The task asks nothing of the memory between.",
    "agrees: ...ence, 1), rtol=1e-05, atol=1e-06) -> ...ence, 1), rtol=1e-05)": "The text leaves open how near is near, within one percent.",
    "agrees: ...ifference, 1), rtol=1e-05, atol=1e-06) -> ...ifference, 1), rtol=0.0, atol=1e-06)": "The text leaves open how near is near, within one percent.",
    "agrees: for place in range(result.numel()): ... | for place in range(x.numel()): ... -> (swapped)": "Neither line reads what the other one writes.",
    "agrees: torch.stack(by_difference, 1) -> torch.stack(by_difference, -1)": "The tensor has two dimensions, so 1 and -1 are the same one.",
    "agrees: torch.zeros(result.numel(), dtype=x.dtype) -> torch.zeros(result.numel())": "A direction or a step of lower precision is still one; the text asks for no particular one.",
    "agrees: torch.zeros(x.numel(), dtype=x.dtype) -> torch.zeros(x.numel()) #2": "A direction or a step of lower precision is still one; the text asks for no particular one.",
    "agrees: x.clone().requires_grad_ -> x.detach().requires_grad_": "Nobody writes to the tensor, and what is asked of it is its own gradient.",
    "agrees_on_random_lines: off <= 1e-06 * (1 + slope.abs().max()) -> off < 1e-06 * (1 + slope.abs().max())": "The text leaves open how near is near, within one percent.",
    "agrees_on_random_lines: ...randn(result.shape, dtype=x.dtype, generator=generator) -> ...randn(result.shape, generator=generator)": "A direction or a step of lower precision is still one; the text asks for no particular one.",
    "agrees_on_random_lines: ...shape, dtype=x.dtype, generator=generator) -> ...shape, dtype=x.dtype)": "A direction or a step of lower precision is still one; the text asks for no particular one.",
    "agrees_on_random_lines: 1 + slope.abs().max() -> 2 + slope.abs().max()": "The text leaves open how near is near, within one percent.",
    "agrees_on_random_lines: def agrees_on_random_lines(function, x, step=1e-05): ... -> def agrees_on_random_lines(function, x, step=-1e-05): ...": "Other directions, as many or more, or the same difference the other way around: the text asks for no particular ones.",
    "agrees_on_random_lines: for _ in range(8): ... -> for _ in range(9): ...": "Other directions, as many or more, or the same difference the other way around: the text asks for no particular ones.",
    "agrees_on_random_lines: result.backward(g) -> result.backward(g, create_graph=True)": "The graph goes with its result. The task asks nothing of the memory between.",
    "agrees_on_random_lines: result.backward(g) -> result.backward(g, retain_graph=True)": "The graph goes with its result. The task asks nothing of the memory between.",
    "agrees_on_random_lines: slope = (function(x + step * line) - function(x - step * line)) / (2 * step) | leaf = x.clone().requires_grad_() -> (swapped)": "Neither line reads what the other one writes.",
    "agrees_on_random_lines: slope.abs().max -> slope.abs().min": "The text leaves open how near is near, within one percent.",
    "agrees_on_random_lines: slope.abs().max -> slope.abs_().max": "The text leaves open how near is near, within one percent.",
    "agrees_on_random_lines: torch.Generator().manual_seed(0) -> torch.Generator().manual_seed(1)": "Other directions, as many or more, or the same difference the other way around: the text asks for no particular ones.",
    "agrees_on_random_lines: torch.randn(x.shape, dtype=x.dtype, generator=generator) -> torch.randn(x.shape, dtype=x.dtype)": "A direction or a step of lower precision is still one; the text asks for no particular one.",
    "agrees_on_random_lines: torch.randn(x.shape, dtype=x.dtype, generator=generator) -> torch.randn(x.shape, generator=generator)": "A direction or a step of lower precision is still one; the text asks for no particular one.",
    "agrees_on_random_lines: x.clone().requires_grad_ -> x.detach().requires_grad_": "Nobody writes to the tensor, and what is asked of it is its own gradient.",
}

GUARDS = {
    "Return True if the backward agrees with what the forward does near `x`": {"kind": WRONG[4]},
    "for each possible incoming gradient": {"verdict": MISCONCEIVED["only the sum"]},
    "The forward gives no NaN; one in the backward is an error": {"verdict": MISCONCEIVED["NaN let through"]},
    "the check does not accept a call of `gradcheck`": {"own": agrees_by_library},
    "`x` requires no gradient, and is afterwards as it was.": {"left alone": agrees_and_leaves_a_gradient},
}


def agrees_with_steps_in_proportion(function, x):
    """Where a number is 0 its step is none, and the quotient NaN."""
    leaf = x.clone().requires_grad_()
    result = function(leaf)
    if not result.dim():
        return usual(function, x)
    for place in range(x.numel()):
        step = torch.zeros(x.numel(), dtype=x.dtype)
        step[place] = 1e-6 * x.reshape(-1)[place]
        slope = (function(x + step.view(x.shape)) - function(x - step.view(x.shape))) / (2 * step[place])
        if slope.isnan().any():
            return False
    return usual(function, x)


WRONG += [agrees_with_steps_in_proportion]


def agrees_by_halves_of_the_library(function, x):
    leaf = x.clone().requires_grad_()
    result = function(leaf)
    (analytical,), *_ = get_analytical_jacobian((leaf,), result)
    (numerical,) = get_numerical_jacobian_wrt_specific_input(lambda it: function(it), 0, (leaf,), (result,), 1e-6)
    return torch.allclose(analytical, numerical, rtol=1e-5, atol=1e-6)


WRONG += [agrees_by_halves_of_the_library]
