"""Judging `loss_gradients`: the gradient of each loss, from one forward."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import torch

from course_utils.checks.compare import counted, describe, right_value
from course_utils.checks.data import Case, Observation, Value
from course_utils.checks.exercise import Exercise, Finding, Misconception
from course_utils.checks.judges.as_found import as_found
from course_utils.checks.judges.lesson_04_retain_graph import LESSON
from course_utils.checks.judges.put_back import PUT_BACK
from course_utils.checks.scenes.lesson_04_retain_graph.loss_gradients import held_before, trunk_and_losses


def _cases(seed: int) -> list[Case]:
    counts = {"two losses": 2, "three losses": 3, "a single loss": 1, "two losses of one value": 2}
    # Who clips, or takes what is small for zero, gives others; who takes a sum apart again, other digits.
    times = {"three losses": [1e6, 1e2, 1e2], "a single loss": [3e-6]}
    return [
        Case(
            name,
            {
                **{"seed": seed + count, "losses": count, "alike": name == "two losses of one value"},
                "times": times.get(name, [1.0] * count),
            },
        )
        for name, count in counts.items()
    ]


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
            finding = right_value(item, gradient, f"The gradient of loss {number} for parameter {position}")
            yield replace(finding, prop=f"gradient's {finding.prop}")


def _judge(case: Case, seen: Observation) -> Iterator[Finding]:
    yield from _rows(seen["returned"], _right_gradients(case))
    count = case.given["losses"]
    text = f"{counted(seen['passes'])} ran for {count} {'loss' if count == 1 else 'losses'}."
    yield Finding("passes", seen["passes"] in range(1, count + 1), text)
    text = f"After your function the trunk still keeps {seen['kept']} bytes for a pass that will not come."
    yield Finding("kept", seen["kept"] == 0, text)
    yield Finding("held", seen["held"] is True, "After your function a parameter's .grad is not what it was before.")
    yield Finding("moved", seen["moved"] is False, "Your function changed the numbers in a parameter.")
    yield as_found(seen)
    yield Finding("recorded", seen["recorded"] is False, "A gradient that you returned requires a gradient itself.")


def _same(received: Value, right: list[list[torch.Tensor]]) -> bool:
    return all(finding.ok for finding in _rows(received, right))


def _running_sums(case: Case, held: bool = False) -> list[list[torch.Tensor]]:
    """Return for each loss the sum of its gradients and those before, and of what .grad held where `held`."""
    rows = _right_gradients(case)
    before = [held_before(number, gradient) if held else None for number, gradient in enumerate(rows[0])]
    sums = [[0 * new if old is None else old for old, new in zip(before, rows[0], strict=True)]]
    for row in rows:
        sums.append([old + new for old, new in zip(sums[-1], row, strict=True)])
    return sums[1:]


def _added_up(case: Case, seen: Observation) -> bool | None:
    if _same(seen["returned"], _right_gradients(case)):
        return None
    return any(_same(seen["returned"], _running_sums(case, held)) for held in (False, True))


def _all_alike(case: Case, seen: Observation) -> bool | None:
    """Tell rows that are all the sum over the losses; a single loss is that sum."""
    if case.given["losses"] == 1:
        return None
    sums = (_running_sums(case, held) for held in (False, True))
    return any(_same(seen["returned"], [rows[-1] for _ in rows]) for rows in sums)


def _debrief(seen: Sequence[tuple[Case, Observation]]) -> Iterator[str]:
    case, result = max(seen, key=lambda pair: int(pair[0].given["losses"]))
    count = case.given["losses"]
    ran = "one backward pass" if result["passes"] == 1 else f"{result['passes']} backward passes"
    more = f"Without the flag the trunk would have had to run forward {count} times, once for each loss."
    if result["passes"] == 1:
        more = "A pass for each loss would have needed the flag, in all passes but the last."
    yield f"For {count} losses {ran} ran over one forward, and the trunk keeps {result['kept']} bytes. {more}"


EXERCISE = Exercise(
    id="loss_gradients",
    title="The gradient of each loss, from one forward",
    lesson=LESSON,
    difficulty=2,
    minutes=12,
    points=3,
    call="loss_gradients(losses, parameters)",
    cases=_cases,
    judge=_judge,
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
                seen["kept"] != 0
                and seen["passes"] == case.given["losses"]
                and not seen["recorded"]
                and _same(seen["returned"], _right_gradients(case))
            ),
        ),
        Misconception(
            "added up",
            "Your gradients contain what came before them, those of earlier losses or what .grad held: they were read "
            "from something that adds up.",
            _added_up,
        ),
        Misconception(
            "the same for every loss",
            "Every entry of yours is the sum of all losses' gradients: as of one pass for their sum, or as of .grad "
            "itself, one tensor to which each pass adds. A clone() would keep what it held.",
            _all_alike,
        ),
        Misconception(
            "traces in .grad",
            "The gradients are right, and .grad of some parameter, of the trunk or of a head, is not as it was before.",
            lambda case, seen: (
                seen["held"] is False and not seen["accumulated"] and _same(seen["returned"], _right_gradients(case))
            ),
        ),
        PUT_BACK,
        Misconception(
            "create_graph to keep the graph",
            "The gradients are right and have graphs of their own: your passes were recorded. That keeps the old "
            "graph, and much more.",
            lambda case, seen: (
                seen["recorded"] and seen["kept"] != 0 and _same(seen["returned"], _right_gradients(case))
            ),
        ),
    ),
    debrief=_debrief,
)
