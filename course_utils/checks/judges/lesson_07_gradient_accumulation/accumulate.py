"""Judging `accumulate`: accumulate exactly."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch

from course_utils.checks.compare import OF_VALUES, close, describe, right_value
from course_utils.checks.data import Array, Case, Observation, Value
from course_utils.checks.exercise import Exercise, Finding, Misconception
from course_utils.checks.judges.lesson_07_gradient_accumulation import LESSON
from course_utils.checks.judges.lesson_07_gradient_accumulation.loops import ran_well, well_formed
from course_utils.checks.judges.lesson_07_gradient_accumulation.windows import Step, full_batches, same, summed, trained
from course_utils.checks.scenes.lesson_07_gradient_accumulation.classifier import classifier, stale

_PLAIN = {"lr": 0.0, "momentum": 0.0, "decay": 0.0}


def _cases(seed: int) -> list[Case]:
    shapes: dict[str, dict[str, Any]] = {
        "an uneven last one": {"sizes": [4, 4, 3], "steep": 1e5},
        "all of one size": {"sizes": [3, 3, 3, 3]},
        "all sizes differ, and old gradients": {"sizes": [6, 1, 2, 5], "stale": "all"},
        "a single one": {"sizes": [1], "stale": "all"},
    }
    return [Case(name, {"seed": seed + n, **_PLAIN, **given}) for n, (name, given) in enumerate(shapes.items())]


def _window(case: Case) -> Step:
    return full_batches(case, len(case.given["sizes"]))[0]


def _judge(case: Case, seen: Observation) -> Iterator[Finding]:
    well_formed(seen)
    step = trained(case, len(case.given["sizes"]))[0][0]
    for name, right in step.gradient.items():
        yield right_value(seen["gradients"].get(name), right, f"The gradient of {name}")
    model = classifier(case)
    stale(model, case)
    for name, parameter in model.named_parameters():
        if name not in step.gradient:
            received = seen["gradients"].get(name)
            why = "takes no part" if parameter.requires_grad else "is frozen"
            text = f"{name} {why}, but its .grad {_holds(received, parameter.grad)}; expected None."
            yield Finding("others", received is None, text)
    number = type(seen["returned"]) is float
    yield Finding("number", number, f"You returned {describe(seen['returned'])}; expected the loss, a Python float.")
    if number:
        yield right_value(seen["returned"], step.loss, "The loss that you returned")
    for name, parameter in model.named_parameters():
        kept = close(seen["parameters"].get(name), parameter.detach())
        yield Finding("parameters", kept, "Your function changed the parameters. Only gradients were asked for.")
    yield from ran_well(case, seen)


def _holds(received: Value, before: torch.Tensor | None) -> str:
    """Say what a .grad holds that should be None."""
    if before is not None and close(received, before):
        return "still holds what it held before your function"
    if isinstance(received, Array) and not bool(received.tensor().any()):
        return "holds zeros"
    return f"is {describe(received)}"


def _combined(weights: Callable[[Step], list[float]]) -> Callable[[Case, Observation], bool]:
    def explains(case: Case, seen: Observation) -> bool:
        step = _window(case)
        return same(seen["gradients"], summed(step.parts, weights(step)))

    return explains


def _on_top(case: Case, seen: Observation) -> bool:
    model = classifier(case)
    stale(model, case)
    step = _window(case)
    old = {name: parameter.grad for name, parameter in model.named_parameters() if parameter.grad is not None}
    return bool(old) and same(seen["gradients"], summed([step.gradient, old], [1.0, 1.0]))


def _mean_of_means(case: Case, seen: Observation) -> bool:
    """Return whether the gradient is right, and the loss a mean of the micro-batches' losses, each counted once."""
    step = _window(case)
    mean = sum(step.losses) / len(step.losses)
    return same(seen["gradients"], step.gradient) and close(seen["returned"], mean)


def _debrief(seen: Sequence[tuple[Case, Observation]]) -> Iterator[str]:
    case, first = seen[0]
    sizes = case.given["sizes"]
    yield (
        f"The check saw one backward pass for each micro-batch, {first['passes']} in the case {case.name}, and at no "
        "time the graphs of two."
    )
    yield f"Joined, one pass would have held the graph of all {sum(sizes)} samples; yours held at most {max(sizes)}."


EXERCISE = Exercise(
    id="accumulate",
    title="Accumulate exactly",
    lesson=LESSON,
    difficulty=3,
    minutes=15,
    points=3,
    call="accumulate(model, micro_batches)",
    counted=True,
    cases=_cases,
    judge=_judge,
    hints=(
        "The loss of the full batch is a mean over samples. Write it as a sum over micro-batches.",
        "A micro-batch's mean loss stands for its own samples. In the mean over all, it counts with their share.",
        "Clear. Count the samples of all micro-batches. For each micro-batch: mean loss times its size over the count, "
        "backward, and add item() to a float.",
    ),
    debrief=_debrief,
    misconceptions=(
        Misconception(
            "all micro-batches alike",
            "You gave every micro-batch the same weight. They have different numbers of samples.",
            _combined(lambda step: [1 / len(step.parts)] * len(step.parts)),
            among=OF_VALUES,
        ),
        Misconception(
            "a sum of means",
            "What .grad holds is the sum of the micro-batches' mean gradients, with nothing divided.",
            _combined(lambda step: [1.0] * len(step.parts)),
            among=OF_VALUES,
        ),
        Misconception(
            "a sum over samples",
            "What .grad holds is the gradient of the sum of all losses. The full batch's loss is their mean.",
            _combined(lambda step: [float(size) for size in step.sizes]),
            among=OF_VALUES,
        ),
        Misconception(
            "a loss that is a mean of means",
            "Your gradient is right. The loss that you returned gives every micro-batch the same weight, though they "
            "have different numbers of samples.",
            _mean_of_means,
            among=OF_VALUES,
        ),
        Misconception(
            "old gradients",
            "What .grad holds is the right gradient and, on top of it, what was in .grad before you were called.",
            _on_top,
            among=OF_VALUES,
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
