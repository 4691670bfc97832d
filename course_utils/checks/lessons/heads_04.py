"""Exercises of lesson 04 on a trunk with several heads: an optimizer for each, and one head at a time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch.nn.functional import mse_loss

from course_utils.checks.compare import close, describe, right_floats, right_value
from course_utils.checks.data import Case, Observation, Value
from course_utils.checks.exercise import Exercise, Finding, Misconception
from course_utils.checks.lessons.predict_04 import LESSON, as_found
from course_utils.checks.observing.scenes_04 import many_headed, two_headed

# An optimizer for each head.


def _updates(seed: int) -> list[Case]:
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


def _judge_updates(case: Case, seen: Observation) -> Iterator[Finding]:
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


two_updates = Exercise(
    id="two_updates",
    title="Repair a step between two passes",
    lesson=LESSON,
    difficulty=4,
    minutes=25,
    points=4,
    call="two_updates(trunk, heads, optimizers, inputs, targets)",
    cases=_updates,
    judge=_judge_updates,
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

# One head at a time.


def _many_heads(seed: int) -> list[Case]:
    kinds: dict[str, tuple[list[int], bool]] = {
        "three heads": ([7, 3, 5], False),
        "inputs that need a gradient": ([4, 6], True),
    }
    return [
        Case(name, {"seed": seed + n, "widths": widths, "inputs need grad": needed})
        for n, (name, (widths, needed)) in enumerate(kinds.items())
    ]


def _right(case: Case) -> tuple[list[float], dict[str, Any]]:
    """Return the losses, and .grad of every leaf after the sum's own pass."""
    trunk, heads, inputs = many_headed(case)
    h = trunk(inputs)
    losses = [head(h) for head in heads]
    torch.stack(losses).sum().backward()
    named = {f"trunk.{name}": leaf.grad for name, leaf in trunk.named_parameters()}
    for number, head in enumerate(heads):
        for name, leaf in head.named_parameters():
            named.setdefault(f"head {number}.{name}", leaf.grad)
    return [loss.item() for loss in losses], {**named, "inputs": inputs.grad}


def _judge_split(case: Case, seen: Observation) -> Iterator[Finding]:
    losses, gradients = _right(case)
    yield right_floats(seen["returned"], torch.tensor(losses), "The list of losses")
    received = seen["gradients"]
    shared = {id(leaf): name for name, leaf in reversed(gradients.items()) if leaf is not None}
    for name in [*shared.values(), *(name for name, leaf in gradients.items() if leaf is None)]:
        yield from _gradient(name, received[name], gradients[name])
    runs, count = seen["runs"], len(losses)
    yield Finding("runs", runs == [1] * (1 + count), f"The trunk and the heads ran {runs} times; once each is enough.")
    passes = seen["passes"]
    yield Finding("passes", passes == 1, f"{passes} backward passes reached the trunk; one is enough.")
    text = f"Bytes that earlier heads still held when a head began, head by head: {seen['alive']}."
    yield Finding("alive", seen["alive"] == [0] * count, text)
    yield Finding("kept", seen["kept"] == 0, f"At the end the graphs still keep {seen['kept']} bytes for another pass.")
    yield Finding("moved", seen["moved"] is False, "Your function changed the numbers of a parameter or of the inputs.")
    yield as_found(seen)


def _gradient(name: str, mine: Value, right: torch.Tensor | None) -> Iterator[Finding]:
    if right is None:
        yield Finding("none", mine is None, f"{name}.grad is {describe(mine)}; no gradient belongs there.")
    else:
        yield right_value(mine, right, f"{name}.grad")


def _right_outside_the_trunk(case: Case, seen: Observation) -> bool:
    _, gradients = _right(case)
    return all(close(mine, gradients[name]) for name, mine in seen["gradients"].items() if name.startswith("head"))


def _all_right(case: Case, seen: Observation) -> bool:
    _, gradients = _right(case)
    received = {name: mine for name, mine in seen["gradients"].items() if gradients[name] is not None}
    return all(close(mine, gradients[name]) for name, mine in received.items())


split_at_trunk = Exercise(
    id="split_at_trunk",
    title="Split at the trunk",
    lesson=LESSON,
    difficulty=4,
    minutes=20,
    points=4,
    call="split_at_trunk(trunk, heads, inputs)",
    cases=_many_heads,
    judge=_judge_split,
    hints=(
        "A head's pass needs to go no further than the trunk's result. What would stop it there?",
        "Give the heads a detached copy of the trunk's result that requires a gradient. It is a leaf: its .grad adds "
        "up what all heads send.",
        "h = trunk(inputs), then cut = h.detach().requires_grad_(). For each head: forward on cut, backward, keep the "
        "loss as a float. At the end pass cut.grad as the seed: h.backward(cut.grad).",
    ),
    misconceptions=(
        Misconception(
            "through the trunk each time",
            "Every head's pass went down through the trunk.",
            lambda case, seen: seen["passes"] == len(case.given["widths"]) > 1 and _all_right(case, seen),
        ),
        Misconception(
            "all heads at once",
            "The gradients are right, and one pass went through the trunk. But a head began while an earlier one still "
            "held what it had saved.",
            lambda case, seen: (
                seen["passes"] == 1 and seen["alive"] != [0] * len(case.given["widths"]) and _all_right(case, seen)
            ),
        ),
        Misconception(
            "cut and not joined",
            "The heads have their gradients, and none reached the trunk. It was cut off, and nothing was handed on.",
            lambda case, seen: seen["passes"] == 0 and _right_outside_the_trunk(case, seen),
        ),
    ),
)
