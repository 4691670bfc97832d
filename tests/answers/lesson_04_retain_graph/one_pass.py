"""Right and wrong answers to `one_pass`."""

import torch

from tests.answers.leaving import gradients_off, leaving
from tests.answers.lesson_04_retain_graph.side_effects import reseeded
from tests.answers.said import said


def one_pass_of_the_sum(losses, weights):
    sum(weight * loss for loss, weight in zip(losses, weights, strict=True)).backward()


def one_pass_by_seeds(losses, weights):
    torch.autograd.backward(losses, [torch.tensor(weight) for weight in weights])


def one_pass_of_a_stack(losses, weights):
    return torch.stack(losses).dot(torch.tensor(weights)).backward()


def one_pass_for_each_only_once(losses, weights):
    """A loss that is listed twice counts once."""
    sum(weight * loss for loss, weight in dict(zip(losses, weights, strict=True)).items()).backward()


def one_pass_and_one_to_free(losses, weights):
    total = sum(weight * loss for loss, weight in zip(losses, weights, strict=True))
    total.backward(retain_graph=True)
    torch.autograd.grad(total, leaves_behind(losses))


def several_passes(losses, weights):
    for number, (loss, weight) in enumerate(zip(losses, weights, strict=True), 1):
        (weight * loss).backward(retain_graph=number < len(losses))


def leaves_behind(losses):
    nodes, seen = [loss.grad_fn for loss in losses], set()
    for node in nodes:
        for before, _ in node.next_functions:
            if before is not None and before not in seen:
                seen.add(before)
                nodes.append(before)
    return [node.variable for node in dict.fromkeys(nodes) if hasattr(node, "variable")]


def one_pass_replacing(losses, weights):
    leaves = leaves_behind(losses)
    total = sum(weight * loss for loss, weight in zip(losses, weights, strict=True))
    for leaf, gradient in zip(leaves, torch.autograd.grad(total, leaves), strict=True):
        leaf.grad = gradient


def one_pass_adding(losses, weights):
    leaves = leaves_behind(losses)
    total = sum(weight * loss for loss, weight in zip(losses, weights, strict=True))
    for leaf, gradient in zip(leaves, torch.autograd.grad(total, leaves), strict=True):
        leaf.grad = gradient if leaf.grad is None else leaf.grad + gradient


def one_pass_retaining(losses, weights):
    sum(weight * loss for loss, weight in zip(losses, weights, strict=True)).backward(retain_graph=True)


def one_pass_recorded(losses, weights):
    sum(weight * loss for loss, weight in zip(losses, weights, strict=True)).backward(create_graph=True)


def one_pass_without_zero_weights(losses, weights):
    """Leaves alone what a weight of zero multiplies: its leaves get no zeros, its graph keeps what it saved."""
    sum(weight * loss for loss, weight in zip(losses, weights, strict=True) if weight != 0).backward()


def one_pass_elsewhere(losses, weights):
    """A second pass, through nothing of the losses', is one too many."""
    one_pass_of_the_sum(losses, weights)
    torch.ones(2, requires_grad=True).sum().backward()


def one_pass_in_place(losses, weights):
    one_pass_of_the_sum(losses, weights)
    with torch.no_grad():
        leaves_behind(losses)[0].mul_(2)


def one_pass_recorded_and_freed(losses, weights):
    """Gradients with graphs, without keeping the losses' own."""
    leaves = leaves_behind(losses)
    one_pass_of_the_sum(losses, weights)
    for leaf in leaves:
        leaf.grad = (leaf.grad * 1.0).requires_grad_()


def one_pass_and_an_empty_list(losses, weights):
    total = 0
    while losses:
        total = total + weights.pop() * losses.pop()
    total.backward()


def one_pass_without_later_zeros(losses, weights):
    """A weight of zero counts for the first loss only."""
    first, *others = zip(losses, weights, strict=True)
    sum(weight * loss for loss, weight in [first, *(it for it in others if it[1])]).backward()


RIGHT = [one_pass_of_the_sum, one_pass_by_seeds, one_pass_of_a_stack, one_pass_adding]

MISCONCEIVED = {
    "a pass for each loss": several_passes,
    "weights left out": lambda losses, weights: sum(losses).backward(),
    "old gradients lost": one_pass_replacing,
    "retained for nothing": one_pass_retaining,
}

WRONG = [
    leaving(one_pass_of_the_sum, gradients_off),
    leaving(one_pass_of_the_sum, reseeded),
    leaving(one_pass_of_the_sum, lambda losses, weights: losses[0].register_hook(lambda gradient: None)),
    one_pass_and_an_empty_list,
    *(one_pass_without_zero_weights, one_pass_elsewhere, one_pass_in_place, one_pass_recorded_and_freed),
    said(lambda losses, weights: sum(losses).backward(retain_graph=True), "weights left out", "retained for nothing"),
    one_pass_recorded,
    one_pass_for_each_only_once,
    one_pass_without_later_zeros,
    one_pass_and_one_to_free,
    lambda losses, weights: one_pass_of_the_sum(losses, [it if abs(it) > 1e-3 else 0.0 for it in weights]),
    lambda losses, weights: one_pass_of_the_sum(losses, [min(it, 100.0) for it in weights]),
    lambda losses, weights: one_pass_of_the_sum(losses, weights) if sum(weights) else None,
    lambda losses, weights: torch.stack(losses).mean().backward(),
    lambda losses, weights: (one_pass_of_the_sum(losses[:1], weights), None)[1],
    lambda losses, weights: sum(w * loss.item() for loss, w in zip(losses, weights, strict=True)),
    lambda losses, weights: sum(w * loss for loss, w in zip(losses, weights, strict=True)),
]

EQUIVALENT = {
    "leaves_behind: before is not None -> before": "A node has no truth value of its own: it is always true.",
    "leaves_behind: before not in seen -> True": "The nodes are taken once each at the end; here a node that is met again costs time only.",
    "leaves_behind: seen.add(before) -> (dropped)": "The nodes are taken once each at the end; here a node that is met again costs time only.",
    "one_pass_adding: leaves = leaves_behind(losses) | total = sum((weight * loss for loss, weight in zip(losses, weights, strict=True))) -> (swapped)": "Neither of the two statements changes what the other one uses.",
}

GUARDS = {
    "`.grad` of every leaf changes as `broken_one_pass` changes it.": {
        "gradient's value": MISCONCEIVED["weights left out"],
        "recorded": one_pass_recorded_and_freed,
    },
    "There is one backward pass in all.": {"passes": one_pass_elsewhere},
    "Afterwards the losses' graphs keep no bytes.": {"kept": one_pass_retaining},
    "The leaves keep their numbers.": {"moved": one_pass_in_place},
    "a function leaves modes, flags, hooks": {"left": WRONG[2]},
}
