"""Right and wrong answers to `vjp_matmul`."""

import torch

from tests.answers.lesson_02_how_backward_works.pairs import (
    clear,
    in_double,
    in_single,
    remembering,
    spoiling_after,
    vjp_by_autograd,
    vjp_by_differences,
    without_grad,
)
from tests.answers.lesson_02_how_backward_works.spoiled import spoiled
from tests.answers.magnitudes import clipping_results, dropping_small


def matmul_by_einsum(a, b, v):
    return torch.einsum("ij,lj->il", v, b), torch.einsum("il,ij->lj", a, v)


def matmul_by_formula(a, b, v):
    return v @ b.T, a.T @ v


def zeros_for_no_gradient(a, b, v):
    for given in (a, b, v):
        if given.requires_grad and given.grad is None:
            given.grad = torch.zeros_like(given)


def averaging(dim):
    """Takes a column or a row for one number: wrong where m or n alone is 1."""

    def answer(a, b, v):
        if v.shape[dim] == 1 and v.numel() > 1:
            v = v.mean().expand_as(v)
        return matmul_by_formula(a, b, v)

    return answer


def number_for_one_entry(a, b, v):
    """Returns numbers of no dimension where all matrices have one entry."""
    found = matmul_by_formula(a, b, v)
    return [gradient.sum() for gradient in found] if a.numel() == b.numel() == 1 else found


RIGHT = [matmul_by_formula, matmul_by_einsum, vjp_by_autograd(torch.matmul)]

MISCONCEIVED = {
    "transposed": lambda a, b, v: (b @ v.T, v.T @ a),
    "gradients swapped": lambda a, b, v: (a.T @ v, v @ b.T),
    "v is ignored": lambda a, b, v: (torch.ones_like(v) @ b.T, a.T @ torch.ones_like(v)),
}

WRONG = [
    spoiled(lambda a, b, v: (v @ b.T, a.T @ v), lambda a, b, v: a.requires_grad_()),
    lambda a, b, v: (v @ b, a @ v),
    lambda a, b, v: (v @ b.T, v.T @ a),
    remembering(matmul_by_formula),
    spoiling_after(matmul_by_formula, without_grad),
    spoiling_after(matmul_by_formula, clear),
    spoiling_after(matmul_by_formula, zeros_for_no_gradient),
    in_single(matmul_by_formula),
    in_double(matmul_by_formula),
    spoiled(matmul_by_formula, lambda a, b, v: v.data.mul_(2)),
    averaging(0),
    averaging(1),
    *(clipping_results(matmul_by_formula), dropping_small(matmul_by_formula)),
    spoiled(matmul_by_formula, lambda a, b, v: v.requires_grad_(False)),
    number_for_one_entry,
    spoiled(matmul_by_formula, lambda a, b, v: v.t_()),
    lambda a, b, v: [g.squeeze() for g in matmul_by_formula(a, b, v)],
    lambda a, b, v: matmul_by_formula(a, b, v)[0],
]

STILL_RIGHT = {"detached"}

GUARDS = {
    "the gradients of `((a @ b) * v).sum()` with respect to `a` and to `b`": {"type": WRONG[-1]},
    "each in the shape and dtype of its input": {"shape": WRONG[-2], "dtype": WRONG[8]},
    "as precisely as the dtype allows": {"value": WRONG[7]},
    "Leave the inputs alone:": {"input": WRONG[9]},
    "their `.grad`": {"grad": WRONG[5]},
    "whether they require grad": {"requires_grad": WRONG[4]},
}


WRONG += [vjp_by_differences(torch.matmul)]
