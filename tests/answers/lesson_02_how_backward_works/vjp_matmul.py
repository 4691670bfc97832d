"""Right and wrong answers to `vjp_matmul`."""

import torch

from tests.answers.lesson_02_how_backward_works.pairs import vjp_by_autograd
from tests.answers.lesson_02_how_backward_works.spoiled import spoiled


def matmul_by_einsum(a, b, v):
    return torch.einsum("ij,lj->il", v, b), torch.einsum("il,ij->lj", a, v)


RIGHT = [lambda a, b, v: (v @ b.T, a.T @ v), matmul_by_einsum, vjp_by_autograd(torch.matmul)]

MISCONCEIVED = {
    "transposed": lambda a, b, v: (b @ v.T, v.T @ a),
    "gradients swapped": lambda a, b, v: (a.T @ v, v @ b.T),
    "v is ignored": lambda a, b, v: (torch.ones_like(v) @ b.T, a.T @ torch.ones_like(v)),
}

WRONG = [
    spoiled(lambda a, b, v: (v @ b.T, a.T @ v), lambda a, b, v: a.requires_grad_()),
    lambda a, b, v: (v @ b, a @ v),
    lambda a, b, v: (v @ b.T, v.T @ a),
]
