"""Predictions of lesson 07, settled by running what the exercise shows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import torch

from course_utils.checks.compare import describe
from course_utils.checks.data import Case, Observation
from course_utils.checks.exercise import Exercise, Finding, Misconception
from course_utils.checks.lessons.predictions import Table, one_case
from course_utils.checks.lessons.windows_07 import LESSON

# None, zero, or another number?

Statements = Callable[[torch.Tensor, torch.optim.Optimizer], Any]


def _nothing(w: torch.Tensor, optimizer: torch.optim.Optimizer) -> None:
    return


def _pass(factor: float, w: torch.Tensor, optimizer: torch.optim.Optimizer) -> None:
    (factor * w).backward()


def _two_uses(w: torch.Tensor, optimizer: torch.optim.Optimizer) -> None:
    (w * w + w).backward()


def _unused(w: torch.Tensor, optimizer: torch.optim.Optimizer) -> None:
    (3 * torch.tensor(5.0, requires_grad=True)).backward()


def _by_grad(w: torch.Tensor, optimizer: torch.optim.Optimizer) -> None:
    torch.autograd.grad(3 * w, w)


def _clear(w: torch.Tensor, optimizer: torch.optim.Optimizer) -> None:
    optimizer.zero_grad()


def _fill(w: torch.Tensor, optimizer: torch.optim.Optimizer) -> None:
    optimizer.zero_grad(set_to_none=False)


def _step(w: torch.Tensor, optimizer: torch.optim.Optimizer) -> None:
    optimizer.step()


def _freeze(w: torch.Tensor, optimizer: torch.optim.Optimizer) -> None:
    w.requires_grad_(False)


_THREE, _FOUR = partial(_pass, 3.0), partial(_pass, 4.0)

# The statements of each entry; the ones with `kept` note .grad after the first statement and ask for that tensor.
GRADS: dict[str, tuple[Statements, ...]] = {
    "fresh": (_nothing,),
    "twice": (_THREE, _FOUR),
    "two_uses": (_two_uses,),
    "times_zero": (partial(_pass, 0.0),),
    "unused": (_unused,),
    "by_grad": (_by_grad,),
    "stepped": (_THREE, _step),
    "cleared": (_THREE, _clear),
    "cleared_then": (_THREE, _clear, _FOUR),
    "filled": (_THREE, _fill),
    "filled_fresh": (_fill,),
    "frozen": (_THREE, _freeze),
    "kept_added": (_THREE, _FOUR),
    "kept_cleared": (_THREE, _clear),
    "kept_filled": (_THREE, _fill),
}


def _left(name: str, statements: tuple[Statements, ...]) -> float | None:
    w = torch.tensor(2.0, requires_grad=True)
    optimizer = torch.optim.SGD([w], lr=0.1)
    statements[0](w, optimizer)
    noted = w.grad
    for statement in statements[1:]:
        statement(w, optimizer)
    result = noted if name.startswith("kept") else w.grad
    return None if result is None else float(result)


LEFT = Table(lambda: {name: _left(name, statements) for name, statements in GRADS.items()})


def _judge_grads(case: Case, seen: Observation) -> Iterator[Finding]:
    yield from _of_a_kind(seen["value"], (str, bool), "None or a number, without quotes")
    yield from LEFT.judge(case, seen)


def _of_a_kind(value: Any, odd: tuple[type, ...], expected: str) -> Iterator[Finding]:
    """Find whether entries have types in which no right one can be given, and say so in place of a count."""
    entries = value if isinstance(value, dict) else {}
    for key, entry in entries.items():
        if key in {**GRADS, **MOVES} and type(entry) in odd:
            yield Finding("kind", False, f"Your entry for {key} is {describe(entry)}; expected {expected}.")
            return


predict_none_or_zero = Exercise(
    id="predict_none_or_zero",
    title="None, zero, or another number?",
    lesson=LESSON,
    difficulty=1,
    minutes=10,
    points=2,
    call=None,
    cases=one_case,
    judge=_judge_grads,
    hints=(
        "Two things write to .grad: a backward pass that reaches the leaf, and code that clears.",
        "A pass that reaches w adds, be it a zero. A pass that does not reach w leaves .grad alone. zero_grad() by "
        "default takes the tensor away; set_to_none=False writes zeros into the tensor, if there is one.",
        "Ask for `kept_...`: is the tensor that was noted the same object that is written to later? A second pass adds "
        "in place, zeros are written in place, and taking a tensor away from .grad does not change the tensor.",
    ),
    misconceptions=(
        Misconception(
            "zero_grad writes zeros",
            "You took zero_grad() to write zeros. By default it leaves no tensor in .grad at all.",
            LEFT.but(cleared=0.0),
        ),
        Misconception(
            "no gradient is zero",
            "You took .grad to be 0 where no pass has reached w. There is no tensor yet, and nothing to read a 0 from.",
            LEFT.but(fresh=0.0, unused=0.0, by_grad=0.0, filled_fresh=0.0),
        ),
        Misconception(
            "zero is None",
            "You took a gradient of 0 to be None. A pass that reaches w with a zero writes that zero.",
            LEFT.but(times_zero=None),
        ),
        Misconception(
            "overwritten",
            "You took a second pass to replace what the first one left. It adds.",
            LEFT.but(twice=4.0, kept_added=3.0),
        ),
        Misconception(
            "step clears",
            "You took optimizer.step() to clear the gradients. It reads them, and leaves them where they are.",
            lambda case, seen: any(LEFT.but(stepped=wrong)(case, seen) for wrong in (None, 0.0)),
        ),
        Misconception(
            "a noted gradient is a copy",
            "You took the tensor that was noted to be a copy. It is the very tensor that .grad holds, and what is "
            "written into it in place shows.",
            LEFT.but(kept_added=3.0, kept_filled=3.0),
        ),
    ),
)


# Does a step move a parameter whose gradient is zero or None?

MOVES: dict[str, tuple[str, dict[str, float], str]] = {
    "sgd_none": ("SGD", {}, "clear"),
    "sgd_zero": ("SGD", {}, "fill"),
    "momentum_none": ("SGD", {"momentum": 0.9}, "clear"),
    "momentum_zero": ("SGD", {"momentum": 0.9}, "fill"),
    "decay_none": ("SGD", {"weight_decay": 0.1}, "clear"),
    "decay_zero": ("SGD", {"weight_decay": 0.1}, "fill"),
    "adam_none": ("Adam", {}, "clear"),
    "adam_zero": ("Adam", {}, "fill"),
    "adam_fresh_zero": ("Adam", {}, "fresh"),
    "adamw_fresh_zero": ("AdamW", {}, "fresh"),
    "frozen_left": ("SGD", {}, "freeze"),
    "frozen_none": ("SGD", {"momentum": 0.9}, "clear, freeze"),
}


def _moved(kind: str, options: dict[str, float], after: str) -> bool:
    w = torch.tensor(2.0, requires_grad=True)
    optimizer: torch.optim.Optimizer = getattr(torch.optim, kind)([w], lr=0.1, **options)
    if after == "fresh":
        (0 * w).backward()
    else:
        (3 * w).backward()
        optimizer.step()
        if "clear" in after or after == "fill":
            optimizer.zero_grad(set_to_none="clear" in after)
        if "freeze" in after:
            w.requires_grad_(False)
    before = w.item()
    optimizer.step()
    return w.item() != before


MOVED = Table(lambda: {name: _moved(*given) for name, given in MOVES.items()})


def _judge_moved(case: Case, seen: Observation) -> Iterator[Finding]:
    yield from _of_a_kind(seen["value"], (str, int, float, type(None)), "True or False, without quotes")
    yield from MOVED.judge(case, seen)


predict_moved = Exercise(
    id="predict_moved",
    title="Does this step move it?",
    lesson=LESSON,
    difficulty=2,
    minutes=10,
    points=2,
    call=None,
    cases=one_case,
    judge=_judge_moved,
    hints=(
        "An optimizer goes through its parameters and asks one thing first: is there a gradient?",
        "Where .grad is None the parameter is skipped, with all that belongs to it. Where it is a tensor, the whole "
        "formula is computed: gradient, momentum, decay.",
        "For each entry write down .grad at the last step: None, 0 or 3. For None nothing moves. For 0 ask whether the "
        "optimizer remembers an earlier gradient, or shrinks weights (AdamW does by default). For 3 it moves. Look "
        "whether anything asks for requires_grad.",
    ),
    misconceptions=(
        Misconception(
            "zero moves nothing",
            "You took a zero gradient to leave the parameter where it is. Momentum, Adam's averages and weight decay "
            "move it all the same.",
            MOVED.but(momentum_zero=False, decay_zero=False, adam_zero=False, adamw_fresh_zero=False),
        ),
        Misconception(
            "None moves",
            "You took None to be like zero. A parameter whose .grad is None is skipped, momentum and decay included.",
            MOVED.but(momentum_none=True, decay_none=True, adam_none=True),
        ),
        Misconception(
            "frozen is safe",
            "You took a frozen parameter to be safe from its optimizer. The optimizer reads .grad, not requires_grad, "
            "and an old gradient is still there.",
            MOVED.but(frozen_left=False),
        ),
    ),
)
