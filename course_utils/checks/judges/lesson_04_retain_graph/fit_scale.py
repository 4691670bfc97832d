"""Judging `fit_scale`: remove needless retention from a loop."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch.nn.functional import cross_entropy

from course_utils.checks.compare import close, right_floats, right_value
from course_utils.checks.data import Case, Observation
from course_utils.checks.exercise import Exercise, Finding, Misconception
from course_utils.checks.judges.lesson_04_retain_graph import LESSON
from course_utils.checks.judges.lesson_04_retain_graph.loops import lean, moved, retains, trains
from course_utils.checks.scenes.lesson_04_retain_graph.fit_scale import scaled_classifier


def _cases(seed: int) -> list[Case]:
    sizes = {"three batches": [5, 7, 4], "two batches": [6, 5]}
    return [
        Case(name, {"seed": seed + n, "sizes": size, "start": 0.3 + 0.2 * n})
        for n, (name, size) in enumerate(sizes.items())
    ]


def _fitted(case: Case, scaled: str = "anew") -> tuple[list[float], list[torch.Tensor], torch.Tensor]:
    """Run the loop with the scale's derivative by the product rule. Return losses, parameters and log_scale."""
    model, log_scale, optimizer, batches = scaled_classifier(case)
    start = log_scale.exp().item()
    losses = []
    for inputs, targets in batches:
        factor = start if scaled == "once" else log_scale.exp().item()
        scale = torch.tensor(factor, requires_grad=True)
        loss = cross_entropy(scale * model(inputs), targets)
        *own, slope = torch.autograd.grad(loss, [*model.parameters(), scale])
        for parameter, gradient in zip(model.parameters(), own, strict=True):
            parameter.grad = gradient
        log_scale.grad = None if scaled == "constant" else factor * slope
        optimizer.step()
        losses.append(loss.item())
    return losses, [parameter.detach() for parameter in model.parameters()], log_scale.detach()


def _judge(case: Case, seen: Observation) -> Iterator[Finding]:
    losses, parameters, log_scale = _fitted(case)
    yield right_floats(seen["returned"], torch.tensor(losses), "The list of losses")
    yield right_value(seen["log_scale"], log_scale, "log_scale after your loop")
    text = "After your loop the model's parameters are not what the loop should make of them."
    yield Finding("trained", moved(seen["parameters"], parameters), text)
    yield from lean(seen, len(case.given["sizes"]))


def _scale_as(case: Case, seen: Observation, scaled: str) -> bool:
    _, parameters, log_scale = _fitted(case, scaled)
    return close(seen["log_scale"], log_scale) and moved(seen["parameters"], parameters)


EXERCISE = Exercise(
    id="fit_scale",
    title="Remove needless retention from a loop",
    lesson=LESSON,
    difficulty=2,
    minutes=15,
    points=3,
    call="fit_scale(model, log_scale, optimizer, batches)",
    cases=_cases,
    judge=_judge,
    hints=(
        "Take the flag away and read what the loop raises in its second step. Which tensor belongs to the first?",
        "log_scale changes with every step. Does scale?",
        "What is computed from a parameter belongs inside the loop, next to the forward of the model. Then each step "
        "has a graph of its own, and no pass needs the flag.",
    ),
    misconceptions=(
        Misconception(
            "a stale scale",
            "Your numbers are those of a loop that computes the scale once, before the first step. log_scale moves, "
            "and the model goes on with the scale that it started from.",
            lambda case, seen: _scale_as(case, seen, "once"),
        ),
        Misconception(
            "the scale made a constant",
            "log_scale is where it started. Your loop cut it off, and with it its gradient.",
            lambda case, seen: trains(seen) and close(seen["log_scale"], torch.tensor(case.given["start"])),
        ),
        Misconception(
            "retained for nothing",
            "The scale is computed where it should be, and your passes retain all the same. Nothing needs that now.",
            lambda case, seen: retains(seen) and _scale_as(case, seen, "anew"),
        ),
    ),
)
