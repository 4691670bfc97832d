"""Judging `order_the_step`: put a training step in order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache

import torch
from torch import nn
from torch.nn.functional import cross_entropy

from course_utils.checks.data import Case, Observation
from course_utils.checks.exercise import Exercise, Finding, Misconception
from course_utils.checks.judges.lesson_00_start_here import LESSON
from course_utils.checks.judges.orders import Broke, Lines
from course_utils.checks.judges.predictions import one_case

STEP = Lines(
    {
        "A": "optimizer.step()",
        "B": "loss.backward()",
        "C": "scores = model(images)",
        "D": "losses.append(loss.item())",
        "E": "optimizer.zero_grad()",
        "F": "loss = cross_entropy(scores, labels)",
    }
)
_RATE = 0.5


def _model() -> nn.Module:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return nn.Linear(4, 3, dtype=torch.float64)


def _batches() -> list[tuple[torch.Tensor, torch.Tensor]]:
    numbers = torch.Generator().manual_seed(1)
    labels = torch.tensor([0, 1, 2, 1, 0])
    return [(torch.randn(5, 4, dtype=torch.float64, generator=numbers), labels.roll(shift)) for shift in range(3)]


def _executed(order: Sequence[str]) -> list[torch.Tensor] | Broke:
    """Return the weights at the start and after each pass through the body, or what broke."""
    model = _model()
    optimizer = torch.optim.SGD(model.parameters(), lr=_RATE)
    names = {"model": model, "optimizer": optimizer, "losses": [], "cross_entropy": cross_entropy}
    weights = [_flat(model)]
    for images, labels in _batches():
        names.update(images=images, labels=labels)
        broke = STEP.execute(order, names)
        if broke is not None:
            return broke
        weights.append(_flat(model))
    return weights


def _flat(model: nn.Module) -> torch.Tensor:
    return nn.utils.parameters_to_vector(model.parameters()).detach().clone()


@cache
def _right() -> list[torch.Tensor]:
    """Return the weights at the start and after each batch: each is moved by the gradient of its own loss alone."""
    model = _model()
    weights = [_flat(model)]
    for images, labels in _batches():
        gradients = torch.autograd.grad(cross_entropy(model(images), labels), list(model.parameters()))
        weights.append(weights[-1] - _RATE * nn.utils.parameters_to_vector(gradients))
        nn.utils.vector_to_parameters(weights[-1], model.parameters())
    return weights


def _trains(order: Sequence[str]) -> bool:
    found = _executed(order)
    return not isinstance(found, Broke) and all(map(torch.allclose, found, _right()))


def _judge(case: Case, seen: Observation) -> Iterator[Finding]:
    complete = list(STEP.complete(seen["value"]))
    yield from complete
    if not all(finding.ok for finding in complete):
        return
    found = _executed(STEP.read(seen["value"]))
    if isinstance(found, Broke):
        yield Finding("names", False, STEP.told(found))
        return
    still = sum(map(torch.equal, found, found[1:]))
    text = (
        f"We ran your order on three batches: in {still} of the three passes no weight moved."
        if still
        else "We ran your order on three batches: a weight was moved by another gradient than that of its pass's loss."
    )
    yield Finding("steps", all(map(torch.allclose, found, _right())), text)


def _debrief(seen: Sequence[tuple[Case, Observation]]) -> Iterator[str]:
    """Say where else a line may stand, from running the other orders."""
    yield from STEP.elsewhere(STEP.read(seen[0][1]["value"]), "ED", _trains)


def _before(seen: Observation, *letters: str) -> bool:
    """Return whether these letters stand in this order, in an order in which no line misses a name."""
    order = STEP.read(seen["value"])
    places = [order.index(letter) for letter in letters]
    return places == sorted(places) and not isinstance(_executed(order), Broke)


EXERCISE = Exercise(
    id="order_the_step",
    title="Put a training step in order",
    lesson=LESSON,
    difficulty=1,
    minutes=6,
    points=2,
    call=None,
    cases=one_case,
    judge=_judge,
    hints=(
        "Ask of each line what it reads and what it writes. A line that reads a name or `.grad` stands below the line "
        "that writes it.",
        "Four lines form a chain: scores, loss, gradients, weights. The other two have some freedom: one needs only "
        "the loss, and one clears `.grad`.",
        "C, F, B, A is the chain. D stands anywhere behind F. E clears `.grad`, so it may stand anywhere but between "
        "B, which fills it, and A, which reads it.",
    ),
    debrief=_debrief,
    misconceptions=(
        Misconception(
            "cleared before the step",
            "Your order clears the gradients after the backward pass and before the step, so the step finds nothing "
            "in .grad, and no weight moves.",
            lambda case, seen: _before(seen, "B", "E", "A"),
        ),
        Misconception(
            "step before backward",
            "In your order the step comes before the backward pass, so in the first pass it finds nothing in .grad.",
            lambda case, seen: _before(seen, "A", "B"),
        ),
        Misconception(
            "noted before it is there",
            "Your order notes the loss before it is computed.",
            lambda case, seen: STEP.read(seen["value"]).index("D") < STEP.read(seen["value"]).index("F"),
        ),
    ),
)
