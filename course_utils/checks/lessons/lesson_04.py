"""Exercises of lesson 04: predictions, several losses over one forward, and loops that retain."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from course_utils.checks.compare import close, describe, right_value
from course_utils.checks.data import Case, Observation, Value
from course_utils.checks.exercise import Exercise, Finding, Misconception
from course_utils.checks.lessons.heads_04 import split_at_trunk, two_updates
from course_utils.checks.lessons.loops_04 import fit_scale, train_chunks
from course_utils.checks.lessons.predict_04 import LESSON, as_found, predict_kept_bytes, predict_second_pass
from course_utils.checks.observing.models import numbers
from course_utils.checks.observing.scenes_04 import losses_and_leaves, trunk_and_losses

# One pass in place of several.

_SCENES: dict[str, tuple[list[float], list[str]]] = {
    "two heads": ([0.7, 2.5], ["v"]),
    "a short and a long branch": ([1.5, -0.6, 0.3], []),
    "separate graphs": ([0.4, 1.7], ["w", "u"]),
    "one loss, listed twice": ([0.6, 1.3, 2.2], []),
    "one loss is part of another": ([3.0, 0.8], ["w"]),
    "a single loss": ([2.6], ["w", "v"]),
}


def _weighted(seed: int) -> list[Case]:
    return [
        Case(name, {"scene": name, "seed": seed + n, "weights": weights, "held": held})
        for n, (name, (weights, held)) in enumerate(_SCENES.items())
    ]


def _per_loss(case: Case) -> tuple[list[str], list[list[torch.Tensor]]]:
    """Return the names of the leaves, and for each loss its gradients, each from a forward of its own."""
    names, rows = [], []
    for number in range(len(case.given["weights"])):
        losses, leaves = losses_and_leaves(case)
        names = list(leaves)
        rows.append(list(torch.autograd.grad(losses[number], list(leaves.values()), materialize_grads=True)))
    return names, rows


def _right_sums(case: Case, weights: list[float], held: bool = True) -> dict[str, torch.Tensor]:
    names, rows = _per_loss(case)
    sums = {}
    for position, name in enumerate(names):
        total = sum(weight * row[position] for weight, row in zip(weights, rows, strict=True))
        assert isinstance(total, torch.Tensor)
        if held and name in case.given["held"]:
            total = total + numbers(len(name) + case.given["seed"], *total.shape)
        sums[name] = total
    return sums


def _judge_one_pass(case: Case, seen: Observation) -> Iterator[Finding]:
    for name, right in _right_sums(case, case.given["weights"]).items():
        yield right_value(seen["gradients"][name], right, f"{name}.grad")
    passes = seen["passes"]
    yield Finding("passes", passes == 1, f"{passes} backward passes ran; one is enough.")
    text = f"After your function the graphs of the losses still keep {seen['kept']} bytes. Nothing will use them."
    yield Finding("kept", seen["kept"] == 0, text)
    yield Finding("recorded", seen["recorded"] is False, "The gradients in .grad have a graph of their own.")
    yield Finding("moved", seen["moved"] == [], "Your function changed the numbers in a leaf.")
    yield as_found(seen)


def _all_close(seen: Observation, right: dict[str, torch.Tensor]) -> bool:
    return all(close(seen["gradients"][name], value) for name, value in right.items())


one_pass = Exercise(
    id="one_pass",
    title="One pass in place of several",
    lesson=LESSON,
    difficulty=2,
    minutes=10,
    points=2,
    call="one_pass(losses, weights)",
    cases=_weighted,
    judge=_judge_one_pass,
    hints=(
        "The gradient of a sum is the sum of the gradients.",
        "Make one number out of all losses and weights. Its graph reaches every leaf that any of the losses reaches.",
        "Multiply each loss by its weight, add the products, and call backward() once on the sum, without any flag. "
        "What .grad held before is added to by itself.",
    ),
    misconceptions=(
        Misconception(
            "a pass for each loss",
            "The gradients are right, and every loss took a pass of its own through what the losses share.",
            lambda case, seen: (
                seen["passes"] == len(case.given["weights"])
                and _all_close(seen, _right_sums(case, case.given["weights"]))
            ),
        ),
        Misconception(
            "weights left out",
            "Your gradients are those of the plain sum: each loss counts once, whatever its weight.",
            lambda case, seen: _all_close(seen, _right_sums(case, [1.0] * len(case.given["weights"]))),
        ),
        Misconception(
            "old gradients lost",
            "Your gradients are right, but what some .grad held before is gone.",
            lambda case, seen: (
                bool(case.given["held"])
                and seen["passes"] == 1
                and _all_close(seen, _right_sums(case, case.given["weights"], held=False))
            ),
        ),
        Misconception(
            "retained for nothing",
            "One pass ran, and it kept what the graph had saved, as if another pass were to come.",
            lambda case, seen: (
                seen["passes"] == 1 and seen["kept"] != 0 and _all_close(seen, _right_sums(case, case.given["weights"]))
            ),
        ),
    ),
)

# The gradient of each loss.


def _trunks(seed: int) -> list[Case]:
    counts = {"two losses": 2, "three losses": 3, "a single loss": 1}
    return [Case(name, {"seed": seed + count, "losses": count}) for name, count in counts.items()]


def _right_gradients(case: Case) -> list[list[torch.Tensor]]:
    """Return each loss's gradients, each from a forward of its own."""
    rows = []
    for number in range(case.given["losses"]):
        trunk, _, losses, _ = trunk_and_losses(case)
        rows.append(list(torch.autograd.grad(losses[number], list(trunk.parameters()))))
    return rows


