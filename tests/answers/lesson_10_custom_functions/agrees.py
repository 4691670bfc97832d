"""Right and wrong answers to `agrees`."""

import torch

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


def agrees_on_random_lines(function, x, step=1e-5):
    generator = torch.Generator().manual_seed(0)
    for _ in range(8):
        line = torch.randn(x.shape, dtype=x.dtype, generator=generator)
        slope = (function(x + step * line) - function(x - step * line)) / (2 * step)
        leaf = x.clone().requires_grad_()
        result = function(leaf)
        g = torch.randn(result.shape, dtype=x.dtype, generator=generator)
        result.backward(g)
        if leaf.grad is None or abs((leaf.grad * line).sum() - (g * slope).sum()) > 1e-6 * (1 + slope.abs().max()):
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
        if abs(slope - gradient.reshape(-1)[place]) > 1e-5 * (1 + abs(slope)):
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
        if abs(total - (g * slope).sum()) > 1e-5 * (1 + slope.abs().max()):
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
    said = agrees(function, x)
    x.requires_grad_()
    return said


RIGHT = [agrees, agrees_on_random_lines]

MISCONCEIVED = {
    "only the sum": agrees_on_the_sum,
    "all numbers at once": agrees_all_at_once,
    "a coarse difference": agrees_coarsely(step=1e-2),
    "too tolerant": agrees_coarsely(rtol=0.1),
}

WRONG = [
    agrees_by_library,
    agrees_and_leaves_a_gradient,
    lambda function, x: True,
    lambda function, x: False,
    lambda function, x: "right",
    lambda function, x: 1,
    agrees_coarsely(step=1e-3, one_sided=True),
    agrees_coarsely(step=1e-13),
    said(agrees_coarsely(rtol=0, atol=1e-3), "too tolerant"),
    agrees_coarsely(rtol=10, atol=10),
    gradients_off_after(agrees),
]
