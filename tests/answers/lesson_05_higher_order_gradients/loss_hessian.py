"""Right and wrong answers to `loss_hessian`."""

import torch

from tests.answers.leaving import gradients_off, leaving
from tests.answers.lesson_05_higher_order_gradients.side_effects import hook_on
from tests.answers.magnitudes import clipping_results, dropping_small
from tests.answers.said import said


def flat(parts):
    return torch.cat([part.reshape(-1) for part in parts])


def joined_gradient(loss, parameters):
    return flat(torch.autograd.grad(loss, parameters, create_graph=True, materialize_grads=True))


def hessian_by_rows(loss, parameters):
    joined = joined_gradient(loss, parameters)
    if not joined.requires_grad:
        return joined.new_zeros(len(joined), len(joined))
    rows = []
    for number in joined:
        parts = torch.autograd.grad(number, parameters, retain_graph=True, materialize_grads=True)
        rows.append(flat(parts))
    return torch.stack(rows)


def hessian_straight_forgotten(loss, parameters):
    """Raises where no gradient has a graph."""
    gradients = torch.autograd.grad(loss, parameters, create_graph=True, materialize_grads=True)
    joined = torch.cat([gradient.reshape(-1) for gradient in gradients])
    rows = []
    for number in joined:
        parts = torch.autograd.grad(number, parameters, retain_graph=True, materialize_grads=True)
        rows.append(torch.cat([part.reshape(-1) for part in parts]))
    return torch.stack(rows)


def hessian_batched(loss, parameters):
    joined = joined_gradient(loss, parameters)
    seeds = torch.eye(len(joined), dtype=joined.dtype)
    if not joined.requires_grad:
        return torch.zeros_like(seeds)
    parts = torch.autograd.grad(joined, parameters, seeds, is_grads_batched=True, allow_unused=True)
    filled = [
        torch.zeros(len(joined), p.numel()) if part is None else part.reshape(len(joined), -1)
        for p, part in zip(parameters, parts, strict=True)
    ]
    return torch.cat(filled, dim=1)


def hessian_by_seeds(loss, parameters):
    joined = joined_gradient(loss, parameters)
    seeds = torch.eye(len(joined), dtype=joined.dtype)
    if not joined.requires_grad:
        return torch.zeros_like(seeds)
    options = {"retain_graph": True, "materialize_grads": True}
    return torch.stack([flat(torch.autograd.grad(joined, parameters, seed, **options)) for seed in seeds])


def hessian_diagonal_blocks(loss, parameters):
    gradients = torch.autograd.grad(loss, parameters, create_graph=True, materialize_grads=True)
    blocks = []
    for parameter, gradient in zip(parameters, gradients, strict=True):
        rows = []
        for element in gradient.reshape(-1):
            if element.requires_grad:
                row = torch.autograd.grad(element, parameter, retain_graph=True, materialize_grads=True)[0]
                rows.append(row.reshape(-1))
            else:
                rows.append(torch.zeros(parameter.numel(), dtype=parameter.dtype))
        blocks.append(torch.stack(rows))
    return torch.block_diag(*blocks)


def hessian_outer(loss, parameters):
    gradients = torch.autograd.grad(loss, parameters, materialize_grads=True)
    joined = torch.cat([gradient.reshape(-1) for gradient in gradients])
    return torch.outer(joined, joined)


def hessian_of_sums(loss, parameters):
    gradients = torch.autograd.grad(loss, parameters, create_graph=True, materialize_grads=True)
    total = sum(gradient.sum() for gradient in gradients)
    if not total.requires_grad:
        return torch.zeros(sum(p.numel() for p in parameters)).double().diag()
    parts = torch.autograd.grad(total, parameters, materialize_grads=True)
    return torch.cat([part.reshape(-1) for part in parts]).diag()


def hessian_unguarded(loss, parameters):
    gradients = torch.autograd.grad(loss, parameters, create_graph=True)
    joined = torch.cat([gradient.reshape(-1) for gradient in gradients])
    rows = [torch.autograd.grad(number, parameters, retain_graph=True) for number in joined]
    return torch.stack([torch.cat([part.reshape(-1) for part in parts]) for parts in rows])


def hessian_leaves_gradients(loss, parameters):
    result = hessian_by_rows(loss, parameters)
    for parameter in parameters:
        parameter.grad = None
    return result


def hessian_recorded(loss, parameters):
    gradients = torch.autograd.grad(loss, parameters, create_graph=True, materialize_grads=True)
    joined = torch.cat([gradient.reshape(-1) for gradient in gradients])
    rows = []
    for number in joined:
        parts = torch.autograd.grad(number, parameters, create_graph=True, materialize_grads=True)
        rows.append(torch.cat([part.reshape(-1) for part in parts]))
    return torch.stack(rows)


def hessian_one_pass_an_entry(loss, parameters):
    """A pass for each entry: it asks for one parameter at a time, and keeps one number of what comes."""
    joined = joined_gradient(loss, parameters)
    if not joined.requires_grad:
        return joined.new_zeros(len(joined), len(joined))
    options = {"retain_graph": True, "materialize_grads": True}
    rows = [[torch.autograd.grad(number, p, **options)[0].reshape(-1) for p in parameters] for number in joined]
    return torch.stack([torch.cat(row) for row in rows])


