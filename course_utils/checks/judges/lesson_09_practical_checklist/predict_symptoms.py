"""Judging `predict_symptoms`: raises, warns, stands still, or moves?"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import nn
from torch.nn.functional import mse_loss

from course_utils.checks.compare import describe, listed
from course_utils.checks.data import Array, Case, Observation
from course_utils.checks.exercise import Exercise, Finding, Misconception
from course_utils.checks.judges.lesson_09_practical_checklist import LESSON
from course_utils.checks.judges.predictions import Table, one_case

_Step = Callable[[nn.Module, Any, torch.Tensor, torch.Tensor], None]


def _plain_step(model: nn.Module, optimizer: Any, x: torch.Tensor, y: torch.Tensor) -> None:
    mse_loss(model(x), y).backward()
    optimizer.step()


def _zero_between(model: nn.Module, optimizer: Any, x: torch.Tensor, y: torch.Tensor) -> None:
    mse_loss(model(x), y).backward()
    optimizer.zero_grad()
    optimizer.step()


def _rewrapped(model: nn.Module, optimizer: Any, x: torch.Tensor, y: torch.Tensor) -> None:
    torch.tensor(mse_loss(model(x), y).item(), requires_grad=True).backward()
    optimizer.step()


def _under_no_grad(model: nn.Module, optimizer: Any, x: torch.Tensor, y: torch.Tensor) -> None:
    with torch.no_grad():
        loss = mse_loss(model(x), y)
    loss.backward()
    optimizer.step()


def _in_eval(model: nn.Module, optimizer: Any, x: torch.Tensor, y: torch.Tensor) -> None:
    _plain_step(model.eval(), optimizer, x, y)


def _rounded(model: nn.Module, optimizer: Any, x: torch.Tensor, y: torch.Tensor) -> None:
    mse_loss(model(x).round(), y).backward()
    optimizer.step()


def _twice(model: nn.Module, optimizer: Any, x: torch.Tensor, y: torch.Tensor) -> None:
    loss = mse_loss(model(x), y)
    loss.backward()
    loss.backward()
    optimizer.step()


def _scheduler_first(model: nn.Module, optimizer: Any, x: torch.Tensor, y: torch.Tensor) -> None:
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 10)
    scheduler.step()
    _plain_step(model, optimizer, x, y)


def _replaced(model: nn.Module, optimizer: Any, x: torch.Tensor, y: torch.Tensor) -> None:
    model.weight = nn.Parameter(torch.zeros(1, 3))
    model.bias = nn.Parameter(torch.zeros(1))
    _plain_step(model, optimizer, x, y)


def _wrong_shape(model: nn.Module, optimizer: Any, x: torch.Tensor, y: torch.Tensor) -> None:
    _plain_step(model, optimizer, x, y[:, 0])


def _one_frozen(model: nn.Module, optimizer: Any, x: torch.Tensor, y: torch.Tensor) -> None:
    for parameter in [*model.parameters()][:1]:
        parameter.requires_grad_(False)
    _plain_step(model, optimizer, x, y)


def _hard_choice(model: nn.Module, optimizer: Any, x: torch.Tensor, y: torch.Tensor) -> None:
    (model(x) > 0.5).float().sub(y).pow(2).mean().backward()
    optimizer.step()


_STEPS: dict[str, _Step] = {
    "zero_between": _zero_between,
    "rewrapped": _rewrapped,
    "under_no_grad": _under_no_grad,
    "in_eval": _in_eval,
    "rounded": _rounded,
    "twice": _twice,
    "scheduler_first": _scheduler_first,
    "replaced": _replaced,
    "wrong_shape": _wrong_shape,
    "one_frozen": _one_frozen,
    "hard_choice": _hard_choice,
}


def _symptom(step: _Step) -> str:
    """Run one step and say what it did."""
    with torch.random.fork_rng(devices=[]), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        torch.manual_seed(0)
        model = nn.Linear(3, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        held = [parameter.detach().clone() for parameter in optimizer.param_groups[0]["params"]]
        try:
            step(model, optimizer, torch.rand(8, 3), torch.rand(8, 1))
        except RuntimeError:
            return "raises"
        if caught:
            return "warns"
        after = [parameter.detach() for parameter in optimizer.param_groups[0]["params"]]
        moved = any(not torch.equal(a, b) for a, b in zip(held, after, strict=True))
        return "moves" if moved else "stands still"


_REASONS = {
    "zero_between": "When the optimizer steps, every .grad is None, and it skips such parameters.",
    "rewrapped": "The new tensor is a leaf: backward fills its own .grad, and never comes to the model.",
    "under_no_grad": "The loss has no graph, so backward has nowhere to begin.",
    "in_eval": "Evaluation mode changes what dropout and batch norm do. It does not stop the recording.",
    "rounded": "round is recorded, and its derivative is zero: gradients of zeros arrive.",
    "twice": "The first pass freed what the graph had saved, and the second needs it.",
    "scheduler_first": "The step is made, with a warning: the scheduler has turned before the first step.",
    "replaced": "The gradients arrive at the new tensors. The optimizer holds the old ones.",
    "wrong_shape": "(8, 1) minus (8,) is broadcast to (8, 8). A loss comes out, with a warning.",
    "one_frozen": "The weight gets no gradient and is skipped. The bias gets one, and moves.",
    "hard_choice": "A comparison gives True and False, which have no graph. float() makes numbers of them, no graph.",
}

_TABLE = Table(lambda: {name: _symptom(step) for name, step in _STEPS.items()}, reasons=_REASONS)
_WORDS = ("raises", "warns", "stands still", "moves")


def _judge(case: Case, seen: Observation) -> Iterator[Finding]:
    mine = seen["value"]
    if isinstance(mine, dict):
        open_or_known = (*_WORDS, ...)
        odd = [key for key, word in mine.items() if isinstance(word, Array | list | dict) or word not in open_or_known]
        odd = [key for key in odd if key in _STEPS and describe(mine[key]) != "still `...`"]
        text = f"Each entry is one of the words {listed(_WORDS)}. Look at {listed(odd)}."
        yield Finding("words", not odd, text)
        if odd:
            return
    yield from _TABLE.judge(case, seen)


def _says(**entries: tuple[str, ...]) -> Callable[[Case, Observation], bool]:
    """Recognise a prediction that says one of these words for each of these entries."""

    def explains(case: Case, seen: Observation) -> bool:
        mine = seen["value"]
        return isinstance(mine, dict) and all(
            isinstance(mine.get(name), str) and mine[name] in words for name, words in entries.items()
        )

    return explains


EXERCISE = Exercise(
    id="predict_symptoms",
    title="Raises, warns, stands still, or moves?",
    lesson=LESSON,
    difficulty=2,
    minutes=8,
    points=2,
    call=None,
    cases=one_case,
    judge=_judge,
    debrief=_TABLE.debrief,
    hints=(
        "For each entry ask three things: does backward find a graph, do gradients arrive at the tensors that the "
        "optimizer holds, and are they still there when it steps?",
        "A missing graph raises. A graph that leads elsewhere, gradients of zero, and gradients that were cleared do "
        "not: nobody is told. Two of the entries are so common that PyTorch warns.",
        "Raises: no graph at all, or a graph whose saved tensors are gone. Warns: a step of the wrong order, a shape "
        "that does not fit. For the rest, follow the gradient from the loss to the optimizer's own tensors.",
    ),
    misconceptions=(
        Misconception(
            "a new leaf is a repair",
            "You take it that a loss which is made anew as a tensor with requires_grad=True still leads to the model.",
            _says(rewrapped=("moves",)),
        ),
        Misconception(
            "eval() is no_grad",
            "You take it that evaluation mode stops gradients.",
            _says(in_eval=("raises", "stands still")),
        ),
        Misconception(
            "no gradient is an error",
            "You expect an error where a gradient of zero arrives: rounding is recorded, and its derivative is 0.",
            _says(rounded=("raises",)),
        ),
        Misconception(
            "the optimizer follows the model",
            "You take it that an optimizer looks up the model's parameters at every step.",
            _says(replaced=("moves",)),
        ),
    ),
)
