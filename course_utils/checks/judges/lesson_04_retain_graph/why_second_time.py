"""Judging `why_second_time`: which repair of "a second time" gives what is wanted."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import combinations

import torch

from course_utils.checks.compare import listed
from course_utils.checks.data import Case, Observation
from course_utils.checks.exercise import Exercise, Misconception
from course_utils.checks.judges.lesson_04_retain_graph import LESSON
from course_utils.checks.judges.lesson_04_retain_graph.operations import Operations
from course_utils.checks.judges.predictions import one_case
from course_utils.checks.judges.programs import Choices, Program


@dataclass(frozen=True)
class _Raising:
    """A program that raises, what it should give, and how each repair would change it, where it can be made.

    `once` is an operation that may run only once, where the task says so.
    """

    program: Program
    result: str
    wanted: Callable[[], tuple[torch.Tensor, ...]]
    repairs: Mapping[str, Mapping[int, str]]
    once: str = ""

    def working(self) -> dict[str, int]:
        """Run each repair. Return how often the operation ran that may run once, for each that gives the numbers."""
        found = {}
        for letter, changed in self.repairs.items():
            with Operations() as operations:
                ran = self.program.run(changed)
            if ran.error is None and self._is_wanted(eval(self.result, ran.names)):
                found[letter] = operations.counts[self.once]
        return found

    def _is_wanted(self, given: tuple[torch.Tensor | None, ...]) -> bool:
        return all(
            one is not None and torch.allclose(one, other) for one, other in zip(given, self.wanted(), strict=True)
        )


def _leaf(value: float) -> torch.Tensor:
    return torch.tensor(value, requires_grad=True)


def _losses() -> tuple[torch.Tensor, ...]:
    w = _leaf(0.5)
    h = w.exp().tanh()
    return torch.autograd.grad((h - 1) ** 2 + 0.1 * h**2, w)


def _heads() -> tuple[torch.Tensor, ...]:
    w, a, b = _leaf(0.5), _leaf(1.5), _leaf(2.0)
    for_w, for_a = torch.autograd.grad((a * w.exp() - 1) ** 2, (w, a))
    return for_w, for_a, *torch.autograd.grad((b * w.exp() - 2) ** 2, b)


def _state() -> tuple[torch.Tensor, ...]:
    total, before = torch.tensor(0.0), torch.tensor(1.0)
    for x in (1.0, 2.0, 3.0):
        w = _leaf(0.5)
        after = torch.tanh(w * before + x)
        total = total + torch.autograd.grad(after, w)[0]
        before = torch.tensor(after.item())
    return (total,)


def _scale() -> tuple[torch.Tensor, ...]:
    value = 0.0
    for x in (1.0, 2.0):
        log_scale = _leaf(value)
        value -= 0.1 * float(torch.autograd.grad((log_scale.exp() * x - 5) ** 2, log_scale)[0])
    return (torch.tensor(value),)


def _cell() -> tuple[torch.Tensor, ...]:
    w = _leaf(0.5)
    return torch.autograd.grad((w * w).exp(), w)


def _apart() -> tuple[torch.Tensor, ...]:
    w, v = _leaf(1.0), _leaf(1.0)
    return *torch.autograd.grad(w.exp() ** 2, w), *torch.autograd.grad(v.exp().sin(), v)


RAISING = {
    "losses": _Raising(
        Program("""
            w = torch.tensor(0.5, requires_grad=True)
            h = w.exp().tanh()
            fit = (h - 1) ** 2
            size = 0.1 * h**2
            fit.backward()
            size.backward()
        """),
        "(w.grad,)",
        _losses,
        {
            "A": {5: "(fit + size).backward()", 6: "pass"},
            "B": {6: "(0.1 * w.exp().tanh()**2).backward()"},
            "C": {4: "size = 0.1 * h.detach()**2"},
            "D": {6: "pass"},
            "E": {5: "fit.backward(retain_graph=True)"},
        },
        once="aten::tanh_backward",
    ),
    "heads": _Raising(
        Program("""
            w = torch.tensor(0.5, requires_grad=True)
            a = torch.tensor(1.5, requires_grad=True)
            b = torch.tensor(2.0, requires_grad=True)
            h = w.exp()
            loss_a = (a * h - 1) ** 2
            loss_b = (b * h - 2) ** 2
            loss_a.backward()
            loss_b.backward()
        """),
        "(w.grad, a.grad, b.grad)",
        _heads,
        {
            "A": {7: "(loss_a + loss_b).backward()", 8: "pass"},
            "B": {8: "((b * w.exp() - 2) ** 2).backward()"},
            "C": {6: "loss_b = (b * h.detach() - 2) ** 2"},
            "D": {8: "pass"},
            "E": {7: "loss_a.backward(retain_graph=True)"},
        },
    ),
    "state": _Raising(
        Program("""
            w = torch.tensor(0.5, requires_grad=True)
            state = torch.tensor(1.0)
            for x in (1.0, 2.0, 3.0):
                state = torch.tanh(w * state + x)
                state.backward()
        """),
        "(w.grad,)",
        _state,
        {
            "A": {2: "state, total = torch.tensor(1.0), 0", 5: "    total = total + state\ntotal.backward()"},
            "C": {4: "    state = torch.tanh(w * state.detach() + x)"},
            "D": {5: "    pass\nstate.backward()"},
            "E": {5: "    state.backward(retain_graph=True)"},
        },
    ),
    "scale": _Raising(
        Program("""
            log_scale = torch.tensor(0.0, requires_grad=True)
            optimizer = torch.optim.SGD([log_scale], lr=0.1)
            scale = log_scale.exp()
            for x in (1.0, 2.0):
                optimizer.zero_grad()
                loss = (scale * x - 5) ** 2
                loss.backward()
                optimizer.step()
        """),
        "(log_scale,)",
        _scale,
        {
            "B": {6: "    loss = (log_scale.exp() * x - 5) ** 2"},
            "C": {6: "    loss = (scale.detach() * x - 5) ** 2"},
            "D": {4: "for x in (1.0,):"},
            "E": {7: "    loss.backward(retain_graph=True)"},
        },
    ),
    "cell": _Raising(
        Program("""
            w = torch.tensor(0.5, requires_grad=True)
            loss = (w * w).exp()
            loss.backward()
            loss.backward()
        """),
        "(w.grad,)",
        _cell,
        {
            "A": {3: "(loss + loss).backward()", 4: "pass"},
            "B": {4: "(w * w).exp().backward()"},
            "C": {4: "loss.detach().backward()"},
            "D": {4: "pass"},
            "E": {3: "loss.backward(retain_graph=True)"},
        },
    ),
    "apart": _Raising(
        Program("""
            w = torch.tensor(1.0, requires_grad=True)
            h = w.exp()
            first = h**2
            second = h.sin()
            (g_1,) = torch.autograd.grad(first, w)
            (g_2,) = torch.autograd.grad(second, w)
        """),
        "(g_1, g_2)",
        _apart,
        {
            "A": {5: "(g_1,) = torch.autograd.grad(first + second, w)", 6: "g_2 = g_1"},
            "B": {6: "(g_2,) = torch.autograd.grad(w.exp().sin(), w)"},
            "C": {4: "second = h.detach().sin()"},
            "D": {6: "g_2 = g_1"},
            "E": {5: "(g_1,) = torch.autograd.grad(first, w, retain_graph=True)"},
        },
        once="aten::exp",
    ),
}


@cache
def _working() -> dict[str, dict[str, int]]:
    return {name: it.working() for name, it in RAISING.items()}


def _right() -> dict[str, str]:
    found = {}
    for name, counts in _working().items():
        (found[name],) = (letter for letter, count in counts.items() if count <= 1)
    return found


_REPAIRS = Choices(
    _right,
    reasons={
        "losses": "The gradient of a sum is the sum of the gradients, and one pass goes through the trunk once.",
        "heads": "Only loss_a may teach w. For loss_b the trunk's result is a given number.",
        "state": "The state before is a given number. A pass through all steps gives another gradient.",
        "scale": "After a step log_scale has another value. A scale from before the loop would stay the old one.",
        "cell": "The first pass left in .grad all that is wanted.",
        "apart": "Two gradients that must not be added need two passes through h.",
    },
)


def _some(**names: tuple[str, ...]) -> list[dict[str, str]]:
    """Return every choice of one or more entries that get the letter under which their names are given."""
    ((letter, keys),) = names.items()
    return [dict.fromkeys(some, letter) for n in range(1, 1 + len(keys)) for some in combinations(keys, n)]


def _debrief(seen: Sequence[tuple[Case, Observation]]) -> Iterator[str]:
    """Give each entry with its reason, and the repairs that give the same numbers with more work."""
    for told, (name, counts) in zip(_REPAIRS.debrief(seen), _working().items(), strict=True):
        others = [letter for letter, count in counts.items() if count > 1]
        ran = RAISING[name].once.removeprefix("aten::")
        yield f"{told} {listed(others)} would give these numbers, too, with {ran} run twice." if others else told


EXERCISE = Exercise(
    id="why_second_time",
    title="Why a second time?",
    lesson=LESSON,
    difficulty=2,
    minutes=10,
    points=3,
    call=None,
    cases=one_case,
    judge=_REPAIRS.judge,
    hints=(
        "Ask of each program which tensor two passes go through. Then ask what is wanted: should a gradient go "
        "through that tensor once more, should the tensor be new, or should it be a given number?",
        "Where the sum of the gradients is wanted, one pass does it. Where they must not be added and both are needed, "
        "two passes have to go through the same part. Where a tensor is a given number for what follows, cut. Where "
        "its value would be out of date, compute it anew.",
        "A: two losses of one forward pass, whose gradients belong together. C: a part that the second pass must not "
        "teach, twice. B: a constant that follows a parameter. D: a pass that nobody wants. E: two different gradients "
        "of one forward pass.",
    ),
    debrief=_debrief,
    misconceptions=(
        Misconception(
            "the flag everywhere",
            "You chose the flag where it is not the repair. It lets the program run through, but the numbers are then "
            "others than those wanted, or more was run for them than is wanted.",
            _REPAIRS.any_but(*_some(E=("losses", "heads", "state", "scale", "cell"))),
        ),
        Misconception(
            "never the flag",
            "You took the flag never to be the repair. Two gradients of one forward pass, not added, need its graph "
            "twice. To run the forward pass again gives them as well, but takes another forward pass.",
            _REPAIRS.but(apart="B"),
        ),
        Misconception(
            "added what is held apart",
            "You added losses whose gradients are wanted apart.",
            _REPAIRS.any_but(*_some(A=("heads", "apart"))),
        ),
        Misconception(
            "cut where it should learn",
            "You cut off what should get a gradient. Behind the cut nothing requires one, and the pass raises another "
            "error.",
            _REPAIRS.any_but(*_some(C=("losses", "scale", "apart"))),
        ),
    ),
)
