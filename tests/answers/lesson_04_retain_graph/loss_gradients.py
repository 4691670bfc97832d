"""Right and wrong answers to `loss_gradients`."""

import torch

from tests.answers.leaving import gradients_off, leaving
from tests.answers.magnitudes import clipping_results, dropping_small
from tests.answers.said import said


def gradients_by_grad(losses, parameters):
    last = len(losses) - 1
    return [torch.autograd.grad(loss, parameters, retain_graph=n < last) for n, loss in enumerate(losses)]


def gradients_from_the_end(losses, parameters):
    rows = {}
    for n in reversed(range(len(losses))):
        rows[n] = list(torch.autograd.grad(losses[n], parameters, retain_graph=n > 0))
    return [rows[n] for n in range(len(losses))]


def gradients_by_backward(losses, parameters):
    before = [parameter.grad for parameter in parameters]
    rows = []
    for n, loss in enumerate(losses, 1):
        for parameter in parameters:
            parameter.grad = None
        loss.backward(retain_graph=n < len(losses), inputs=parameters)
        rows.append([parameter.grad for parameter in parameters])
    for parameter, gradient in zip(parameters, before, strict=True):
        parameter.grad = gradient
    return rows


def gradients_in_a_batch(losses, parameters):
    stacked, seeds = torch.stack(losses), torch.eye(len(losses))
    found = torch.autograd.grad(stacked, parameters, seeds, is_grads_batched=True)
    return [[gradient[n].clone() for gradient in found] for n in range(len(losses))]


def gradients_by_seeds(losses, parameters):
    """One tensor of all losses, and a seed that picks one of them."""
    stacked, last = torch.stack(losses), len(losses) - 1
    seeds = torch.eye(len(losses))
    return tuple(torch.autograd.grad(stacked, parameters, seed, retain_graph=n < last) for n, seed in enumerate(seeds))


def gradients_that_require_one(losses, parameters):
    return [[row.requires_grad_() for row in rows] for rows in gradients_by_grad(losses, parameters)]


def gradients_recorded_but_the_last(losses, parameters):
    last = len(losses) - 1
    return [torch.autograd.grad(loss, parameters, create_graph=n < last) for n, loss in enumerate(losses)]


def gradients_always_retained(losses, parameters):
    return [torch.autograd.grad(loss, parameters, retain_graph=True) for loss in losses]


def gradients_recorded(losses, parameters):
    return [torch.autograd.grad(loss, parameters, create_graph=True) for loss in losses]


def gradients_added_up(losses, parameters):
    rows, kept = [], [(p, p.grad) for p in parameters]
    for parameter in parameters:
        parameter.grad = None
    for n, loss in enumerate(losses, 1):
        loss.backward(retain_graph=n < len(losses), inputs=parameters)
        rows.append([parameter.grad.clone() for parameter in parameters])
    for parameter, gradient in kept:
        parameter.grad = gradient
    return rows


def gradients_left_behind(losses, parameters):
    rows = []
    for n, loss in enumerate(losses, 1):
        for parameter in parameters:
            parameter.grad = None
        loss.backward(retain_graph=n < len(losses), inputs=parameters)
        rows.append([parameter.grad.clone() for parameter in parameters])
    return rows


def gradients_never_retained(losses, parameters):
    return [torch.autograd.grad(loss, parameters) for loss in losses]


def gradients_of_the_sum(losses, parameters):
    rows = torch.autograd.grad(sum(losses), parameters)
    return [rows for _ in losses]


def gradients_added_to_what_was_there(losses, parameters):
    rows = []
    for n, loss in enumerate(losses, 1):
        loss.backward(retain_graph=n < len(losses))
        rows.append([parameter.grad.clone() for parameter in parameters])
    return rows


def gradients_of_one_name(losses, parameters):
    """.grad itself, without a clone."""
    rows = []
    for n, loss in enumerate(losses, 1):
        loss.backward(retain_graph=n < len(losses))
        rows.append([parameter.grad for parameter in parameters])
    return rows


def gradients_through_all(losses, parameters):
    """Touches .grad of the heads."""
    before = [parameter.grad for parameter in parameters]
    rows = []
    for n, loss in enumerate(losses, 1):
        for parameter in parameters:
            parameter.grad = None
        loss.backward(retain_graph=n < len(losses))
        rows.append([parameter.grad for parameter in parameters])
    for parameter, gradient in zip(parameters, before, strict=True):
        parameter.grad = gradient
    return rows


def gradients_by_a_spare_pass(losses, parameters):
    rows = gradients_always_retained(losses, parameters)
    torch.autograd.grad(sum(losses), parameters)  # only to free
    return rows


