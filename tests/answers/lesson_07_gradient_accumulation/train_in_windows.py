"""Right and wrong answers to `train_in_windows`."""

from torch.nn.functional import cross_entropy

from tests.answers.leaving import clipping, zeroing
from tests.answers.lesson_07_gradient_accumulation.side_effects import (
    passing_twice,
    running_once_more,
    seeded,
    stepping_once_more,
)
from tests.answers.lesson_07_gradient_accumulation.windows import windows_as_one_batch
from tests.answers.near import clearing_near
from tests.answers.said import said


def windows_cleared_after_the_step(model, optimizer, micro_batches, every):
    losses, total = [], 0.0
    optimizer.zero_grad()
    for number, (inputs, targets) in enumerate(micro_batches, start=1):
        loss = cross_entropy(model(inputs), targets) / every
        loss.backward()
        total += loss.item()
        if number % every == 0:
            optimizer.step()
            optimizer.zero_grad()
            losses.append(total)
            total = 0.0
    return losses


def windows_cleared_where_live(model, optimizer, micro_batches, every):
    """A frozen parameter keeps what an earlier pass left in its .grad, and the step uses it."""
    losses = []
    for start in range(0, len(micro_batches), every):
        for parameter in model.parameters():
            if parameter.requires_grad:
                parameter.grad = None
        parts = []
        for inputs, targets in micro_batches[start : start + every]:
            loss = cross_entropy(model(inputs), targets)
            (loss / every).backward()
            parts.append(loss.item())
        optimizer.step()
        losses.append(sum(parts) / len(parts))
    return losses


def windows_cleared_before_the_first(model, optimizer, micro_batches, every):
    """In nested loops."""
    losses = []
    for start in range(0, len(micro_batches), every):
        model.zero_grad()
        parts = []
        for inputs, targets in micro_batches[start : start + every]:
            loss = cross_entropy(model(inputs), targets)
            (loss / every).backward()
            parts.append(loss.item())
        optimizer.step()
        losses.append(sum(parts) / len(parts))
    return losses


def windows_divided(which):
    """Divides the gradients of `which(model, optimizer)` before each step."""

    def windows(model, optimizer, micro_batches, every):
        losses, parts = [], []
        optimizer.zero_grad()
        for inputs, targets in micro_batches:
            loss = cross_entropy(model(inputs), targets)
            loss.backward()
            parts.append(loss.item())
            if len(parts) == every:
                for parameter in which(model, optimizer):
                    if parameter.grad is not None:
                        parameter.grad /= every
                optimizer.step()
                optimizer.zero_grad()
                losses.append(sum(parts) / every)
                parts = []
        return losses

    return windows


def windows_divided_at_the_step(model, optimizer, micro_batches, every):
    losses, parts = [], []
    for number, (inputs, targets) in enumerate(micro_batches):
        if number % every == 0:
            optimizer.zero_grad()
        loss = cross_entropy(model(inputs), targets)
        loss.backward()
        parts.append(loss.detach())
        if (number + 1) % every == 0:
            for parameter in model.parameters():
                if parameter.grad is not None:
                    parameter.grad /= every
            optimizer.step()
            losses.append(float(sum(parts)) / every)
            parts = []
    return losses


def window_loop(
    clear=lambda number, every: number % every == 0,
    scale=lambda loss, every: loss / every,
    step=lambda number, every: (number + 1) % every == 0,
    **options,
):
    """A loop with one thing wrong."""

    def train(model, optimizer, micro_batches, every):
        losses, total = [], 0.0
        for number, (inputs, targets) in enumerate(micro_batches):
            if clear(number, every):
                optimizer.zero_grad()
            loss = cross_entropy(model(inputs), targets)
            scale(loss, every).backward(**options)
            total += loss.item() / every
            if step(number, every):
                optimizer.step()
            if (number + 1) % every == 0:
                losses.append(total)
                total = 0.0
        return losses

    return train


def broken_windows(model, optimizer, micro_batches, every):
    losses = []
    for number, (inputs, targets) in enumerate(micro_batches, start=1):
        optimizer.zero_grad()
        loss = cross_entropy(model(inputs), targets)
        loss.backward()
        if number % every == 0:
            optimizer.step()
            losses.append(loss.item())
    return losses


def windows_without_the_first_clear(model, optimizer, micro_batches, every):
    return window_loop(clear=lambda number, every: number % every == 0 and number > 0)(
        model, optimizer, micro_batches, every
    )


def windows_in_one_pass(model, optimizer, micro_batches, every):
    losses = []
    for start in range(0, len(micro_batches), every):
        optimizer.zero_grad()
        loss = sum(cross_entropy(model(x), y) for x, y in micro_batches[start : start + every]) / every
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def windows_on_inputs_that_require(model, optimizer, micro_batches, every):
    for inputs, _ in micro_batches:
        inputs.requires_grad_()
    return windows_cleared_after_the_step(model, optimizer, micro_batches, every)


def windows_that_change_inputs(model, optimizer, micro_batches, every):
    losses = windows_cleared_after_the_step(model, optimizer, micro_batches, every)
    for inputs, _ in micro_batches:
        inputs.zero_()
    return losses


def windows_of_the_last(model, optimizer, micro_batches, every):
    """Only a window's last micro-batch gets a pass."""
    losses, total = [], 0.0
    for number, (inputs, targets) in enumerate(micro_batches, start=1):
        optimizer.zero_grad()
        loss = cross_entropy(model(inputs), targets) / every
        total += loss.item()
        if number % every == 0:
            loss.backward()
            optimizer.step()
            losses.append(total)
            total = 0.0
    return losses