def _rows(received: Value, right: list[list[torch.Tensor]]) -> Iterator[Finding]:
    if not isinstance(received, list) or len(received) != len(right):
        expected = f"expected a list with {len(right)} {'entry' if len(right) == 1 else 'entries'}, one for each loss"
        yield Finding("list", False, f"What you returned is {describe(received)}; {expected}.")
        return
    for number, (row, wanted) in enumerate(zip(received, right, strict=True)):
        if not isinstance(row, list) or len(row) != len(wanted):
            text = f"Entry {number} of your list is {describe(row)}; expected {len(wanted)} gradients."
            yield Finding("row", False, text)
            return
        for position, (item, gradient) in enumerate(zip(row, wanted, strict=True)):
            yield right_value(item, gradient, f"The gradient of loss {number} for parameter {position}")


def _judge_gradients(case: Case, seen: Observation) -> Iterator[Finding]:
    yield from _rows(seen["returned"], _right_gradients(case))
    count = case.given["losses"]
    text = f"{seen['passes']} backward passes ran for {count} {'loss' if count == 1 else 'losses'}."
    yield Finding("passes", seen["passes"] in range(1, count + 1), text)
    text = f"After your function the trunk still keeps {seen['kept']} bytes for a pass that will not come."
    yield Finding("kept", seen["kept"] == 0, text)
    yield Finding("held", seen["held"] is True, "After your function a parameter's .grad is not what it was before.")
    yield Finding("moved", seen["moved"] is False, "Your function changed the numbers in a parameter.")
    yield as_found(seen)
    yield Finding("recorded", seen["recorded"] is False, "A gradient that you returned requires a gradient itself.")


def _same(received: Value, right: list[list[torch.Tensor]]) -> bool:
    return all(finding.ok for finding in _rows(received, right))


def _running_sums(case: Case) -> list[list[torch.Tensor]]:
    sums: list[list[torch.Tensor]] = []
    for row in _right_gradients(case):
        sums.append([old + new for old, new in zip(sums[-1], row, strict=True)] if sums else row)
    return sums


loss_gradients = Exercise(
    id="loss_gradients",
    title="The gradient of each loss, from one forward",
    lesson=LESSON,
    difficulty=2,
    minutes=15,
    points=3,
    call="loss_gradients(losses, parameters)",
    cases=_trunks,
    judge=_judge_gradients,
    hints=(
        "Which function returns gradients and leaves every .grad alone? And which of the passes is the last one?",
        "torch.autograd.grad takes retain_graph too. All passes but the last must leave the trunk's saved tensors "
        "for the next.",
        "Loop over the losses with their numbers. Call torch.autograd.grad(loss, parameters, retain_graph=...) where "
        "the flag says whether another loss follows, and collect the results.",
    ),
    misconceptions=(
        Misconception(
            "retained to the end",
            "The gradients are right, but your last pass retained as well, so the trunk keeps its saved tensors.",
            lambda case, seen: (
                seen["kept"] != 0 and not seen["recorded"] and _same(seen["returned"], _right_gradients(case))
            ),
        ),
        Misconception(
            "added up",
            "From the second loss on, your gradients contain those of the losses before: they were read from "
            "something that adds up.",
            lambda case, seen: case.given["losses"] > 1 and _same(seen["returned"], _running_sums(case)),
        ),
        Misconception(
            "traces in .grad",
            "The gradients are right, and .grad of the parameters is not as it was before.",
            lambda case, seen: seen["held"] is False and _same(seen["returned"], _right_gradients(case)),
        ),
        Misconception(
            "create_graph to keep the graph",
            "The gradients are right and have graphs of their own: your passes were recorded. That keeps the old "
            "graph, and much more.",
            lambda case, seen: (
                seen["recorded"] and seen["kept"] != 0 and _same(seen["returned"], _right_gradients(case))
            ),
        ),
    ),
)

EXERCISES = (
    predict_second_pass,
    predict_kept_bytes,
    one_pass,
    loss_gradients,
    fit_scale,
    train_chunks,
    two_updates,
    split_at_trunk,
)
