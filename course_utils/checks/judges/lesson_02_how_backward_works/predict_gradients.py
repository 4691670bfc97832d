"""Judging `predict_gradients`: predict eight gradients."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch
from torch.autograd import backward

from course_utils.checks.compare import close, listed
from course_utils.checks.data import Array, Case, Observation, Value
from course_utils.checks.exercise import Exercise, Finding, Misconception
from course_utils.checks.judges.lesson_02_how_backward_works import LESSON
from course_utils.checks.judges.predictions import Table, one_case


def _eight_gradients() -> dict[str, float | None]:
    """Run what the exercise shows, and read the gradients that it asks for."""

    def leaf(*values: float) -> torch.Tensor:
        return torch.tensor(values[0] if len(values) == 1 else values, requires_grad=True)

    found: dict[str, float | None] = {}
    x = leaf(3.0)
    a = 2 * x
    backward(a * x + 4 * a)
    found["fan_out"] = _number(x.grad)
    x = leaf(2.0)
    backward(x**3)
    backward(5 * x)
    found["two_passes"] = _number(x.grad)
    x = leaf(2.0, 3.0, 5.0)
    backward(x * x, torch.tensor([1.0, 10.0, 100.0]))
    found["vector_seed"] = _number(x.grad, 1)
    x = leaf(3.0)
    backward(x * x * x, torch.tensor(0.5))
    found["half_seed"] = _number(x.grad)
    w, x = leaf(2.0), leaf(2.0, 3.0, 5.0)
    backward((w * x).sum())
    found["broadcast"] = _number(w.grad)
    x = leaf(4.0, 7.0, 7.0)
    backward(x.amax())
    found["tie"] = _number(x.grad, 2)
    x = leaf(3.0)
    torch.autograd.grad(x * x, x)
    found["after_grad"] = _number(x.grad)
    p, q = leaf(2.0), leaf(7.0)
    backward(p * q, inputs=[p])
    found["left_out"] = _number(q.grad)
    return found


def _number(grad: torch.Tensor | None, *index: int) -> float | None:
    return None if grad is None else float(grad[index])


TABLE = Table(
    _eight_gradients,
    reasons={
        "fan_out": "y = 2x² + 8x, so both ways from x to y together give 4x + 8.",
        "two_passes": "12 from the first pass and 5 from the second: .grad adds.",
        "vector_seed": "The slope 2 * 3 of that number, times its seed 10.",
        "half_seed": "The slope 27, times the seed 0.5.",
        "broadcast": "w was used for three numbers, so their gradients 2, 3 and 5 add up.",
        "tie": "amax shares the gradient evenly between the two largest numbers.",
        "after_grad": "autograd.grad returns what it finds and writes into no .grad.",
        "left_out": "inputs= names the only tensor that is written to.",
    },
)


def _judge(case: Case, seen: Observation) -> Iterator[Finding]:
    value = seen["value"]
    texts = [name for name, entry in value.items() if isinstance(entry, str)] if isinstance(value, dict) else []
    message = f"Your prediction gives a text for {listed(texts)}. Write a number, or None without quotes."
    yield Finding("texts", not texts, message)
    many = [name for name, entry in value.items() if _is_many(entry)] if isinstance(value, dict) else []
    message = f"Your prediction gives a list or a tensor with dimensions for {listed(many)}. Write one number."
    yield Finding("several numbers", not many, message)
    if not texts and not many:
        yield from TABLE.judge(case, seen)


def _is_many(entry: Value) -> bool:
    return isinstance(entry, list) or (isinstance(entry, Array) and bool(entry.shape))


def _unwritten(seen: Observation) -> list[float]:
    """Return the numbers that were given for what no pass wrote to."""
    value = seen["value"] if isinstance(seen["value"], dict) else {}
    given = [value.get(name) for name in ("after_grad", "left_out")]
    plain = [it.tensor().item() if isinstance(it, Array) and not it.shape else it for it in given]
    return [float(it) for it in plain if isinstance(it, int | float) and not isinstance(it, bool)]


def _predicted(**wrong: tuple[float, ...]) -> Callable[[Case, Observation], bool]:
    """Tell whether one of the named entries holds one of the wrong numbers given for it."""

    def holds(case: Case, seen: Observation) -> bool:
        value = seen["value"]
        return isinstance(value, dict) and any(
            close(value.get(name), number) and type(value[name]) is not bool
            for name, numbers in wrong.items()
            for number in numbers
        )

    return holds


EXERCISE = Exercise(
    id="predict_gradients",
    title="Predict eight gradients",
    lesson=LESSON,
    difficulty=1,
    minutes=8,
    points=2,
    call=None,
    cases=one_case,
    judge=_judge,
    hints=(
        "Ask three things each time: which paths lead from the leaf to the result, what seed starts the pass, and "
        "whether this pass writes into that .grad at all.",
        "Within one pass, sum over all paths. Over several passes, .grad sums what each pass gave. A seed multiplies. "
        "autograd.grad writes into no .grad, and inputs= names the only tensors that are written to.",
        "fan_out: write y in terms of x alone, then differentiate. vector_seed: 2*x times the seed at that place. "
        "broadcast: w was used three times. tie: two entries share one gradient. Where nothing was written, "
        ".grad is None.",
    ),
    misconceptions=(
        Misconception(
            "one branch only",
            "Your fan_out is what some paths from x to y bring, and not all. There are three: two through `a`, which "
            "is used twice, and a direct one. Their gradients add up.",
            _predicted(fan_out=(6.0, 8.0, 12.0, 14.0)),
        ),
        Misconception(
            "the second pass replaces",
            "Your two_passes is the gradient of one pass alone. .grad keeps what it holds, and each pass adds to it.",
            _predicted(two_passes=(5.0, 12.0)),
        ),
        Misconception(
            "the seed is ignored",
            "You left the seed out: the gradient that backward() is given multiplies what comes out.",
            _predicted(vector_seed=(6.0,), half_seed=(27.0,)),
        ),
        Misconception(
            "nothing is zero",
            "You gave 0 for a .grad that no pass wrote to. Such a .grad holds no tensor of zeros: it holds "
            "something else.",
            lambda case, seen: 0 in _unwritten(seen),
        ),
        Misconception(
            "a pass writes everywhere",
            "You gave a gradient for a .grad that was not written to. Look at which function started the pass, and "
            "at what inputs= names.",
            lambda case, seen: any(_unwritten(seen)),
        ),
        Misconception(
            "a tie goes to one",
            "Your tie is as if the whole gradient went to one entry, or to each. Two entries are the largest, and the "
            "task's rule is about both.",
            _predicted(tie=(1.0, 0.0)),
        ),
    ),
    debrief=TABLE.debrief,
)
