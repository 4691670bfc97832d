"""Right and wrong answers to `jacobian`."""

import torch

from tests.answers.lesson_02_how_backward_works.spoiled import spoiled


def jacobian_by_rows(f, x):
    x = x.detach().requires_grad_()
    y = f(x)
    rows = []
    for seed in torch.eye(y.numel(), dtype=y.dtype):
        (row,) = torch.autograd.grad(y, x, seed.reshape(y.shape), retain_graph=True)
        rows.append(row)
    return torch.stack(rows).reshape(y.shape + x.shape)


def jacobian_batched(f, x):
    x = x.detach().requires_grad_()
    y = f(x)
    seeds = torch.eye(y.numel(), dtype=y.dtype).reshape(y.numel(), *y.shape)
    (rows,) = torch.autograd.grad(y, x, seeds, is_grads_batched=True)
    return rows.reshape(*y.shape, *x.shape)


def forward_for_each_row(f, x):
    x = x.detach().requires_grad_()
    y = f(x)
    rows = [torch.autograd.grad(f(x).reshape(-1)[i], x)[0] for i in range(y.numel())]
    return torch.stack(rows).reshape(y.shape + x.shape)


def rows_in_grad(f, x):
    x.requires_grad_()
    y = f(x)
    rows = []
    for number in y.reshape(-1):
        number.backward(retain_graph=True)
        rows.append(x.grad.clone())
    return torch.stack(rows).reshape(y.shape + x.shape)


def gradient_of_sum(f, x):
    x = x.detach().requires_grad_()
    return torch.autograd.grad(f(x).sum(), x)[0]


def input_first(f, x):
    right = jacobian_by_rows(f, x)
    outputs = right.dim() - x.dim()
    return right.permute(*range(outputs, right.dim()), *range(outputs))


RIGHT = [
    jacobian_by_rows,
    jacobian_batched,
    lambda f, x: torch.func.jacrev(f)(x),
    lambda f, x: torch.autograd.functional.jacobian(f, x),
]

MISCONCEIVED = {
    "the rows are summed": gradient_of_sum,
    "input dimensions first": input_first,
    "f runs for each row": forward_for_each_row,
    "the rows pile up in .grad": rows_in_grad,
}

WRONG = [
    spoiled(jacobian_by_rows, lambda f, x: x.requires_grad_()),
    spoiled(jacobian_by_rows, lambda f, x: x.requires_grad_(False)),
    lambda f, x: jacobian_by_rows(f, x).reshape(-1, x.numel()),
    lambda f, x: torch.func.jacrev(lambda x: f(x).sum(0))(x),
]
