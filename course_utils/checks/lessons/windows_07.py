"""Exercises of lesson 07 on training in windows: what is right is what the full batch of each window gives."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

import torch
from torch.nn.functional import cross_entropy

from course_utils.checks.compare import close, describe, right_value
from course_utils.checks.data import Array, Case, Observation, Value
from course_utils.checks.exercise import Exercise, Finding, Misconception
from course_utils.checks.observing.models_07 import batches_of, classifier, stale

LESSON = "07_gradient_accumulation"
GAMMA = 0.6  # of the scheduler in train_clipped
FLAGS = (
    "After your function, a parameter object, a requires_grad flag, a mode, the state of the random numbers, or the "
    "number of hooks differs."
)

Tensors: TypeAlias = dict[str, torch.Tensor]


@dataclass(frozen=True)
class Step:
    """One window: its mean loss, the gradient of the full batch, and, where asked for, of each micro-batch."""

    loss: float
    gradient: Tensors
    parts: list[Tensors]
    sizes: list[int]


def full_batches(case: Case, every: int, max_norm: float = float("inf"), gamma: float = 1.0) -> list[Step]:
    """Train on the full batch of each window. Return the windows with the gradients of their micro-batches."""
    return trained(case, every, max_norm, gamma, apart=True)[0]


def trained(
    case: Case, every: int, max_norm: float = float("inf"), gamma: float = 1.0, apart: bool = False
) -> tuple[list[Step], Tensors]:
    """Train on the full batch of each window. Return the windows and the parameters at the end."""
    model, batches = classifier(case.given["seed"]), batches_of(case)
    live: Tensors = {
        name: item for name, item in model.named_parameters() if item.requires_grad and "spare" not in name
    }
    speed: Tensors = {}
    rate, steps = case.given["lr"], []
    for start in range(0, len(batches), every):
        window = batches[start : start + every]
        inputs, targets = (torch.cat([batch[n] for batch in window]) for n in (0, 1))
        loss, gradient = _gradient(model, live, inputs, targets)
        parts = [_gradient(model, live, *batch)[1] for batch in window] if apart else []
        steps.append(Step(loss, gradient, parts, [len(batch[1]) for batch in window]))
        factor = min(1.0, max_norm / (norm(gradient) + 1e-6))
        with torch.no_grad():
            for name, parameter in live.items():
                change = factor * gradient[name] + case.given["decay"] * parameter
                speed[name] = change if name not in speed else case.given["momentum"] * speed[name] + change
                parameter.sub_(rate * speed[name])
        rate *= gamma
    return steps, {name: parameter.detach() for name, parameter in model.named_parameters()}


def _gradient(model: Any, live: Tensors, inputs: torch.Tensor, targets: torch.Tensor) -> tuple[float, Tensors]:
    loss = cross_entropy(model(inputs), targets)
    return loss.item(), dict(zip(live, torch.autograd.grad(loss, list(live.values())), strict=True))


def norm(gradient: Tensors) -> float:
    """Return the norm of all gradients taken together."""
    return float(torch.cat([part.flatten() for part in gradient.values()]).norm())


def summed(parts: list[Tensors], weights: list[float]) -> Tensors:
    """Return a weighted sum of gradients."""
    return {name: sum(w * part[name] for w, part in zip(weights, parts, strict=True)) for name in parts[0]}  # type: ignore[misc]


def same(received: Value, expected: Tensors) -> bool:
    """Return whether all of the expected gradients are there, with these numbers."""
    return isinstance(received, dict) and all(close(received.get(name), right) for name, right in expected.items())


def numbers_right(
    received: Value, expected: list[float], what: str, dtype: torch.dtype = torch.float64
) -> Iterator[Finding]:
    """Find whether a list of Python floats is right."""
    if not isinstance(received, list) or not all(type(item) is float for item in received):
        odd: Value = received
        if isinstance(received, list):
            odd = next(item for item in received if type(item) is not float)
        message = f"Expected a list of Python floats, {what}. {_capital(describe(odd))} is none, or none in the list."
        yield Finding("list", False, message)
        return
    if len(received) != len(expected):
        message = f"The list of {what} has {len(received)} entries; expected {len(expected)}, one for each window."
        yield Finding("length", False, message)
        return
    right = torch.tensor(expected, dtype=dtype)
    yield right_value(Array.of(torch.tensor(received, dtype=dtype)), right, f"The list of {what}")


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def well_formed(seen: Observation, records: str = "steps", *parts: str) -> None:
    """Raise for what no observer of this lesson returns, so that everything after this may read it."""
    for part in () if parts else ("gradients", "parameters"):
        if not isinstance(seen[part], dict):
            raise TypeError(part)
    for record in seen[records]:
        for part in parts or ("gradients",):
            if not isinstance(record[part], dict):
                raise TypeError(part)
    for name in ("held", "passes", "ahead", "runs", "waiting", "alive"):
        if name in seen and name != records and type(seen[name]) is not int:
            raise TypeError(name)
    for name in ("flags", "moved", "same", "attached", "inputs", "modes"):
        if name in seen and type(seen[name]) is not bool:
            raise TypeError(name)
    _readable(seen)


def _readable(value: Any) -> None:
    if isinstance(value, Array):
        value.tensor()
    elif isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            _readable(item)


def ran_well(case: Case, seen: Observation) -> Iterator[Finding]:
    """Find whether each micro-batch had one forward and one backward pass, and was then freed."""
    sizes, forwards = case.given["sizes"], seen["forwards"]
    text = f"The model's forward ran on batches of the sizes {forwards}; the micro-batches have the sizes {sizes}."
    yield Finding("forwards", forwards == sizes, text)
    passes = seen["passes"]
    text = f"{passes} backward passes ran for {len(sizes)} micro-batches; each needs one."
    yield Finding("passes", passes == len(sizes), text)
    text = (
        "When the next forward or a step began, saved numbers of an earlier micro-batch were still held. A micro-batch "
        "should be done with, its backward pass included, before the next one starts."
    )
    yield Finding("held", seen["held"] == 0, text)
    yield Finding("inputs", seen["inputs"], "Your function changed the micro-batches that it was given.")
    yield Finding("flags", seen["flags"], FLAGS)


def trained_well(
    seen: Observation, steps: list[Step], parameters: Tensors, dtype: torch.dtype = torch.float64
) -> Iterator[Finding]:
    """Find whether the steps and the parameters are those of full-batch training, compared in a dtype."""
    count = len(seen["steps"])
    text = f"The optimizer stepped {count} times; there are {len(steps)} windows."
    yield Finding("steps", count == len(steps), text)
    for name, right in parameters.items():
        received = Array.of(seen["parameters"][name].tensor().to(dtype))
        yield right_value(received, right.to(dtype), f"After training, {name}")


# What several exercises recognise.

Recognise = Callable[[Case, Observation], bool]


def one_step_for_each_part(case: Case, seen: Observation) -> bool:
    """Return whether the optimizer stepped after every micro-batch."""
    count = len(case.given["sizes"])
    return count > 1 and len(seen["steps"]) == count


def weighted(weights: Callable[[Step, int], list[float]]) -> Recognise:
    """Recognise a window whose gradient is another combination of what its micro-batches give."""

    def explains(case: Case, seen: Observation) -> bool:
        every = case.given["every"]
        steps = full_batches(case, every)
        if len(seen["steps"]) != len(steps):
            return False
        # Up to the first window that went wrong the parameters are the right ones.
        for mine, step in zip(seen["steps"], steps, strict=True):
            if same(mine["gradients"], step.gradient):
                continue
            return same(mine["gradients"], summed(step.parts, weights(step, every)))
        return False

    return explains


# Repairing a loop that clears in the wrong place.


def _loops(seed: int) -> list[Case]:
    plain = {"lr": 0.3, "momentum": 0.0, "decay": 0.0}
    rich = {"lr": 0.2, "momentum": 0.7, "decay": 0.05}
    return [
        Case("two windows of three", {"seed": seed + 1, "sizes": [4] * 6, "every": 3, **plain}),
        Case("three windows of two, with momentum", {"seed": seed + 2, "sizes": [3] * 6, "every": 2, **rich}),
        Case("old gradients at the start", {"seed": seed + 3, "sizes": [5] * 4, "every": 2, "stale": True, **rich}),
    ]


def _judge_loop(case: Case, seen: Observation) -> Iterator[Finding]:
    well_formed(seen)
    steps, parameters = trained(case, case.given["every"])
    yield from trained_well(seen, steps, parameters)
    yield from ran_well(case, seen)
    yield from numbers_right(seen["returned"], [step.loss for step in steps], "window losses")


def _keeps_old(case: Case, seen: Observation) -> bool:
    """Return whether the first wrong step has the right gradient, and that of the step before on top."""
    steps = full_batches(case, case.given["every"])
    if len(seen["steps"]) != len(steps):
        return False
    model = classifier(case.given["seed"])
    stale(model, case)
    names = steps[0].gradient
    old = {
        name: p.grad if p.grad is not None else torch.zeros_like(p)
        for name, p in model.named_parameters()
        if name in names
    }
    for mine, step in zip(seen["steps"], steps, strict=True):
        if not same(mine["gradients"], step.gradient):
            return same(mine["gradients"], summed([step.gradient, old], [1.0, 1.0]))
        old = step.gradient
    return False


train_in_windows = Exercise(
    id="train_in_windows",
    title="Clear in the right place",
    lesson=LESSON,
    difficulty=2,
    minutes=15,
    points=2,
    call="train_in_windows(model, optimizer, micro_batches, every)",
    cases=_loops,
    judge=_judge_loop,
    hints=(
        "Write down what .grad holds after each line, for one window of three micro-batches. Where does it lose "
        "something that the step needs?",
        "Gradients must be cleared somewhere between a step and the next window's first backward. Before the first "
        "window, too: you do not know what is in .grad when the function is called.",
        "Clear before the loop and right after each step. All micro-batches have one size, so divide each loss by "
        "`every`. Add up loss.item() within the window, append the sum after the step, and start again at 0.",
    ),
    misconceptions=(
        Misconception(
            "cleared within the window",
            "At the step, .grad holds the gradient of the window's last micro-batch alone: what the others had added "
            "was cleared.",
            lambda case, seen: (
                weighted(lambda step, every: [0.0] * (len(step.parts) - 1) + [1.0])(case, seen)
                or weighted(lambda step, every: [0.0] * (len(step.parts) - 1) + [1.0 / every])(case, seen)
            ),
        ),
        Misconception(
            "summed, not averaged",
            "At the step, .grad holds the sum of the micro-batches' mean gradients. The gradient of the window's mean "
            "loss is smaller, by the number of micro-batches.",
            weighted(lambda step, every: [1.0] * len(step.parts)),
        ),
        Misconception(
            "old gradients",
            "In the first step that went wrong, .grad holds the right gradient and, on top of it, what was in .grad "
            "before the window began.",
            _keeps_old,
        ),
        Misconception(
            "a step for each micro-batch",
            "Your optimizer stepped after every micro-batch. A window has one step, after its last one.",
            one_step_for_each_part,
        ),
    ),
)


# A whole epoch: uneven sizes and a last window that is not full.


def _epochs(seed: int) -> list[Case]:
    plain = {"lr": 0.3, "momentum": 0.0, "decay": 0.0}
    rich = {"lr": 0.2, "momentum": 0.7, "decay": 0.05}
    return [
        Case("one size, a last window that is not full", {"seed": seed + 1, "sizes": [4] * 5, "every": 3, **rich}),
        Case("uneven sizes, full windows", {"seed": seed + 2, "sizes": [5, 2, 3, 1, 4, 6], "every": 3, **rich}),
        Case("uneven in both ways", {"seed": seed + 3, "sizes": [6, 2, 3, 4, 5, 2, 3], "every": 4, **plain}),
        Case("fewer micro-batches than a window", {"seed": seed + 4, "sizes": [3, 5], "every": 4, **plain}),
    ]


def _judge_epoch(case: Case, seen: Observation) -> Iterator[Finding]:
    well_formed(seen)
    steps, parameters = trained(case, case.given["every"])
    yield from trained_well(seen, steps, parameters)
    yield from ran_well(case, seen)
    every, ahead = case.given["every"], seen["ahead"]
    text = f"Before a forward, {ahead} micro-batches had been read and not used; more than one window of {every}."
    yield Finding("ahead", ahead <= every + 1, text)  # one more tells whether a window was the last
    yield from numbers_right(seen["returned"], [step.loss for step in steps], "window losses")


def _dropped(case: Case, seen: Observation) -> bool:
    sizes, every = case.given["sizes"], case.given["every"]
    return bool(len(sizes) % every != 0 and len(seen["steps"]) == len(sizes) // every)


epoch_in_windows = Exercise(
    id="epoch_in_windows",
    title="An epoch with a last window that is not full",
    lesson=LESSON,
    difficulty=4,
    minutes=25,
    points=4,
    call="epoch_in_windows(model, optimizer, batches, every)",
    cases=_epochs,
    judge=_judge_epoch,
    hints=(
        "The weight of a micro-batch is its share of the window's samples. You can know that share before the "
        "window's first backward, or repair the gradients after its last one.",
        "Either read a window of batches into a list first, or use sums: backward through the sum of the losses of the "
        "samples, and divide .grad by the number of samples before the step.",
        "itertools.islice(reader, every) on reader = iter(batches) gives the next window, an empty list at the end. "
        "Count its samples. Clear; for each micro-batch take cross_entropy(..., reduction='sum') / samples, backward, "
        "and add item() to the window's loss; step; append.",
    ),
    misconceptions=(
        Misconception(
            "the last window dropped",
            "Your optimizer made no step for the last window, which is not full. Its samples taught nothing.",
            _dropped,
        ),
        Misconception(
            "divided by a full window",
            "In the first window that went wrong, each micro-batch's mean loss was divided by the length of a full "
            "window.",
            weighted(lambda step, every: [1 / every] * len(step.parts)),
        ),
        Misconception(
            "all micro-batches alike",
            "In the first window that went wrong, each micro-batch got the same weight. They have different numbers of "
            "samples.",
            weighted(lambda step, every: [1 / len(step.parts)] * len(step.parts)),
        ),
        Misconception(
            "a step too many",
            "Your optimizer made one step more than there are windows. No micro-batch is left for it.",
            lambda case, seen: len(seen["steps"]) == -(-len(case.given["sizes"]) // case.given["every"]) + 1,
        ),
    ),
)
