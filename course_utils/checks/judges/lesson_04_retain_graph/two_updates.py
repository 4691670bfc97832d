"""Judging `two_updates`: repair a step between two passes."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch.nn.functional import mse_loss

from course_utils.checks.compare import close, right_floats
from course_utils.checks.data import Case, Observation
from course_utils.checks.exercise import Exercise, Finding, Misconception
from course_utils.checks.judges.lesson_04_retain_graph import LESSON
from course_utils.checks.judges.as_found import as_found
from course_utils.checks.scenes.lesson_04_retain_graph.two_updates import two_headed


def _cases(seed: int) -> list[Case]:
    return [Case("three updates", {"seed": seed + 3, "sizes": [5, 4, 6]})]


def _updated(case: Case, way: str = "right") -> tuple[list[list[float]], list[list[torch.Tensor]]]:
    """Update with gradients that each come from a forward of their own. Return losses and parameters."""
    trunk, heads, optimizers, batches = two_headed(case)
    lists = [[*trunk.parameters(), *head.parameters()] for head in heads]
    shared = len(list(trunk.parameters()))

    def gradients(number: int, inputs: torch.Tensor, targets: list[torch.Tensor]) -> tuple[float, list[torch.Tensor]]:
        loss = mse_loss(heads[number](trunk(inputs)), targets[number])
        return loss.item(), list(torch.autograd.grad(loss, lists[number]))

    losses = []
    for inputs, targets in batches:
        found = [gradients(number, inputs, targets) for number in (0, 1)]
        losses.append([loss for loss, _ in found])
        if way == "mixed":
            both = [a + b for a, b in zip(found[0][1][:shared], found[1][1][:shared], strict=True)]
            found = [(loss, [*both, *own[shared:]]) for loss, own in found]
        for number, optimizer in enumerate(optimizers):
            if way == "new weights" and number:
                found[1] = gradients(1, inputs, targets)
            for parameter, gradient in zip(lists[number], found[number][1], strict=True):
                parameter.grad = gradient
            optimizer.step()
    return losses, [[parameter.detach() for parameter in part.parameters()] for part in (trunk, *heads)]


def _judge(case: Case, seen: Observation) -> Iterator[Finding]:
    losses, parameters = _updated(case)
    for number, (received, expected) in enumerate(zip(seen["returned"], losses, strict=True), 1):
        yield right_floats(received, torch.tensor(expected), f"The list of losses of update {number}")
    for name, mine, right in zip(("trunk", "first head", "second head"), seen["parameters"], parameters, strict=True):
        text = f"After three updates the parameters of the {name} are not where the two gradients lead."
        yield Finding(name, all(close(a, b) for a, b in zip(mine, right, strict=True)), text)
    updates = len(losses)
    order = seen["order"] == [0, 1] * updates
    yield Finding("order", order, f"The optimizers stepped in the order {seen['order']}; expected 0, 1 in each update.")
    runs = seen["forwards"]
    text = f"In {updates} updates the trunk ran {runs[0]} times, the heads {runs[1]} and {runs[2]} times."
    yield Finding("forwards", runs == [updates] * 3, text)
    text = f"{seen['passes']} backward passes reached the trunk in {updates} updates; two in each are enough."
    yield Finding("passes", seen["passes"] in range(1, 2 * updates + 1), text)
    text = f"When the last optimizer stepped, the trunk still kept {seen['kept']} bytes, and no pass was to come."
    yield Finding("kept", seen["kept"] == 0, text)
    yield as_found(seen)


def _ended_as(case: Case, seen: Observation, way: str) -> bool:
    _, right = _updated(case, way)
    return all(
        close(a, b) for mine, its in zip(seen["parameters"], right, strict=True) for a, b in zip(mine, its, strict=True)
    )


EXERCISE = Exercise(
    id="two_updates",
    title="Repair a step between two passes",
    lesson=LESSON,
    difficulty=4,
    minutes=25,
    points=4,
    call="two_updates(trunk, heads, optimizers, inputs, targets)",
    cases=_cases,
    judge=_judge,
    hints=(
        "A step writes the weights that the second pass needs. So which comes first: all steps, or all passes?",
        "Both losses send a gradient to the trunk, and .grad adds them up. Each optimizer wants its own loss's "
        "gradient alone, so the two must be held apart until their steps.",
        "Call torch.autograd.grad once for each loss, on the trunk's and the head's parameters; the first call "
        "retains. Then, optimizer by optimizer: put its gradients into .grad of its parameters, and step.",
    ),
    misconceptions=(
        Misconception(
            "gradients mixed",
            "Both optimizers moved the trunk by the sum of the two gradients. Each should use its own loss's alone.",
            lambda case, seen: _ended_as(case, seen, "mixed"),
        ),
        Misconception(
            "a forward with new weights",
            "Your second gradient belongs to weights that the first step had already moved.",
            lambda case, seen: _ended_as(case, seen, "new weights"),
        ),
        Misconception(
            "retained to the end",
            "The updates are right, but your second pass retained as well, though it was the last.",
            lambda case, seen: seen["kept"] != 0 and seen["forwards"] == [3, 3, 3] and _ended_as(case, seen, "right"),
        ),
    ),
)
