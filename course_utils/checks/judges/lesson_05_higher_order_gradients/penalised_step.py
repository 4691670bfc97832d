"""Judging `penalised_step`: repair a step with a gradient penalty."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from operator import add
from typing import TypeAlias

import torch
from torch import nn
from torch.func import functional_call

from course_utils.checks.compare import close, describe, right_value
from course_utils.checks.data import Case, Observation
from course_utils.checks.exercise import Exercise, Finding, Misconception
from course_utils.checks.judges.lesson_05_higher_order_gradients import LESSON
from course_utils.checks.judges.lesson_05_higher_order_gradients.untouched import untouched
from course_utils.checks.judges.loops import times
from course_utils.checks.judges.remembered import Named, remembered
from course_utils.checks.scenes.lesson_05_higher_order_gradients.penalised_step import regularised


def _cases(seed: int) -> Iterator[Case]:
    yield Case("one step", {"seed": seed + 1, "sizes": [5], "momentum": 0.0, "weights": [0.3], "far": 1000.0})
    yield Case(
        "four steps with momentum",
        {"seed": seed + 2, "sizes": [5, 1, 2, 6], "momentum": 0.9, "weights": [0.2, 0.0, 1.5, 0.3], "far": 1.0},
    )


_Combine: TypeAlias = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]


def _after(
    case: Case, combine: _Combine, clear: str = "before", penalised: str = "each"
) -> tuple[list[tuple[float, float]], list[torch.Tensor]]:
    """Take the steps with gradients that `combine` makes of the loss's and the weighted penalty's.

    Where they are not cleared "before" each step but "after" it, or "never", they are added to those from before.
    In the penalty "each" parameter counts once, or as often as it has "names", or "weights" alone; the "root" is the
    length of the gradient. Return loss and weighted penalty of each step, and the parameters at the end.
    """
    model, optimizer, batches = regularised(case)
    values = []
    names = Counter(id(it) for _, it in model.named_parameters(remove_duplicate=False))
    counts = dict.fromkeys(own := dict(model.named_parameters()), 1)
    if penalised == "names":
        counts = {name: names[id(it)] for name, it in own.items()}
    if penalised == "weights":
        counts = {name: int(it.dim() > 1) for name, it in own.items()}
    for (inputs, targets), weight in zip(batches, case.given["weights"], strict=True):

        def loss(values: Named, inputs: torch.Tensor = inputs, targets: torch.Tensor = targets) -> torch.Tensor:
            return nn.functional.mse_loss(functional_call(model, values, (inputs,)), targets)

        def penalty(
            values: Named, loss: Callable[[Named], torch.Tensor] = loss, weight: float = weight
        ) -> torch.Tensor:
            gradients = torch.func.grad(loss)(values)
            squares = torch.stack([counts[name] * g.square().sum() for name, g in gradients.items()]).sum()
            return weight * (squares.sqrt() if penalised == "root" else squares)

        now = {name: parameter.detach() for name, parameter in model.named_parameters()}
        of_loss, first = torch.func.grad_and_value(loss)(now)
        of_penalty, second = torch.func.grad_and_value(penalty)(now)
        values.append((float(first), float(second)))
        for name, parameter in model.named_parameters():
            old = torch.zeros_like(parameter) if clear == "before" or parameter.grad is None else parameter.grad
            parameter.grad = old + combine(of_loss[name], of_penalty[name]).detach()
        optimizer.step()
        if clear == "after":
            optimizer.zero_grad()
    return values, [parameter.detach() for parameter in model.parameters()]


@remembered
def _right(case: Case) -> tuple[list[tuple[float, float]], list[torch.Tensor]]:
    return _after(case, add)


def _moved_like(
    case: Case, seen: Observation, combine: _Combine, clear: str = "before", penalised: str = "each"
) -> bool:
    others = _after(case, combine, clear, penalised)[1]
    return all(close(mine, other) for mine, other in zip(seen["parameters"], others, strict=True))


def _the_loss_alone(case: Case, seen: Observation) -> bool:
    losses = [loss for loss, _ in _right(case)[0]]
    return all(close(mine, loss) for mine, loss in zip(seen["totals"], losses, strict=True))


def _judge(case: Case, seen: Observation) -> Iterator[Finding]:
    values, parameters = _right(case)
    count = len(values)
    forwards = seen["forwards"]
    text = f"The model ran {times(forwards)} in {_steps(count)}; once a step will do."
    yield Finding("forwards", forwards == count, text)
    text = f"The optimizer stepped {times(seen['steps'])} in {_steps(count)}; expected once a step."
    yield Finding("steps", seen["steps"] == count, text)
    for number, (received, value) in enumerate(zip(seen["totals"], values, strict=True)):
        is_float = type(received) is float
        text = f"Your function returned {describe(received)}; expected a Python float, as in the given code."
        yield Finding("float", is_float, text)
        if is_float:
            yield right_value(received, sum(value), f"What step {number} returned")
    moved = all(close(mine, right) for mine, right in zip(seen["parameters"], parameters, strict=True))
    text = "The parameters did not move along the gradient of loss + weight * penalty."
    yield Finding("parameters", moved, text)
    text = f"Graphs alive after each step: {seen['alive']}. Each step should leave none behind."
    yield Finding("alive", not any(seen["alive"]), text)
    text = "After the last step, .grad of a parameter still has a graph."
    yield Finding("grad", not seen["recorded grad"], text)
    yield untouched(seen)


def _steps(count: int) -> str:
    return "1 step" if count == 1 else f"{count} steps"


def _debrief(seen: Sequence[tuple[Case, Observation]]) -> Iterator[str]:
    ran = sum(observation["steps"] for _, observation in seen)
    yield f"In {_steps(ran)} the model ran once a step, and each step ended with no graph alive."
    yield (
        "The gradient of such a penalty is made of second derivatives. That is why the pass for the loss's gradient "
        "had to be recorded, or its derivative to be computed in another way."
    )


EXERCISE = Exercise(
    id="penalised_step",
    title="Repair a step with a gradient penalty",
    lesson=LESSON,
    difficulty=3,
    minutes=12,
    points=3,
    call="penalised_step(model, optimizer, inputs, targets, weight)",
    cases=_cases,
    judge=_judge,
    debrief=_debrief,
    hints=(
        "Two passes run, and both write to `.grad`. What is in there when the optimizer steps? And what does a "
        "parameter refer to when its `.grad` has a graph?",
        "Get the gradients of the loss without writing to `.grad`. Build the penalty from them. One `backward` then "
        "makes what the optimizer needs.",
        "gradients = torch.autograd.grad(loss, list(model.parameters()), create_graph=True); total = loss + weight * "
        "the sum of their squares; zero_grad, total.backward(), step; return total.item().",
    ),
    misconceptions=(
        Misconception(
            "the loss counted twice",
            "The parameters moved along the gradient of twice the loss, plus the penalty: as where the first pass "
            "leaves its gradient in `.grad`, and the second pass adds to it.",
            lambda case, seen: _moved_like(case, seen, lambda loss, penalty: 2 * loss + penalty),
        ),
        Misconception(
            "a penalty that is a constant",
            "The parameters moved along the gradient of the loss alone. So they do where no graph leads from the "
            "penalty to the parameters, or where the last pass does not start from the total.",
            lambda case, seen: _moved_like(case, seen, lambda loss, penalty: loss),
        ),
        Misconception(
            "old gradients",
            "The parameters moved along the right gradient and, on top of it, what was in `.grad` before the step.",
            lambda case, seen: _moved_like(case, seen, add, clear="never"),
        ),
        Misconception(
            "cleared too late",
            "The first step used what was in `.grad` before, on top of its own gradient; the steps after it did not.",
            lambda case, seen: _moved_like(case, seen, add, clear="after"),
        ),
        Misconception(
            "a shared parameter counted twice",
            "In your penalty a parameter that two layers share counts twice: your code met it once for each of them.",
            lambda case, seen: _moved_like(case, seen, add, penalised="names"),
        ),
        Misconception(
            "the root of the penalty",
            "Your penalty is the root of the right one: the length of the gradient, and not its square.",
            lambda case, seen: _moved_like(case, seen, add, penalised="root"),
        ),
        Misconception(
            "the biases left out",
            "Your penalty leaves out the gradients of the biases. It is over all parameters.",
            lambda case, seen: _moved_like(case, seen, add, penalised="weights"),
        ),
        Misconception(
            "the loss counted twice, and old gradients",
            "Two slips: the loss counts twice, as where both passes write to `.grad`, and what was in `.grad` before "
            "the step counts as well.",
            lambda case, seen: _moved_like(case, seen, lambda loss, penalty: 2 * loss + penalty, clear="never"),
        ),
        Misconception(
            "the loss alone returned",
            "What you returned is the loss without the penalty. The total is the loss + weight * penalty.",
            _the_loss_alone,
            among=frozenset({"value"}),
        ),
        Misconception(
            "nothing moved",
            "Your step left the parameters as they were: no gradient was in `.grad` when the optimizer stepped, or it "
            "never stepped.",
            lambda case, seen: _moved_like(case, seen, lambda loss, penalty: 0 * loss),
        ),
        Misconception(
            "the penalty alone",
            "The parameters moved along the gradient of the penalty alone. The loss took no part in the last pass.",
            lambda case, seen: _moved_like(case, seen, lambda loss, penalty: penalty),
        ),
    ),
)