def gradients_retained_by_value(losses, parameters):
    last = losses[-1].item()
    return [torch.autograd.grad(loss, parameters, retain_graph=loss.item() != last) for loss in losses]


def gradients_for_each_parameter(losses, parameters):
    """A pass for each gradient; the last of all frees, and goes through a part of the trunk only."""
    rows = [[None] * len(parameters) for _ in losses]
    for n, loss in enumerate(losses, 1):
        for place, parameter in enumerate(parameters, 1):
            more = n < len(losses) or place < len(parameters)
            (rows[n - 1][place - 1],) = torch.autograd.grad(loss, parameter, retain_graph=more)
    return rows


RIGHT = [
    gradients_by_grad,
    gradients_from_the_end,
    gradients_by_backward,
    gradients_in_a_batch,
    gradients_by_seeds,
]

MISCONCEIVED = {
    "retained to the end": gradients_always_retained,
    "added up": gradients_added_up,
    "the same for every loss": gradients_of_the_sum,
    "traces in .grad": gradients_left_behind,
    "create_graph to keep the graph": gradients_recorded,
}

WRONG = [
    leaving(gradients_by_grad, gradients_off),
    leaving(gradients_by_grad, lambda losses, parameters: parameters[0].requires_grad_(False)),
    leaving(gradients_by_grad, lambda losses, parameters: parameters[0].register_hook(lambda gradient: None)),
    gradients_that_require_one,
    gradients_recorded_but_the_last,
    gradients_never_retained,
    gradients_retained_by_value,
    said(gradients_added_to_what_was_there, "added up"),
    said(gradients_of_one_name, "the same for every loss"),
    said(gradients_through_all, "traces in .grad"),
    gradients_by_a_spare_pass,
    gradients_for_each_parameter,
    *(clipping_results(gradients_by_grad), dropping_small(gradients_by_grad)),
    lambda losses, parameters: gradients_by_grad(losses, parameters)[::-1],
    lambda losses, parameters: list(zip(*gradients_by_grad(losses, parameters), strict=True)),
    lambda losses, parameters: [torch.cat([g.flatten() for g in r]) for r in gradients_by_grad(losses, parameters)],
    leaving(gradients_by_grad, lambda losses, parameters: parameters[0].data.mul_(2)),
]

EQUIVALENT = {
    "gradients_in_a_batch: gradient[n].clone() -> gradient[n]": "What it is copied from is not written to afterwards, so a copy and the thing itself serve alike.",
    "gradients_in_a_batch: gradient[n].clone -> gradient[n].detach": "What it is copied from is not written to afterwards, so a copy and the thing itself serve alike.",
    "gradients_by_seeds: stacked, last = (torch.stack(losses), len(losses) - 1) | seeds = torch.eye(len(losses)) -> (swapped)": "Neither of the two statements changes what the other one uses.",
}

GUARDS = {
    "It returns a list with one entry for each loss": {"list": WRONG[-3]},
    "that loss's gradients, in the order of `parameters`, as a list or tuple": {
        "gradient's value": gradients_of_the_sum,
        "row": WRONG[-2],
    },
    "The gradients that you return have no graph": {"recorded": gradients_that_require_one},
    "the parameters keep their numbers": {"moved": WRONG[-1]},
    "at most one pass for each loss": {"passes": gradients_by_a_spare_pass},
    "When your function is done, the trunk keeps no bytes.": {"kept": gradients_always_retained},
    "`.grad` of all parameters, the heads' included, is as before, and the parameters keep their numbers.": {
        "held": gradients_through_all
    },
    "a function leaves modes, flags, hooks": {"left": WRONG[2]},
}


def gradients_of_sums_taken_apart(losses, parameters):
    """Takes the gradients of each running sum, less those of the one before: small ones lose their digits."""
    total, before, found = 0, [0 for _ in parameters], []
    for number, loss in enumerate(losses, 1):
        total = total + loss
        now = torch.autograd.grad(total, parameters, retain_graph=number < len(losses))
        found.append([a - b for a, b in zip(now, before, strict=True)])
        before = now
    return found


WRONG += [gradients_of_sums_taken_apart]


def gradients_less_what_was_there(losses, parameters):
    """Keeps the tensors in .grad and puts them back, sums by now."""
    kept, rows = [(parameter, parameter.grad) for parameter in parameters], []
    for number, loss in enumerate(losses, 1):
        old = [0 if parameter.grad is None else parameter.grad.clone() for parameter in parameters]
        loss.backward(retain_graph=number < len(losses), inputs=parameters)
        rows.append([parameter.grad - was for parameter, was in zip(parameters, old, strict=True)])
    for parameter, gradient in kept:
        parameter.grad = gradient
    return rows


MISCONCEIVED["the same tensors put back"] = gradients_less_what_was_there
