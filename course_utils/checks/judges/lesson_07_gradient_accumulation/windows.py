"""Training in windows, computed with plain numbers: what each step should apply."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, TypeAlias

import torch
from torch.nn.functional import cross_entropy

from course_utils.checks.compare import close
from course_utils.checks.data import Case, Observation, Value
from course_utils.checks.exercise import Misconception
from course_utils.checks.scenes.lesson_07_gradient_accumulation.classifier import batches_of, classifier, stale

Tensors: TypeAlias = dict[str, torch.Tensor]


@dataclass(frozen=True)
class Step:
    """One window: mean loss and gradient of the full batch, and, where asked for, of each micro-batch."""

    loss: float
    gradient: Tensors
    losses: list[float]
    parts: list[Tensors]
    sizes: list[int]


Clip: TypeAlias = Callable[[Step], Tensors]


def full_batches(case: Case, every: int) -> list[Step]:
    """Train on the full batch of each window. Return the windows with the gradients of their micro-batches."""
    return trained(case, every, apart=True)[0]


def trained(
    case: Case,
    every: int | Sequence[int],
    clip: Clip = lambda step: step.gradient,
    rates: Sequence[float] = (),
    apart: bool = False,
) -> tuple[list[Step], Tensors]:
    """Train on the full batch of each window. Return the windows and the parameters at the end.

    `every` is the length of the windows, or their lengths. `rates` are those of the steps, by default the case's.
    """
    model, batches = classifier(case), batches_of(case)
    live: Tensors = {
        name: item for name, item in model.named_parameters() if item.requires_grad and "spare" not in name
    }
    speed: Tensors = {}
    steps: list[Step] = []
    left = iter(batches)
    lengths = every if isinstance(every, Sequence) else [every] * -(-len(batches) // every)
    for number, length in enumerate(lengths):
        window = list(islice(left, length))
        inputs, targets = (torch.cat([batch[n] for batch in window]) for n in (0, 1))
        loss, gradient = _gradient(model, live, inputs, targets)
        found = [_gradient(model, live, *batch) for batch in window] if apart else []
        losses, parts = [it[0] for it in found], [it[1] for it in found]
        steps.append(Step(loss, gradient, losses, parts, [len(batch[1]) for batch in window]))
        applied = clip(steps[-1])
        rate = rates[number] if number < len(rates) else case.given["lr"]
        with torch.no_grad():
            for name, parameter in live.items():
                change = applied[name] + case.given["decay"] * parameter
                speed[name] = change if name not in speed else case.given["momentum"] * speed[name] + change
                parameter.sub_(rate * speed[name])
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


_Recognise = Callable[[Case, Observation], bool]


def _one_step_for_each_part(case: Case, seen: Observation) -> bool:
    """Return whether the optimizer stepped after every micro-batch."""
    count, every = len(case.given["sizes"]), case.given["every"]
    windows = len(every) if isinstance(every, list) else -(-count // every)
    return windows < count and [step["after"] for step in seen["steps"]] == list(range(1, count + 1))


STEP_FOR_EACH = Misconception(
    "a step for each micro-batch",
    "Your optimizer stepped after every micro-batch. A window has one step, after its last one.",
    _one_step_for_each_part,
)


def _keeps_old(case: Case, seen: Observation) -> bool:
    """Return whether the first wrong step has the right gradient, and that of the step before on top."""
    steps = full_batches(case, case.given["every"])
    if len(seen["steps"]) != len(steps):
        return False
    model = classifier(case)
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


OLD_GRADIENTS = Misconception(
    "old gradients",
    "In the first step that went wrong, .grad holds the right gradient and, on top of it, what was in .grad "
    "before the window began.",
    _keeps_old,
)


def weighted(weights: Callable[[Step, int], list[float]]) -> _Recognise:
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
