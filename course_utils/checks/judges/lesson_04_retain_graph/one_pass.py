"""Judging `one_pass`: one pass in place of several."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import torch

from course_utils.checks.compare import close, right_value
from course_utils.checks.data import Case, Observation
from course_utils.checks.exercise import Exercise, Finding, Misconception
from course_utils.checks.judges.as_found import as_found
from course_utils.checks.judges.lesson_04_retain_graph import LESSON
from course_utils.checks.scenes.lesson_04_retain_graph.one_pass import losses_and_leaves
from course_utils.checks.scenes.numbers import numbers

_SCENES: dict[str, tuple[list[float], list[str]]] = {
    "two heads": ([0.7, 4000.0], ["v"]),
    "a short and a long branch": ([1.5, -3.0, 1.5], []),  # their sum is zero
    "separate graphs": ([0.0, 1.7, 0.0], ["w"]),
    "one loss, listed twice": ([0.6, 1.3, 2.2], []),
    "one loss is part of another": ([0.0003, 0.0008], []),
    "a single loss": ([2.6], ["w", "v"]),
}


def _cases(seed: int) -> list[Case]:
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


def _judge(case: Case, seen: Observation) -> Iterator[Finding]:
    for name, right in _right_sums(case, case.given["weights"]).items():
        finding = right_value(seen["gradients"][name], right, f"{name}.grad")
        yield replace(finding, prop=f"gradient's {finding.prop}")
    passes = seen["passes"]
    yield Finding("passes", passes == 1, f"{passes} backward passes ran; one is needed.")
    text = (
        "The gradients in .grad have a graph of their own, as create_graph=True makes it. Nothing will use it, and it "
        "keeps what the losses' graphs have saved."
    )
    yield Finding("recorded", seen["recorded"] is False, text)
    text = f"After your function the graphs of the losses still keep {seen['kept']} bytes. Nothing will use them."
    yield Finding("kept", seen["kept"] == 0, text)
    yield Finding("moved", seen["moved"] == [], "Your function changed the numbers in a leaf.")
    yield as_found(seen)


def _all_close(seen: Observation, right: dict[str, torch.Tensor]) -> bool:
    return all(close(seen["gradients"][name], value) for name, value in right.items())


def _pass_for_each(case: Case, seen: Observation) -> bool | None:
    """Say whether there was a pass for each loss; of two losses one pass too many looks the same."""
    losses = len(case.given["weights"])
    if seen["passes"] != losses or not _all_close(seen, _right_sums(case, case.given["weights"])):
        return False
    return True if losses > 2 else None


def _with_and_without(case: Case) -> list[list[float]]:
    weights = case.given["weights"]
    return [weights, [1.0] * len(weights)]


def _debrief(seen: Sequence[tuple[Case, Observation]]) -> Iterator[str]:
    most = max(len(case.given["weights"]) for case, _ in seen)
    ran = max(result["passes"] for _, result in seen)
    yield (
        f"{'One pass' if ran == 1 else f'{ran} passes'} ran for up to {most} losses, and the graphs kept 0 bytes. The "
        f"given function would have run {most}, each again through what the losses share, and kept everything."
    )


EXERCISE = Exercise(
    id="one_pass",
    title="One pass in place of several",
    lesson=LESSON,
    difficulty=2,
    minutes=8,
    points=2,
    call="one_pass(losses, weights)",
    reaches=("next_functions",),
    counted=True,
    cases=_cases,
    judge=_judge,
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
            _pass_for_each,
        ),
        Misconception(
            "weights left out",
            "Your gradients are those of the plain sum: each loss counts once, whatever its weight.",
            lambda case, seen: any(
                _all_close(seen, _right_sums(case, [1.0] * len(case.given["weights"]), held)) for held in (True, False)
            ),
        ),
        Misconception(
            "old gradients lost",
            "What some .grad held before is gone.",
            lambda case, seen: (
                bool(case.given["held"])
                and any(_all_close(seen, _right_sums(case, weights, held=False)) for weights in _with_and_without(case))
            ),
        ),
        Misconception(
            "retained for nothing",
            "One pass ran, and it kept what the graph had saved, as if another pass were to come.",
            lambda case, seen: (
                seen["passes"] == 1
                and seen["retained"]
                and not seen["recorded"]
                and seen["kept"] != 0
                and any(_all_close(seen, _right_sums(case, weights)) for weights in _with_and_without(case))
            ),
        ),
    ),
    debrief=_debrief,
)
