"""Judging `order_the_window`: put a window of two micro-batches in order."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache

import torch
from torch import nn
from torch.nn.functional import cross_entropy
from torch.nn.utils import clip_grad_norm_, parameters_to_vector, vector_to_parameters

from course_utils.checks.data import Case, Observation
from course_utils.checks.exercise import Exercise, Finding, Misconception
from course_utils.checks.judges.lesson_07_gradient_accumulation import LESSON
from course_utils.checks.judges.orders import Broke, Lines
from course_utils.checks.judges.predictions import one_case

WINDOW = Lines(
    {
        "A": "clip_grad_norm_(model.parameters(), 0.1)",
        "B": "second.backward()",
        "C": "scheduler.step()",
        "D": "first = cross_entropy(model(images[0]), labels[0]) / 2",
        "E": "optimizer.zero_grad()",
        "F": "first.backward()",
        "G": "second = cross_entropy(model(images[1]), labels[1]) / 2",
        "H": "optimizer.step()",
    }
)
_LIMIT, _RATE, _FACTOR = 0.1, 4.0, 0.5


@dataclass(frozen=True)
class _Run:
    """The weights at the start and after each window, and the most graphs that waited for their pass at a time."""

    weights: list[torch.Tensor]
    waiting: int


def _numbers() -> torch.Generator:
    return torch.Generator().manual_seed(3)


def _model() -> nn.Module:
    """Return a model with gradients left over from before."""
    model = nn.Linear(4, 3, dtype=torch.float64)
    numbers = _numbers()
    for parameter in model.parameters():
        parameter.data = torch.randn(parameter.shape, dtype=torch.float64, generator=numbers)
        parameter.grad = torch.randn(parameter.shape, dtype=torch.float64, generator=numbers)
    return model


def _windows() -> list[tuple[torch.Tensor, torch.Tensor]]:
    """Return images, of shape (2, 5, 4), and labels, of shape (2, 5), of three windows."""
    numbers = _numbers()
    images = [torch.randn(2, 5, 4, dtype=torch.float64, generator=numbers) for _ in range(3)]
    return [(these, torch.randint(3, (2, 5), generator=numbers)) for these in images]


def _flat(model: nn.Module) -> torch.Tensor:
    return parameters_to_vector(model.parameters()).detach().clone()


@cache
def _executed(order: tuple[str, ...]) -> _Run | Broke:
    """Run the order once for each window."""
    model = _model()
    optimizer = torch.optim.SGD(model.parameters(), lr=_RATE)
    scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, _FACTOR)
    waiting: list[int] = []
    most = 0

    def noted(scores: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        nonlocal most
        loss = cross_entropy(scores, labels)
        waiting.append(0)
        loss.register_hook(lambda gradient: waiting.clear())
        most = max(most, len(waiting))
        return loss

    names = {"model": model, "optimizer": optimizer, "scheduler": scheduler, "clip_grad_norm_": clip_grad_norm_}
    names["cross_entropy"] = noted
    weights = [_flat(model)]
    with warnings.catch_warnings(action="ignore"):  # the scheduler warns of an order
        for images, labels in _windows():
            names.update(images=images, labels=labels)
            broke = WINDOW.execute(list(order), names)
            if broke is not None:
                return broke
            weights.append(_flat(model))
    return _Run(weights, most)


@cache
def _right() -> list[torch.Tensor]:
    """Return the weights at the start and after each window: moved by its clipped gradient, at its rate."""
    model = _model()
    weights = [_flat(model)]
    for number, (images, labels) in enumerate(_windows()):
        loss = cross_entropy(model(images.flatten(0, 1)), labels.flatten())
        gradient = parameters_to_vector(torch.autograd.grad(loss, list(model.parameters())))
        clipped = gradient * min(1.0, _LIMIT / float(gradient.norm()))
        weights.append(weights[-1] - _RATE * _FACTOR**number * clipped)
        vector_to_parameters(weights[-1], model.parameters())
    return weights


def _as_far_as_right(run: _Run) -> int:
    """Return after how many windows the weights are right, without a wrong one before."""
    close = [
        torch.allclose(found, right, atol=1e-5) for found, right in zip(run.weights[1:], _right()[1:], strict=True)
    ]
    return len(close) if all(close) else close.index(False)


def _judge(case: Case, seen: Observation) -> Iterator[Finding]:
    complete = list(WINDOW.complete(seen["value"]))
    yield from complete
    if not all(finding.ok for finding in complete):
        return
    run = _executed(tuple(WINDOW.read(seen["value"])))
    if isinstance(run, Broke):
        yield Finding("names", False, WINDOW.told(run))
        return
    right = _as_far_as_right(run)
    text = f"We ran your order on three windows: in window {right + 1} the weights moved otherwise than they should."
    yield Finding("weights", right == 3, text)
    text = "We ran your order: when a micro-batch's loss was computed, another one's graph still waited for its pass."
    yield Finding("one graph", run.waiting == 1, text)


def _debrief(seen: Sequence[tuple[Case, Observation]]) -> Iterator[str]:
    """Say where else a line may stand, from running the other orders."""
    yield from WINDOW.elsewhere(WINDOW.read(seen[0][1]["value"]), "EA", _trains)


def _trains(order: Sequence[str]) -> bool:
    run = _executed(tuple(order))
    return isinstance(run, _Run) and _as_far_as_right(run) == 3


def _places(seen: Observation) -> dict[str, int] | None:
    """Return where each line stands in an order that runs; None for an order that does not."""
    order = WINDOW.read(seen["value"])
    if sorted(order) != sorted(WINDOW.code) or isinstance(_executed(tuple(order)), Broke):
        return None
    return {letter: place for place, letter in enumerate(order)}


def _clips_too_early(case: Case, seen: Observation) -> bool:
    at = _places(seen)
    return at is not None and at["A"] < max(at["B"], at["F"]) < at["H"]


def _clears_within(case: Case, seen: Observation) -> bool:
    at = _places(seen)
    return at is not None and min(at["B"], at["F"]) < at["E"] < at["H"]


def _clears_at_the_end(case: Case, seen: Observation) -> bool:
    at = _places(seen)
    return at is not None and at["E"] > max(at["H"], min(at["B"], at["F"]))


def _behind_the_step(letter: str, seen: Observation) -> bool:
    at = _places(seen)
    return at is not None and at["H"] < at[letter]


def _scheduler_first(case: Case, seen: Observation) -> bool:
    at = _places(seen)
    return at is not None and at["C"] < at["H"]


def _both_forwards_first(case: Case, seen: Observation) -> bool:
    at = _places(seen)
    return at is not None and max(at["D"], at["G"]) < min(at["F"], at["B"])


EXERCISE = Exercise(
    id="order_the_window",
    title="Put a window in order",
    lesson=LESSON,
    difficulty=2,
    minutes=8,
    points=2,
    call=None,
    cases=one_case,
    judge=_judge,
    hints=(
        "Which lines belong to a micro-batch, and which to the window? Those of a micro-batch come in pairs: its loss, "
        "and its pass.",
        "The first loss gets its pass before the second one is computed. Clearing comes before the first of the two "
        "passes, as something old lies in .grad. What looks at the whole gradient comes behind the second.",
        "Clear. Loss and pass of one micro-batch, then of the other. Then clip, the optimizer's step, and last the "
        "scheduler's, which sets the rate of the next window.",
    ),
    debrief=_debrief,
    misconceptions=(
        Misconception(
            "clipped before the sum is complete",
            "Your order clips before the last of the two passes, so what that pass adds is not clipped.",
            _clips_too_early,
        ),
        Misconception(
            "stepped before the sum is complete",
            "Your order steps before the last of the two passes, so what that pass brings is not in its window's step.",
            lambda case, seen: _behind_the_step("B", seen) or _behind_the_step("F", seen),
        ),
        Misconception(
            "clipped after the step",
            "Your order clips after the optimizer's step, which has used the gradient as it was.",
            lambda case, seen: _behind_the_step("A", seen),
        ),
        Misconception(
            "cleared within the window",
            "Your order clears between a pass and the step that should use it, so what that pass brought is lost.",
            _clears_within,
        ),
        Misconception(
            "cleared at the end only",
            "Your order clears after the step and not before the first pass, so what lay in .grad at the start goes "
            "into the first step.",
            _clears_at_the_end,
        ),
        Misconception(
            "scheduler before optimizer",
            "In your order the scheduler steps before the optimizer, so the first step is made at the second rate.",
            _scheduler_first,
        ),
        Misconception(
            "both graphs at a time",
            "Your order computes both losses before the first pass, so two graphs are kept at a time. Windows are "
            "there to keep one.",
            _both_forwards_first,
        ),
    ),
)
