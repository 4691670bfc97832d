"""Right and wrong answers to `accumulate`."""

import torch
from torch.nn.functional import cross_entropy

from tests.answers.lesson_07_gradient_accumulation.side_effects import (
    changing_inputs,
    passing_twice,
    running_once_more,
    seeded,
)
from tests.answers.near import near
from tests.answers.said import said


def accumulate_by_share(model, micro_batches):
    model.zero_grad()
    count = sum(len(targets) for _, targets in micro_batches)
    total = 0.0
    for inputs, targets in micro_batches:
        loss = cross_entropy(model(inputs), targets) * len(targets) / count
        loss.backward()
        total += loss.item()
    return total


def accumulate_sums(model, micro_batches):
    """Sums of losses first, one division of gradients at the end."""
    for parameter in model.parameters():
        parameter.grad = None
    count, total = 0, 0.0
    for inputs, targets in micro_batches:
        loss = cross_entropy(model(inputs), targets, reduction="sum")
        loss.backward()
        count += len(inputs)
        total += loss.item()
    for parameter in model.parameters():
        if parameter.grad is not None:
            parameter.grad.div_(count)
    return total / count


def accumulate_by_forward(model, micro_batches):
    """Calls forward itself, and hands gradients over."""
    model.zero_grad()
    live = {name: p for name, p in model.named_parameters() if p.requires_grad}
    count, total = sum(len(y) for _, y in micro_batches), 0.0
    sums = {}
    for inputs, targets in micro_batches:
        loss = cross_entropy(model.forward(inputs), targets, reduction="sum") / count
        parts = torch.autograd.grad(loss, live.values(), allow_unused=True)
        for name, part in zip(live, parts, strict=True):
            if part is not None:
                sums[name] = sums.get(name, 0) + part
        total += loss.item()
    for name, value in sums.items():
        live[name].grad = value
    return total


def accumulate_where_live(model, micro_batches):
    """Leaves old gradients in parameters that are frozen."""
    live = [(name, p) for name, p in model.named_parameters() if p.requires_grad]
    sums, count, total = [None] * len(live), sum(len(x) for x, _ in micro_batches), 0.0
    for inputs, targets in micro_batches:
        loss = cross_entropy(model(inputs), targets, reduction="sum") / count
        parts = torch.autograd.grad(loss, [p for _, p in live], allow_unused=True)
        sums = [part if old is None else old if part is None else old + part for old, part in zip(sums, parts)]  # noqa: B905
        total += float(loss.detach())
    for (_, parameter), value in zip(live, sums, strict=True):
        parameter.grad = value
    return total


def accumulator(weight, clear=True, counted=None, **options):
    """An accumulation with one thing wrong. `counted` weighs the losses in the result, as `share` does."""

    def accumulate(model, micro_batches):
        if clear:
            model.zero_grad()
        count, total = sum(len(targets) for _, targets in micro_batches), 0.0
        for inputs, targets in micro_batches:
            loss = cross_entropy(model(inputs), targets)
            (loss * weight(len(targets), count, len(micro_batches))).backward(**options)
            total += loss.item() * (counted or share)(len(targets), count, len(micro_batches))
        return total

    return accumulate


def share(size, count, number):
    return size / count


def accumulate_on_what_was_there(model, micro_batches):
    """Clears what will get no gradient, and nothing else."""
    for parameter in (model.first.bias, *model.spare.parameters()):
        parameter.grad = None
    return accumulator(share, clear=False)(model, micro_batches)


def accumulate_in_one_graph(model, micro_batches):
    model.zero_grad()
    count = sum(len(targets) for _, targets in micro_batches)
    loss = sum(cross_entropy(model(x), y, reduction="sum") for x, y in micro_batches) / count
    loss.backward()
    return loss.item()


def accumulate_one_batch(model, micro_batches):
    model.zero_grad()
    inputs, targets = (torch.cat(parts) for parts in zip(*micro_batches, strict=True))
    loss = cross_entropy(model(inputs), targets)
    loss.backward()
    return loss.item()


def accumulate_and_shorten(model, micro_batches):
    total = accumulate_by_share(model, micro_batches)
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1e3)
    return total


def accumulate_clearing_for_several(model, micro_batches):
    return accumulator(share, clear=len(micro_batches) > 1)(model, micro_batches)


def accumulate_one_by_one(model, micro_batches):
    return accumulate_by_share(model, [(x[None], y[None]) for xs, ys in micro_batches for x, y in zip(xs, ys)])  # noqa: B905


def accumulate_and_step(model, micro_batches):
    total = accumulate_by_share(model, micro_batches)
    torch.optim.SGD(model.parameters(), lr=0.1).step()
    return total


def accumulate_with_zeros(model, micro_batches):
    total = accumulate_by_share(model, micro_batches)
    for parameter in model.parameters():
        if parameter.grad is None:
            parameter.grad = torch.zeros_like(parameter)
    return total


def accumulate_thawed(model, micro_batches):
    model.requires_grad_(True)
    return accumulate_by_share(model, micro_batches)


def accumulate_in_eval(model, micro_batches):
    model.eval()
    return accumulate_by_share(model, micro_batches)


def accumulate_filling_zeros(model, micro_batches):
    """Old gradients of parameters that take no part become zeros, not None."""
    model.zero_grad(set_to_none=False)
    return accumulator(share, clear=False)(model, micro_batches)


def accumulate_clearing_what_is_not_zero(model, micro_batches):
    for parameter in model.parameters():
        if parameter.grad is not None and parameter.grad.any():
            parameter.grad = None
    return accumulator(share, clear=False)(model, micro_batches)


