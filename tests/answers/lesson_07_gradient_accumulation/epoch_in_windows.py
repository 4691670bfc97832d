"""Right and wrong answers to `epoch_in_windows`."""

import itertools

import torch
from torch.nn.functional import cross_entropy

from tests.answers.leaving import clipping, zeroing
from tests.answers.lesson_07_gradient_accumulation.side_effects import (
    passing_twice,
    seeded,
    stepping_once_more,
)
from tests.answers.lesson_07_gradient_accumulation.windows import windows_as_one_batch
from tests.answers.near import clearing_near
from tests.answers.said import said


def epoch_by_slices(model, optimizer, batches, every):
    losses, reader = [], iter(batches)
    while window := list(itertools.islice(reader, every)):
        count = sum(len(targets) for _, targets in window)
        optimizer.zero_grad()
        total = 0.0
        for inputs, targets in window:
            loss = cross_entropy(model(inputs), targets, reduction="sum") / count
            loss.backward()
            total += loss.item()
        optimizer.step()
        losses.append(total)
    return losses


def epoch_by_sums(model, optimizer, batches, every):
    """Without reading ahead: sums, and one division at the step."""
    losses, waiting, samples, total = [], 0, 0, 0.0

    def step():
        for parameter in model.parameters():
            if parameter.grad is not None:
                parameter.grad.div_(samples)
        optimizer.step()
        losses.append(total / samples)
        optimizer.zero_grad()

    optimizer.zero_grad()
    for inputs, targets in batches:
        loss = cross_entropy(model(inputs), targets, reduction="sum")
        loss.backward()
        waiting, samples, total = waiting + 1, samples + len(inputs), total + loss.item()
        if waiting == every:
            step()
            waiting, samples, total = 0, 0, 0.0
    if waiting:
        step()
    return losses


def epoch(weight, last=True, extra=False, **options):
    """An epoch with one thing wrong. `weight` gets a micro-batch's size, the window's sizes and `every`."""

    def run(model, optimizer, batches, every):
        losses, reader = [], iter(batches)
        while window := list(itertools.islice(reader, every)):
            sizes = [len(targets) for _, targets in window]
            if len(window) < every and not last:
                break
            optimizer.zero_grad()
            total = 0.0
            for inputs, targets in window:
                loss = cross_entropy(model(inputs), targets)
                (loss * weight(len(targets), sizes, every)).backward(**options)
                total += loss.item() * len(targets) / sum(sizes)
            optimizer.step()
            losses.append(total)
        if extra:
            optimizer.zero_grad(set_to_none=False)
            optimizer.step()
        return losses

    return run


def right_share(size, sizes, every):
    return size / sum(sizes)


def epoch_read_at_once(model, optimizer, batches, every):
    return epoch_by_slices(model, optimizer, list(batches), every)


def epoch_by_a_running_mean(model, optimizer, batches, every):
    """Weights by the samples of the whole epoch so far."""
    losses, seen = [], 0
    for number, (inputs, targets) in enumerate(batches, start=1):
        seen += len(targets)
        loss = cross_entropy(model(inputs), targets) * len(targets) / seen
        loss.backward()
        if number % every == 0:
            optimizer.step()
            optimizer.zero_grad()
            losses.append(loss.item())
    return losses


def epoch_cleared_after_the_step(model, optimizer, batches, every):
    """What was in .grad before counts in the first window."""
    losses, reader = [], iter(batches)
    while window := list(itertools.islice(reader, every)):
        count, total = sum(len(targets) for _, targets in window), 0.0
        for inputs, targets in window:
            loss = cross_entropy(model(inputs), targets, reduction="sum") / count
            loss.backward()
            total += loss.item()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(total)
    return losses


def epoch_cleared_at_the_first(model, optimizer, batches, every):
    """The number of a window's first micro-batch leaves the rest 1, but for windows of one."""
    losses, total, count, number = [], 0.0, 0, 0

    def step():
        for parameter in model.parameters():
            if parameter.grad is not None:
                parameter.grad.div_(count)
        optimizer.step()
        losses.append(total / count)

    optimizer.zero_grad()
    for number, (inputs, targets) in enumerate(batches, start=1):
        if number % every == 1:
            optimizer.zero_grad()
            total, count = 0.0, 0
        loss = cross_entropy(model(inputs), targets, reduction="sum")
        loss.backward()
        total, count = total + loss.item(), count + len(targets)
        if number % every == 0:
            step()
    if number % every:
        step()
    return losses


def epoch_cleared_where_live(model, optimizer, batches, every):
    """A frozen parameter keeps what an earlier pass left in its .grad, and the step uses it."""
    optimizer.zero_grad = lambda: [setattr(p, "grad", None) for p in model.parameters() if p.requires_grad]
    return epoch_by_slices(model, optimizer, batches, every)


def epoch_with_longer_windows(model, optimizer, batches, every):
    """Looks one micro-batch ahead, and puts it on top of the next window."""
    losses, window = [], list(itertools.islice(batches, every))
    while window:
        ahead = list(itertools.islice(batches, 1))
        losses += epoch_by_slices(model, optimizer, window, len(window))
        window = ahead + list(itertools.islice(batches, every)) if ahead else []
    return losses


