"""Right and wrong answers to `jacobian`."""

import torch

from tests.answers.lesson_02_how_backward_works.spoiled import spoiled
from tests.answers.magnitudes import clipping_results, dropping_small
from tests.answers.said import said


def jacobian_by_rows(f, x):
    x = x.detach().requires_grad_()
    y = f(x)
    rows = []
    for seed in torch.eye(y.numel()):
        (row,) = torch.autograd.grad(y, x, seed.reshape(y.shape), retain_graph=True)
        rows.append(row)
    return torch.stack(rows).reshape(y.shape + x.shape)


def jacobian_batched(f, x):
    y, pull_back = torch.func.vjp(f, x)
    seeds = torch.eye(y.numel()).reshape(y.numel(), *y.shape)
    (rows,) = torch.vmap(pull_back)(seeds)
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


def clearing(f, x):
    right = jacobian_by_rows(f, x)
    x.grad = None
    return right


def remembering(f, x, known={}):  # noqa: B006
    return known.setdefault((f, x.shape), jacobian_by_rows(f, x))


def remembering_objects(f, x, known={}):  # noqa: B006
    return known.setdefault((f, x), jacobian_by_rows(f, x))


def without_ones_of_the_output(f, x):
    right = jacobian_by_rows(f, x)
    outputs = right.shape[: right.dim() - x.dim()]
    return right.reshape(*(size for size in outputs if size > 1), *x.shape)


def a_row_for_one_number(f, x):
    right = jacobian_by_rows(f, x)
    return right.reshape(x.shape) if right.numel() == x.numel() else right


def without_ones_of_the_input(f, x):
    right = jacobian_by_rows(f, x)
    return right.reshape(*right.shape[: right.dim() - x.dim()], *(size for size in x.shape if size > 1))


def remembering_functions(f, x, known={}):  # noqa: B006
    """Does not run f again."""
    if f not in known:
        known[f] = jacobian_by_rows(f, x)
    return known[f]


def moving(f, x):
    right = jacobian_by_rows(f, x)
    x.data.add_(1)
    return right


RIGHT = [
    jacobian_by_rows,
    jacobian_batched,
    lambda f, x: torch.func.jacrev(f)(x),
    lambda f, x: torch.autograd.functional.jacobian(f, x),
    lambda f, x: torch.func.jacfwd(f)(x),
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
    clearing,
    remembering,
    remembering_objects,
    moving,
    lambda f, x: jacobian_by_rows(f, x).double(),
    lambda f, x: jacobian_by_rows(f, x).tolist(),
    lambda f, x: 2 * jacobian_by_rows(f, x),
    without_ones_of_the_output,
    without_ones_of_the_input,
    *(clipping_results(jacobian_by_rows), dropping_small(jacobian_by_rows)),
    a_row_for_one_number,
    remembering_functions,
]

EQUIVALENT = {
    "jacobian_by_rows: x.detach().requires_grad_ -> x.clone().requires_grad_": "x is left alone by either, and the result is the same.",
    "jacobian_by_rows: ...), retain_graph=True) -> ...), retain_graph=True, create_graph=True)": '"The result may have a graph or none."',
}

GUARDS = {
    "Return the Jacobian of `f` at `x`": {"value": WRONG[10], "type": WRONG[9]},
    "a tensor of shape `f(x).shape + x.shape`, in the dtype of `f(x)`": {"shape": WRONG[2], "dtype": WRONG[8]},
    "Run `f` forward once.": {"forward": forward_for_each_row},
    "Leave `x` alone: its numbers, its `.grad`, and whether it requires grad.": {
        "input": moving,
        "requires_grad": WRONG[0],
        "grad": clearing,
    },
    "with one `f` at several points": {"value": remembering},
}


def jacobian_clearing_grad(f, x):
    """Collects nothing in .grad, and clears it."""
    found = RIGHT[0](f, x)
    if x.grad is not None:
        x.grad.zero_()
    return found


WRONG += [said(jacobian_clearing_grad, "the rows pile up in .grad")]


def jacobian_of_the_first_point(f, x):
    """Remembers what it found for an f."""
    return _found.setdefault((f, x.shape, x.dtype), jacobian_by_rows(f, x))


_found = {}

WRONG += [jacobian_of_the_first_point]


def rows_of_ones(f, x):
    x = x.detach().requires_grad_()
    y = f(x)
    rows = [torch.autograd.grad(y, x, torch.ones_like(y), retain_graph=True)[0] for _ in range(y.numel())]
    return torch.stack(rows).reshape(y.shape + x.shape)


MISCONCEIVED["each row is the sum"] = rows_of_ones


def jacobian_with_one_vector(f, x):
    """Moves the 1 within one vector, which may be a row already."""
    x = x.detach().clone().requires_grad_()
    with torch.enable_grad():
        y = f(x)
    vector, rows = torch.zeros_like(y).reshape(-1), []
    for place in range(y.numel()):
        vector.zero_()[place] = 1
        rows += torch.autograd.grad(y, x, vector.view(y.shape), retain_graph=True)
    return torch.stack(rows).reshape(y.shape + x.shape)


MISCONCEIVED["a vector written again"] = jacobian_with_one_vector