def accumulate_clearing_layers(model, micro_batches):
    """Passes over the parameters that are in no layer."""
    for layer in model.children():
        layer.zero_grad()
    return accumulator(share, clear=False)(model, micro_batches)


def accumulate_without_zeros(model, micro_batches):
    """Takes a gradient of zero for none."""
    total = accumulate_by_share(model, micro_batches)
    for parameter in model.parameters():
        if parameter.grad is not None and not parameter.grad.any():
            parameter.grad = None
    return total


def accumulate_in_single(model, micro_batches):
    total = accumulate_by_share(model, micro_batches)
    for parameter in model.parameters():
        if parameter.grad is not None:
            parameter.grad = parameter.grad.float().to(parameter.dtype)
    return total


def accumulate_clearing_the_near(model, micro_batches):
    """Clears the model's own parameters and those of its direct children."""
    for parameter in near(model).values():
        parameter.grad = None
    return accumulator(share, clear=False)(model, micro_batches)


def accumulate_from_the_end(model, micro_batches):
    """Nobody asks for an order of the runs."""
    return accumulate_by_share(model, micro_batches[::-1])


RIGHT = [accumulate_by_share, accumulate_sums, accumulate_by_forward, accumulate_from_the_end]

MISCONCEIVED = {
    "all micro-batches alike": accumulator(lambda size, count, number: 1 / number),
    "a sum of means": accumulator(lambda size, count, number: 1),
    "a sum over samples": accumulator(lambda size, count, number: size),
    "a loss that is a mean of means": accumulator(share, counted=lambda size, count, number: 1 / number),
    "old gradients": accumulator(share, clear=False),
    "one large graph": accumulate_in_one_graph,
}

ONE_SLIP = {
    "others": accumulate_with_zeros,
    "number": lambda model, micro_batches: str(accumulate_by_share(model, micro_batches)),
    "parameters": accumulate_and_step,
    "forwards": running_once_more(accumulate_by_share),
    "passes": passing_twice(accumulate_by_share),
    "held": accumulator(share, retain_graph=True),
    "inputs": changing_inputs(accumulate_by_share),
    "flags": seeded(accumulate_by_share),
}

WRONG = [
    accumulate_clearing_the_near,
    said(accumulate_on_what_was_there, "old gradients"),
    *ONE_SLIP.values(),
    accumulate_one_batch,
    accumulate_one_by_one,
    accumulate_and_shorten,
    said(accumulate_clearing_for_several, "old gradients"),
    accumulate_filling_zeros,
    *(accumulate_clearing_what_is_not_zero, accumulate_clearing_layers, accumulate_without_zeros, accumulate_in_single),
    accumulate_where_live,
    accumulate_thawed,
    accumulate_in_eval,
    lambda model, micro_batches: (accumulate_by_share(model, micro_batches), accumulate_one_batch)[0] * 1.001,
    lambda model, micro_batches: accumulate_by_share(model, micro_batches[:-1]),
]

EQUIVALENT = {
    "accumulate_from_the_end: micro_batches[::-1] -> micro_batches[::1]": "The order of the runs is free.",
    "accumulate_from_the_end: micro_batches[::-1] -> micro_batches[::--1]": "The order of the runs is free.",
    "accumulate_by_share: total += loss.item() -> total = total + loss.item()": "A number is not changed in place: both make a new one.",
    "accumulate_by_share: loss.backward() | total += loss.item() -> (swapped)": "Neither statement reads what the other writes.",
    "accumulate_by_share: model.zero_grad() | count = sum((len(targets) for _, targets in micro_batches)) -> (swapped)": "Neither statement reads what the other writes.",
    "accumulate_sums: count += len(inputs) -> count = count + len(inputs)": "A number is not changed in place: both make a new one.",
    "accumulate_sums: total += loss.item() -> total = total + loss.item()": "A number is not changed in place: both make a new one.",
    "accumulate_sums: loss.backward() | count += len(inputs) -> (swapped)": "Neither statement reads what the other writes.",
    "accumulate_sums: count += len(inputs) | total += loss.item() -> (swapped)": "Neither statement reads what the other writes.",
    "accumulate_by_forward: total += loss.item() -> total = total + loss.item()": "A number is not changed in place: both make a new one.",
    "accumulate_by_forward: for name, part in zip(live, parts, strict=True): ... | total += loss.item() -> (swapped)": "Neither statement reads what the other writes.",
    "accumulate_by_forward: model.zero_grad() | live = {name: p for name, p in model.named_parameters() if p.requires_grad} -> (swapped)": "Neither statement reads what the other writes.",
    "accumulate_by_forward: live = {name: p for name, p in model.named_parameters() if p.requires_grad} | count, total = (sum((len(y) for _, y in mi... -> (swapped)": "Neither statement reads what the other writes.",
}

GUARDS = {
    "the mean of `cross_entropy` over all samples of all micro-batches": {
        "value": MISCONCEIVED["all micro-batches alike"]
    },
    "returns that loss as a Python float": {"number": ONE_SLIP["number"]},
    "Gradients that were there before do not count.": {"value": accumulate_on_what_was_there},
    "Parameters that are frozen (`requires_grad=False`) or take no part have None": {"others": ONE_SLIP["others"]},
    "Each micro-batch gets one forward and one backward pass": {
        "forwards": ONE_SLIP["forwards"],
        "passes": ONE_SLIP["passes"],
    },
    "what its graph saved is freed before the next one begins": {"held": ONE_SLIP["held"]},
    "The parameters keep their values, modes and flags stay.": {
        "parameters": ONE_SLIP["parameters"],
        "flags": ONE_SLIP["flags"],
        "inputs": ONE_SLIP["inputs"],
    },
}