def windows_stepping_often_at_the_end(model, optimizer, micro_batches, every):
    """As many steps as micro-batches, all at a window's end."""
    losses = []
    for start in range(0, len(micro_batches), every):
        optimizer.zero_grad()
        total = 0.0
        for inputs, targets in micro_batches[start : start + every]:
            loss = cross_entropy(model(inputs), targets) / every
            loss.backward()
            total += loss.item()
        for _ in range(every):
            optimizer.step()
        losses.append(total)
    return losses


RIGHT = [
    windows_cleared_after_the_step,
    windows_cleared_before_the_first,
    windows_divided_at_the_step,
]


def windows_with_the_last_losses(model, optimizer, micro_batches, every):
    losses = []
    optimizer.zero_grad()
    for number, (inputs, targets) in enumerate(micro_batches, start=1):
        loss = cross_entropy(model(inputs), targets)
        (loss / every).backward()
        if number % every == 0:
            optimizer.step()
            optimizer.zero_grad()
            losses.append(loss.item())
    return losses


MISCONCEIVED = {
    "cleared within the window": broken_windows,
    "summed, not averaged": window_loop(scale=lambda loss, every: loss),
    "old gradients": windows_without_the_first_clear,
    "the last micro-batch's loss": windows_with_the_last_losses,
    "a step for each micro-batch": window_loop(step=lambda number, every: True),
}

ONE_SLIP = {
    "steps": stepping_once_more(windows_cleared_after_the_step),
    "forwards": running_once_more(windows_cleared_after_the_step, 2),
    "passes": passing_twice(windows_cleared_after_the_step),
    "held": window_loop(retain_graph=True),
    "inputs": windows_that_change_inputs,
    "flags": seeded(windows_cleared_after_the_step),
}

cleared_with_zeros = zeroing(windows_cleared_after_the_step)

WRONG = [
    clearing_near(windows_divided_at_the_step),
    clipping(windows_divided_at_the_step, 1e4),
    *ONE_SLIP.values(),
    windows_stepping_often_at_the_end,
    said(windows_of_the_last, "cleared within the window"),
    windows_as_one_batch,
    windows_in_one_pass,
    windows_cleared_where_live,
    windows_on_inputs_that_require,
    said(window_loop(clear=lambda number, every: False), "old gradients"),
    said(
        window_loop(clear=lambda number, every: (number + 1) % every == 0), "cleared within the window"
    ),  # between backward and step
    window_loop(step=lambda number, every: number % every == 0),
    windows_divided(lambda model, optimizer: optimizer.param_groups[0]["params"]),
    windows_divided(lambda model, optimizer: [p for part in model.modules() for p in part.parameters(recurse=False)]),
    lambda model, optimizer, micro_batches, every: [0.5, 0.5],
    lambda model, optimizer, micro_batches, every: [[1.0], None, "x"],
    cleared_with_zeros,
]

EQUIVALENT = {
    "windows_cleared_after_the_step: total += loss.item() -> total = total + loss.item()": "A number is not changed in place: both make a new one.",
    "windows_cleared_after_the_step: optimizer.zero_grad() -> optimizer.zero_grad(set_to_none=False) #2": "Zeros or None: SGD makes the same step of a parameter that gets a gradient, and what takes no part had None before, or zeros do not move it.",
    "windows_cleared_after_the_step: optimizer.zero_grad() | losses.append(total) -> (swapped)": "Neither statement reads what the other writes.",
    "windows_cleared_after_the_step: loss.backward() | total += loss.item() -> (swapped)": "Neither statement reads what the other writes.",
    "windows_cleared_before_the_first: (loss / every).backward() | parts.append(loss.item()) -> (swapped)": '"what its graph saved is freed": after backward() a loss holds no saved tensors, and float() takes the number out.',
    "windows_cleared_before_the_first: optimizer.step() | losses.append(sum(parts) / len(parts)) -> (swapped)": "Neither statement reads what the other writes.",
    "windows_divided_at_the_step: parts.append(loss.detach()) -> parts.append(loss)": '"what its graph saved is freed": after backward() a loss holds no saved tensors, and float() takes the number out.',
    "windows_divided_at_the_step: parts.append(loss.detach()) -> parts.append(loss.clone())": '"what its graph saved is freed": after backward() a loss holds no saved tensors, and float() takes the number out.',
    "windows_divided_at_the_step: optimizer.step() | losses.append(float(sum(parts)) / every) -> (swapped)": "Neither statement reads what the other writes.",
    "windows_divided_at_the_step: if number % every == 0: ... | loss = cross_entropy(model(inputs), targets) -> (swapped)": "Neither statement reads what the other writes.",
    "windows_divided_at_the_step: loss.backward() | parts.append(loss.detach()) -> (swapped)": '"what its graph saved is freed": after backward() a loss holds no saved tensors, and float() takes the number out.',
}

GUARDS = {
    "one optimizer step for each window": {"steps": ONE_SLIP["steps"]},
    "with the gradient of the mean loss over all samples of the window": {
        "value": MISCONCEIVED["cleared within the window"]
    },
    "it belongs to no window": {"value": MISCONCEIVED["old gradients"]},
    "Each micro-batch gets one forward and one backward pass": {
        "forwards": ONE_SLIP["forwards"],
        "passes": ONE_SLIP["passes"],
    },
    "what its graph saved is freed before the next one begins": {"held": ONE_SLIP["held"]},
    "Modes and flags stay as they are.": {"flags": ONE_SLIP["flags"], "inputs": ONE_SLIP["inputs"]},
    "A parameter that is frozen or takes no part does not move.": {"value": cleared_with_zeros},
}
