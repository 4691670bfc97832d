"""Judging `step_in_backward`: step inside backward."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import torch

from course_utils.checks.compare import close, describe, listed, right_value
from course_utils.checks.data import Case, Observation
from course_utils.checks.exercise import Exercise, Finding, Misconception
from course_utils.checks.judges.lesson_07_gradient_accumulation import LESSON
from course_utils.checks.judges.lesson_07_gradient_accumulation.loops import well_formed
from course_utils.checks.judges.lesson_07_gradient_accumulation.windows import Tensors
from course_utils.checks.scenes.lesson_07_gradient_accumulation.classifier import batches_of
from course_utils.checks.scenes.lesson_07_gradient_accumulation.step_in_backward import loss_of, tied


def _cases(seed: int) -> list[Case]:
    return [
        Case("three passes", {"seed": seed + 1, "sizes": [6, 6, 2], "lr": 1.3, "times": 1.0}),
        Case("long gradients and a low rate", {"seed": seed + 2, "sizes": [7, 6, 2], "lr": 5e-7, "times": 1e5}),
    ]


def _taught(case: Case) -> tuple[list[Tensors], Tensors]:
    """Return the parameters after each of two steps of plain SGD, and the gradient that a third pass gives."""
    model = tied(case)
    live = {name: item for name, item in model.named_parameters() if item.requires_grad and "spare" not in name}
    after: list[Tensors] = []
    gradient: Tensors = {}
    for number, batch in enumerate(batches_of(case)):
        values = torch.autograd.grad(loss_of(model, batch, case), list(live.values()))
        gradient = dict(zip(live, values, strict=True))
        if number < 2:
            with torch.no_grad():
                for name, item in live.items():
                    item.sub_(case.given["lr"] * gradient[name])
            after.append({name: item.detach().clone() for name, item in model.named_parameters()})
    gradient |= {f"spare.{name}": 2 * item.detach() for name, item in model.spare.named_parameters()}
    return after, gradient


def _judge(case: Case, seen: Observation) -> Iterator[Finding]:
    well_formed(seen, "passes", "gradients", "parameters")
    after, gradient = _taught(case)
    kinds = seen["returned"]
    handles = isinstance(kinds, list) and len(kinds) > 0 and all(kind == "handle" for kind in kinds)
    text = f"You returned {describe(kinds)}; expected a list of the handles that registering the hooks gave."
    yield Finding("handles", handles, text)
    yield Finding("removed" if seen["hooks left"] else "same", seen["same"], _of_change(seen))
    for number, (mine, right) in enumerate(zip(seen["passes"], after, strict=True)):
        left = [name for name, value in mine["gradients"].items() if value is not None]
        ended = "one backward pass" if number == 0 else "two backward passes"
        text = f"After {ended} .grad is not None for {listed(left)}. The memory should be free by then."
        yield Finding("gradients", not left, text)
        for name, value in right.items():
            yield right_value(mine["parameters"].get(name), value, f"After {ended}, {name}")
    for name, value in after[0].items():
        yield right_value(seen["recorded"].get(name), value, f"After a pass with create_graph=True, {name}")
    parameters = "1 parameter" if seen["waiting"] == 1 else f"{seen['waiting']} parameters"
    text = (
        f"When a gradient arrived, .grad was not None for {parameters}. Each gradient should be used and let go before "
        "the next parameter's arrives."
    )
    yield Finding("waiting", seen["waiting"] == 0, text)
    text = (
        "When a parameter's gradient arrived, a tensor as large as an earlier one, which the pass made or filled, "
        "was still in memory, held by something besides .grad. A gradient, and what is made of it, should be used and "
        "let go before the next parameter's arrives."
    )
    yield Finding("alive", seen["waiting"] > 0 or seen["alive"] == 0, text)
    text = "Calling your function left the grad mode or the state of the random numbers different."
    yield Finding("modes", seen["modes"], text)
    text = "After remove() on each of your handles a backward pass still moved the parameters."
    yield Finding("removed", not seen["moved"], text)
    for name, value in gradient.items():
        if not seen["moved"]:
            yield right_value(seen["gradients"].get(name), value, f"With your handles removed, .grad of {name}")


def _of_change(seen: Observation) -> str:
    """Say what is not as it was, where something is not."""
    if seen["hooks left"]:
        hooks = "1 hook is" if seen["hooks left"] == 1 else f"{seen['hooks left']} hooks are"
        return f"After remove() on each of your handles {hooks} left on the model: return a handle for each hook."
    if seen["switched"]:
        return f"Your function changed requires_grad of {listed(seen['switched'])}."
    return "A parameter of the model is another object than before."


def _gradient_left(case: Case, seen: Observation) -> bool:
    """Return whether the first pass moved the parameters rightly and left the gradients."""
    first, right = seen["passes"][0], _taught(case)[0][0]
    moved = all(close(first["parameters"].get(name), value) for name, value in right.items())
    return moved and any(value is not None for value in first["gradients"].values())


def _zeros(seen: Observation) -> bool:
    """Return whether all that the first pass left in .grad is zeros."""
    left = [value for value in seen["passes"][0]["gradients"].values() if value is not None]
    return all(not bool(value.tensor().any()) for value in left)


def _nothing_happened(case: Case, seen: Observation) -> bool:
    model = tied(case)
    first = seen["passes"][0]["parameters"]
    still = all(close(first.get(name), value.detach()) for name, value in model.named_parameters())
    return still and bool(seen["returned"])


def _twice_by_names(case: Case, seen: Observation) -> bool:
    """Tell a first pass that moved what has two names by twice its gradient, and all else rightly."""
    right, mine, before = _taught(case)[0][0], seen["passes"][0]["parameters"], dict(tied(case).named_parameters())
    double = {name for name in right if name.startswith("head.")}
    wanted = {name: 2 * it - before[name].detach() if name in double else it for name, it in right.items()}
    return all(close(mine.get(name), it) for name, it in wanted.items()) and not _right_numbers(mine, right)


def _right_numbers(mine: Any, right: Tensors) -> bool:
    return all(close(mine.get(name), it) for name, it in right.items())


def _debrief(seen: Sequence[tuple[Case, Observation]]) -> Iterator[str]:
    model = tied(seen[0][0])
    moved = [item for name, item in model.named_parameters() if item.requires_grad and "spare" not in name]
    sizes = [item.nbytes for item in moved]
    yield "When a gradient arrived, no earlier one was in memory."
    yield (
        f"A step after the pass would hold all of them, {sum(sizes)} bytes here. Yours held one at a time, at most "
        f"{max(sizes)} bytes."
    )


EXERCISE = Exercise(
    id="step_in_backward",
    title="Step inside backward",
    lesson=LESSON,
    difficulty=3,
    minutes=15,
    points=3,
    call="step_in_backward(model, lr)",
    counted=True,
    cases=_cases,
    judge=_judge,
    hints=(
        "Which hook of a tensor runs when its .grad is complete?",
        "register_post_accumulate_grad_hook takes a function of the parameter. It gives a handle. It refuses a "
        "parameter that requires no gradient.",
        "Write hook(parameter): under no_grad subtract lr * parameter.grad in place, then set parameter.grad to None. "
        "Register it on each of model.parameters() that requires a gradient, and return the handles in a list.",
    ),
    debrief=_debrief,
    misconceptions=(
        Misconception(
            "gradients left",
            "The first pass moved the parameters by the right amount, but .grad still holds gradients after it. They "
            "take memory that is to be free by then.",
            lambda case, seen: _gradient_left(case, seen) and not _zeros(seen),
        ),
        Misconception(
            "zeros left",
            "The first pass moved the parameters by the right amount, but after it .grad holds zeros. They take as "
            "much memory as a gradient; expected is None.",
            lambda case, seen: _gradient_left(case, seen) and _zeros(seen),
        ),
        Misconception(
            "frozen parameters",
            "Your code registers a hook on a tensor that requires no gradient, as a frozen parameter does not. PyTorch "
            "refuses that.",
            ended=("RuntimeError",),
            ended_saying="cannot register a hook on a tensor that doesn't require gradient",
        ),
        Misconception(
            "nothing moves",
            "After a backward pass the parameters are what they were: no hook of yours moved one.",
            _nothing_happened,
        ),
        Misconception(
            "a hook for each name",
            "A layer that the model has under two names was moved by twice its gradient, and the other parameters "
            "rightly. A parameter needs one hook, however many names it has.",
            _twice_by_names,
        ),
    ),
    reaches=("_parameters",),
)