def hessian_transposed_parts(loss, parameters):
    """Flattens matrices column by column."""
    gradients = torch.autograd.grad(loss, parameters, create_graph=True, materialize_grads=True)
    joined = torch.cat(
        [gradient.T.reshape(-1) if gradient.dim() == 2 else gradient.reshape(-1) for gradient in gradients]
    )
    rows = []
    for number in joined:
        parts = torch.autograd.grad(number, parameters, retain_graph=True, materialize_grads=True)
        rows.append(torch.cat([part.T.reshape(-1) if part.dim() == 2 else part.reshape(-1) for part in parts]))
    return torch.stack(rows)


def hessian_where_it_slopes(loss, parameters):
    """Rows of zeros for each number whose gradient is zero."""
    gradient = torch.autograd.grad(loss, parameters, retain_graph=True, materialize_grads=True)
    slopes = torch.cat([part.reshape(-1) for part in gradient]) != 0
    return hessian_by_rows(loss, parameters) * slopes[:, None]


RIGHT = [hessian_by_rows, hessian_batched, hessian_by_seeds]

MISCONCEIVED = {
    "blocks on the diagonal only": hessian_diagonal_blocks,
    "the diagonal alone": lambda loss, parameters: hessian_by_rows(loss, parameters).diag().diag(),
    "gradients multiplied": hessian_outer,
    "row sums on the diagonal": hessian_of_sums,
}


def hessian_without_mixed(loss, parameters):
    """Takes a parameter in which the loss is linear for one that has no second derivatives at all."""
    rows = []
    gradients = torch.autograd.grad(loss, parameters, create_graph=True, materialize_grads=True)
    for place, gradient in enumerate(gradients):
        for entry in gradient.reshape(-1):
            row = [None] * len(parameters)
            if entry.requires_grad:
                row = torch.autograd.grad(entry, parameters, retain_graph=True, allow_unused=True)
            if row[place] is None:
                row = [None] * len(parameters)
            rows.append(flat(torch.zeros_like(p) if r is None else r for p, r in zip(parameters, row, strict=True)))
    return torch.stack(rows).detach()


def hessian_of_columns(loss, parameters):
    """Flattens a matrix that is as wide as high column by column."""
    places, at = [], 0
    for p in parameters:
        own = torch.arange(at, at + p.numel()).reshape(p.shape)
        places.append((own.T if p.dim() == 2 and len(p) == p.shape[1] else own).reshape(-1))
        at += p.numel()
    order = torch.cat(places)
    return hessian_by_rows(loss, parameters)[order][:, order]


WRONG = [
    said(hessian_without_mixed, "blocks on the diagonal only"),
    hessian_unguarded,
    hessian_straight_forgotten,
    hessian_clearing := leaving(hessian_by_rows, lambda loss, parameters: parameters.clear()),
    hessian_in_single := lambda loss, parameters: hessian_by_rows(loss, parameters).float(),
    hessian_off := leaving(hessian_by_rows, gradients_off),
    leaving(hessian_by_rows, lambda loss, parameters: hook_on(loss)),
    leaving(hessian_by_rows, lambda loss, parameters: hook_on(parameters[0])),
    hessian_leaves_gradients,
    hessian_recorded,
    hessian_one_pass_an_entry,
    hessian_transposed_parts,
    lambda loss, parameters: hessian_by_rows(loss, parameters[::-1]),
    lambda loss, parameters: hessian_by_rows(loss, parameters).triu(),
    lambda loss, parameters: list(hessian_by_rows(loss, parameters)),
    lambda loss, parameters: hessian_by_rows(loss, parameters[:1]),
    lambda loss, parameters: hessian_by_rows(loss, [p for p in parameters if p.numel() > 2]),
    hessian_live := lambda loss, parameters: hessian_by_rows(loss, parameters).requires_grad_(),
    lambda loss, parameters: hessian_by_rows(loss, parameters).to(parameters[0].dtype),
    hessian_where_it_slopes,
    *(clipping_results(hessian_by_rows), dropping_small(hessian_by_rows, 1e-8)),
    hessian_of_columns,
    lambda loss, parameters: hessian_by_rows(loss, parameters).squeeze(),
    hessian_doubled := lambda loss, parameters: hessian_by_rows(loss, parameters).double(),
]

EQUIVALENT = {
    "joined_gradient: ...terialize_grads=True) -> ...terialize_grads=True, retain_graph=True)": "Recording a pass keeps its graph as well.",
    "hessian_batched: ...e, allow_unused=True) -> ...e, allow_unused=True, retain_graph=True)": '"The loss is not used again."',
    "hessian_batched: torch.cat(filled, dim=1) -> torch.cat(filled, dim=-1)": "The tensors have two dimensions.",
}

GUARDS = {
    "It returns one matrix of second derivatives.": {"value": MISCONCEIVED["gradients multiplied"]},
    "At most one backward pass for the gradient and one for each of its numbers may run.": {
        "passes": hessian_one_pass_an_entry
    },
    "The parameters stay as they were, and so does the list.": {
        "untouched": hessian_leaves_gradients,
        "list": hessian_clearing,
    },
    "The result has no graph": {"recorded": hessian_live},
    "the dtype of the loss": {"dtype": hessian_doubled},
    "And recording stays switched on.": {"left": hessian_off},
}