def epoch_concatenated(model, optimizer, batches, every):
    losses, reader = [], iter(batches)
    while window := list(itertools.islice(reader, every)):
        losses += windows_as_one_batch(model, optimizer, window, every)
    return losses


def epoch_with_a_look(model, optimizer, batches, every):
    """Runs the model once more, on an input of its own."""
    losses = epoch_by_slices(model, optimizer, batches, every)
    with torch.no_grad():
        model(torch.ones(1, 3, dtype=torch.float64))
    return losses


def epoch_that_changes_inputs(model, optimizer, batches, every):
    def kept():
        for batch in batches:
            yield batch
            batch[0].zero_()

    return epoch_by_sums(model, optimizer, kept(), every)


RIGHT = [epoch_by_slices, epoch_by_sums]

MISCONCEIVED = {
    "the last window dropped": epoch(right_share, last=False),
    "divided by a full window": epoch(lambda size, sizes, every: 1 / every),
    "all micro-batches alike": epoch(lambda size, sizes, every: 1 / len(sizes)),
    "a sum of means": epoch(lambda size, sizes, every: 1),
    "a sum over samples": epoch(lambda size, sizes, every: size),
    "old gradients": epoch_cleared_after_the_step,
    "a step for each micro-batch": lambda model, optimizer, batches, every: epoch_by_slices(
        model, optimizer, batches, 1
    ),
    "a step too many": epoch(right_share, extra=True),
}

ONE_SLIP = {
    "steps": stepping_once_more(epoch_by_slices),
    "passes": passing_twice(epoch_by_slices),
    "held": epoch(right_share, retain_graph=True),
    "flags": seeded(epoch_by_sums),
    "ahead": epoch_read_at_once,
    "forwards": epoch_with_a_look,
    "inputs": epoch_that_changes_inputs,
}


def epoch_without_the_single(model, optimizer, batches, every):
    """Skips micro-batches of one sample, beside larger ones."""
    losses, reader = [], iter(batches)
    while window := list(itertools.islice(reader, every)):
        window = [(inputs, targets) for inputs, targets in window if len(targets) > 1] or window
        losses += epoch_by_slices(model, optimizer, window, every)
    return losses


cleared_with_zeros = zeroing(epoch_by_slices)

WRONG = [
    clearing_near(epoch_by_slices),
    clipping(epoch_by_slices, 1e4),
    said(ONE_SLIP["steps"], "a step too many"),
    *list(ONE_SLIP.values())[1:],
    epoch(lambda size, sizes, every: size / (every * max(sizes))),
    epoch_by_a_running_mean,
    epoch_concatenated,
    epoch_cleared_at_the_first,
    epoch_cleared_where_live,
    epoch_with_longer_windows,
    lambda model, optimizer, batches, every: epoch_by_slices(model, optimizer, batches, every)[:1],
    epoch_without_the_single,
    cleared_with_zeros,
]

EQUIVALENT = {
    "epoch_by_slices: total += loss.item() -> total = total + loss.item()": "A number is not changed in place: both make a new one.",
    "epoch_by_slices: loss.backward() | total += loss.item() -> (swapped)": "Neither statement reads what the other writes.",
    "epoch_by_slices: count = sum((len(targets) for _, targets in window)) | optimizer.zero_grad() -> (swapped)": "Zeros or None: SGD makes the same step of a parameter that gets a gradient, and what takes no part had None before, or zeros do not move it.",
    "epoch_by_slices: optimizer.step() | losses.append(total) -> (swapped)": "Neither statement reads what the other writes.",
    "epoch_by_sums.step: optimizer.zero_grad() -> optimizer.zero_grad(set_to_none=False)": "Zeros or None: SGD makes the same step of a parameter that gets a gradient, and what takes no part had None before, or zeros do not move it.",
    "epoch_by_sums.step: optimizer.step() | losses.append(total / samples) -> (swapped)": "Neither statement reads what the other writes.",
    "epoch_by_sums.step: losses.append(total / samples) | optimizer.zero_grad() -> (swapped)": "Zeros or None: SGD makes the same step of a parameter that gets a gradient, and what takes no part had None before, or zeros do not move it.",
    "epoch_by_sums: loss.backward() | waiting, samples, total = (waiting + 1, samples + len(inputs), total + loss.item()) -> (swapped)": "Neither statement reads what the other writes.",
}

GUARDS = {
    "the last one may have fewer, and is stepped all the same": {"steps": ONE_SLIP["steps"]},
    "Each step uses the gradient of the mean of `cross_entropy` over the samples of its window": {
        "value": MISCONCEIVED["all micro-batches alike"]
    },
    "and nothing that was in `.grad` before": {"value": epoch_cleared_after_the_step},
    "at most `every + 1` micro-batches may have been read and not yet used": {"ahead": ONE_SLIP["ahead"]},
    "Each micro-batch gets one forward and one backward pass": {
        "forwards": ONE_SLIP["forwards"],
        "passes": ONE_SLIP["passes"],
    },
    "what its graph saved is freed before the next forward begins": {"held": ONE_SLIP["held"]},
    "Modes and flags stay.": {"flags": ONE_SLIP["flags"], "inputs": ONE_SLIP["inputs"]},
    "A parameter that is frozen or takes no part does not move.": {"value": cleared_with_zeros},
}
