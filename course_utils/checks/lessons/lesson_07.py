"""Exercises of lesson 07: exact accumulation, and steps inside the backward pass."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch

from course_utils.checks.compare import close, describe, right_value
from course_utils.checks.data import Case, Observation
from course_utils.checks.exercise import Exercise, Finding, Misconception
from course_utils.checks.lessons.clipped_07 import train_clipped
from course_utils.checks.lessons.predict_07 import predict_moved, predict_none_or_zero
from course_utils.checks.lessons.samples_07 import clip_each_sample
from course_utils.checks.lessons.windows_07 import (
    LESSON,
    Step,
    Tensors,
    epoch_in_windows,
    full_batches,
    ran_well,
    same,
    summed,
    train_in_windows,
    trained,
    well_formed,
)
from course_utils.checks.observing.models_07 import batches_of, classifier, loss_of, stale, tied

# The gradient of a full batch, from micro-batches.

_PLAIN = {"lr": 0.0, "momentum": 0.0, "decay": 0.0}


def _micro_batches(seed: int) -> list[Case]:
    shapes: dict[str, dict[str, Any]] = {
        "an uneven last one": {"sizes": [4, 4, 3]},
        "all of one size": {"sizes": [3, 3, 3, 3]},
        "all sizes differ, and old gradients": {"sizes": [6, 1, 2, 5], "stale": "all"},
        "a single one": {"sizes": [5]},
    }
    return [Case(name, {"seed": seed + n, **_PLAIN, **given}) for n, (name, given) in enumerate(shapes.items())]


def _window(case: Case) -> Step:
    return full_batches(case, len(case.given["sizes"]))[0]


def _judge_accumulate(case: Case, seen: Observation) -> Iterator[Finding]:
    well_formed(seen)
    step = trained(case, len(case.given["sizes"]))[0][0]
    for name, right in step.gradient.items():
        yield right_value(seen["gradients"].get(name), right, f"The gradient of {name}")
    for name, received in seen["gradients"].items():
        if name not in step.gradient:
            text = f"{name} is frozen or takes no part, but its .grad is {describe(received)}; expected None."
            yield Finding("others", received is None, text)
    number = type(seen["returned"]) is float
    yield Finding("number", number, f"You returned {describe(seen['returned'])}; expected the loss, a Python float.")
    if number:
        yield right_value(seen["returned"], step.loss, "The loss that you returned")
    model = classifier(case.given["seed"])
    for name, parameter in model.named_parameters():
        kept = close(seen["parameters"].get(name), parameter.detach())
        yield Finding("parameters", kept, "Your function changed the parameters. Only gradients were asked for.")
    yield from ran_well(case, seen)


def _combined(weights: Callable[[Step], list[float]]) -> Callable[[Case, Observation], bool]:
    def explains(case: Case, seen: Observation) -> bool:
        step = _window(case)
        return same(seen["gradients"], summed(step.parts, weights(step)))

    return explains


def _on_top(case: Case, seen: Observation) -> bool:
    model = classifier(case.given["seed"])
    stale(model, case)
    step = _window(case)
    old = {name: parameter.grad for name, parameter in model.named_parameters() if parameter.grad is not None}
    return bool(old) and same(seen["gradients"], summed([step.gradient, old], [1.0, 1.0]))


accumulate = Exercise(
    id="accumulate",
    title="Accumulate exactly",
    lesson=LESSON,
    difficulty=3,
    minutes=20,
    points=3,
    call="accumulate(model, micro_batches)",
    cases=_micro_batches,
    judge=_judge_accumulate,
    hints=(
        "The loss of the full batch is a mean over samples. Write it as a sum over micro-batches.",
        "A micro-batch's mean loss stands for its own samples. In the mean over all, it counts with their share.",
        "Clear. Count the samples of all micro-batches. For each micro-batch: mean loss times its size over the count, "
        "backward, and add item() to a float.",
    ),
    misconceptions=(
        Misconception(
            "all micro-batches alike",
            "You gave every micro-batch the same weight. They have different numbers of samples.",
            _combined(lambda step: [1 / len(step.parts)] * len(step.parts)),
        ),
        Misconception(
            "a sum of means",
            "What .grad holds is the sum of the micro-batches' mean gradients, with nothing divided.",
            _combined(lambda step: [1.0] * len(step.parts)),
        ),
        Misconception(
            "a sum over samples",
            "What .grad holds is the gradient of the sum of all losses. The full batch's loss is their mean.",
            _combined(lambda step: [float(size) for size in step.sizes]),
        ),
        Misconception(
            "old gradients",
            "What .grad holds is the right gradient and, on top of it, what was in .grad before you were called.",
            _on_top,
        ),
        Misconception(
            "one large graph",
            "Your gradient is right, but the graphs of the micro-batches were alive together. That takes the memory of "
            "the full batch, which accumulation is to avoid.",
            lambda case, seen: (
                seen["held"] > 0 and seen["passes"] == 1 and same(seen["gradients"], _window(case).gradient)
            ),
        ),
    ),
)


# A step of SGD for each parameter, inside the pass.


def _hooked(seed: int) -> list[Case]:
    return [
        Case("three passes", {"seed": seed + 1, "sizes": [4, 2, 5], "lr": 0.3}),
        Case("other numbers", {"seed": seed + 2, "sizes": [3, 6, 2], "lr": 0.05}),
    ]


def _taught(case: Case) -> tuple[list[Tensors], Tensors]:
    """Return the parameters after each of two steps of plain SGD, and the gradient that a third pass gives."""
    model = tied(case)
    live = {name: item for name, item in model.named_parameters() if item.requires_grad and "spare" not in name}
    after: list[Tensors] = []
    gradient: Tensors = {}
    for number, batch in enumerate(batches_of(case)):
        values = torch.autograd.grad(loss_of(model, batch), list(live.values()))
        gradient = dict(zip(live, values, strict=True))
        if number < 2:
            with torch.no_grad():
                for name, item in live.items():
                    item.sub_(case.given["lr"] * gradient[name])
            after.append({name: item.detach().clone() for name, item in model.named_parameters()})
    gradient |= {f"spare.{name}": 2 * item.detach() for name, item in model.spare.named_parameters()}
    return after, gradient


def _judge_hooks(case: Case, seen: Observation) -> Iterator[Finding]:
    well_formed(seen, "passes", "gradients", "parameters")
    after, gradient = _taught(case)
    kinds = seen["returned"]
    listed = isinstance(kinds, list) and len(kinds) > 0 and all(kind == "handle" for kind in kinds)
    text = f"You returned {describe(kinds)}; expected a list of the handles that registering the hooks gave."
    yield Finding("handles", listed, text)
    for number, (mine, right) in enumerate(zip(seen["passes"], after, strict=True)):
        for name, value in right.items():
            what = f"After {'one backward pass' if number == 0 else 'two backward passes'}, {name}"
            yield right_value(mine["parameters"].get(name), value, what)
        left = [name for name, value in mine["gradients"].items() if value is not None]
        text = f"After a backward pass .grad of {', '.join(left)} is not None. The memory should be free by then."
        yield Finding("gradients", not left, text)
    text = (
        f"While a pass ran, {seen['waiting']} gradients waited in .grad at one time. Each should be used and let go "
        "before the next parameter's arrives."
    )
    yield Finding("waiting", seen["waiting"] == 0, text)
    text = (
        "When a parameter's gradient arrived, the gradient of an earlier one was still in memory, held by something "
        "besides .grad. Each should be used and let go before the next parameter's arrives."
    )
    yield Finding("alive", seen["waiting"] > 0 or seen["alive"] == 0, text)
    text = "Calling your function left the grad mode or the state of the random numbers different."
    yield Finding("modes", seen["modes"], text)
    text = "A parameter is another object than before, a requires_grad flag differs, or hooks are left after remove()."
    yield Finding("same", seen["same"], text)
    text = "Your handles were removed, and a backward pass still moved the parameters."
    yield Finding("removed", not seen["moved"], text)
    for name, value in gradient.items():
        if not seen["moved"]:
            yield right_value(seen["gradients"].get(name), value, f"With your handles removed, .grad of {name}")


def _gradient_left(case: Case, seen: Observation) -> bool:
    """Return whether the first pass moved the parameters rightly and left the gradients."""
    first, right = seen["passes"][0], _taught(case)[0][0]
    moved = all(close(first["parameters"].get(name), value) for name, value in right.items())
    return moved and any(value is not None for value in first["gradients"].values())


def _nothing_happened(case: Case, seen: Observation) -> bool:
    model = tied(case)
    first = seen["passes"][0]["parameters"]
    still = all(close(first.get(name), value.detach()) for name, value in model.named_parameters())
    return still and bool(seen["returned"])


step_in_backward = Exercise(
    id="step_in_backward",
    title="Step inside backward",
    lesson=LESSON,
    difficulty=3,
    minutes=20,
    points=3,
    call="step_in_backward(model, lr)",
    cases=_hooked,
    judge=_judge_hooks,
    hints=(
        "Which hook of a tensor runs when its .grad is complete?",
        "register_post_accumulate_grad_hook takes a function of the parameter. It gives a handle. It refuses a "
        "parameter that requires no gradient.",
        "Write hook(parameter): under no_grad subtract lr * parameter.grad in place, then set parameter.grad to None. "
        "Register it on each of model.parameters() that requires a gradient, and return the handles in a list.",
    ),
    misconceptions=(
        Misconception(
            "gradients left",
            "The first pass moved the parameters by the right amount, but .grad still holds gradients after it. They "
            "take memory, and the next pass adds to them.",
            _gradient_left,
        ),
        Misconception(
            "frozen parameters",
            "Your code registers a hook on each parameter. PyTorch refuses one for a tensor that requires no gradient.",
            ended=("RuntimeError",),
        ),
        Misconception(
            "nothing moves",
            "After a backward pass the parameters are what they were. What your hook computes does not reach them.",
            _nothing_happened,
        ),
    ),
)


EXERCISES = (
    predict_none_or_zero,
    predict_moved,
    train_in_windows,
    accumulate,
    train_clipped,
    step_in_backward,
    epoch_in_windows,
    clip_each_sample,
)
