"""Judging `split_at_trunk`: split at the trunk."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import nn

from course_utils.checks.compare import close, describe, right_floats, right_value
from course_utils.checks.data import Array, Case, Observation, Value
from course_utils.checks.exercise import Exercise, Finding, Misconception
from course_utils.checks.judges.as_found import as_found
from course_utils.checks.judges.lesson_04_retain_graph import LESSON
from course_utils.checks.scenes.lesson_04_retain_graph.split_at_trunk import many_headed
from course_utils.graph.saved import saved


def _cases(seed: int) -> list[Case]:
    kinds: dict[str, tuple[list[int], bool]] = {
        "three heads": ([7, 3, 5], False),
        "inputs that need a gradient": ([4, 6], True),
        "a single head, in double precision": ([5], False),
    }
    return [
        Case(name, {"seed": seed + n, "widths": widths, "inputs need grad": needed, "double": len(widths) == 1})
        for n, (name, (widths, needed)) in enumerate(kinds.items())
    ]


def _right(case: Case) -> tuple[list[float], dict[str, Any]]:
    """Return the losses, and .grad of every leaf after the sum's own pass."""
    trunk, heads, inputs = many_headed(case)
    h = trunk(inputs)
    losses = [head(h) for head in heads]
    torch.stack([loss.sum() for loss in losses]).sum().backward()
    return [loss.item() for loss in losses], _gradients(trunk, heads, inputs)


def _gradients(trunk: nn.Module, heads: Iterable[nn.Module], inputs: torch.Tensor) -> dict[str, Any]:
    """Return what .grad of every leaf holds."""
    named = {f"trunk.{name}": leaf.grad for name, leaf in trunk.named_parameters()}
    for number, head in enumerate(heads):
        for name, leaf in head.named_parameters():
            named.setdefault(f"head {number}.{name}", leaf.grad)
    return {**named, "inputs": inputs.grad}


def _judge(case: Case, seen: Observation) -> Iterator[Finding]:
    losses, gradients = _right(case)
    yield right_floats(seen["returned"], torch.tensor(losses), "The list of losses")
    received = seen["gradients"]
    shared = {id(leaf): name for name, leaf in reversed(gradients.items()) if leaf is not None}
    for name in [*shared.values(), *(name for name, leaf in gradients.items() if leaf is None)]:
        yield from _gradient(case, name, received[name], gradients[name])
    runs, count = seen["runs"], len(losses)
    yield Finding(
        "runs", runs == [1] * (1 + count), f"How often the trunk and each head ran: {runs}; once each is enough."
    )
    through = seen["through"]
    yield Finding("passes", through <= 1, f"{through} backward passes went through the trunk; one is enough.")
    text = f"Bytes that earlier heads still held when a head began, head by head: {seen['alive']}."
    yield Finding("alive", not any(seen["alive"]), text)
    retained = seen["retained"]
    text = f"{retained} of {seen['passes']} backward passes retained what {'it' if retained == 1 else 'they'} used."
    yield Finding("retained", retained == 0, f"{text} None needs to.")
    yield Finding("moved", seen["moved"] is False, "Your function changed the numbers of a parameter or of the inputs.")
    yield as_found(seen)


def _gradient(case: Case, name: str, mine: Value, right: torch.Tensor | None) -> Iterator[Finding]:
    if right is None:
        yield Finding("none", mine is None, f"{name}.grad is {describe(mine)}; no gradient belongs there.")
    else:
        finding = right_value(mine, right, f"{name}.grad")
        before = None if finding.ok else _gradients(*many_headed(case))[name]
        if before is not None and close(mine, before):
            finding = replace(finding, message=f"{name}.grad is what it was before: nothing was added to it.")
        yield replace(finding, prop=f"gradient's {finding.prop}")


def _nothing_in_the_trunk(case: Case, seen: Observation) -> bool:
    """Say whether the heads have their gradients, and the trunk's .grad is what it was."""
    _, gradients = _right(case)
    before = {f"trunk.{name}": parameter.grad for name, parameter in many_headed(case)[0].named_parameters()}
    expected = {name: before.get(name, right) for name, right in gradients.items() if name != "inputs"}
    received = seen["gradients"]
    return all(
        received[name] is None if gradient is None else close(received[name], gradient)
        for name, gradient in expected.items()
        if name in received
    )


def _old_ones_gone(case: Case, seen: Observation) -> bool:
    """Say whether each .grad has what the pass gives, and some lack what they held before."""
    before, (_, after) = _gradients(*many_headed(case)), _right(case)
    gone = False
    for name, mine in seen["gradients"].items():
        right, old = after[name], before[name]
        if right is None or close(mine, right):
            continue
        if old is None or not isinstance(mine, Array) or not close(Array.of(mine.tensor() + old), right):
            return False
        gone = True
    return gone


def _the_last_alone(case: Case, seen: Observation) -> bool:
    """Say whether each head has its gradients, and what is below them, wrongly, that of the last head alone."""
    trunk, heads, inputs = many_headed(case)
    h = trunk(inputs)
    cut = h
    for head in heads:
        cut = h.detach().requires_grad_()
        head(cut).sum().backward()
    h.backward(cut.grad)
    received = seen["gradients"]
    return not _all_right(case, seen) and all(
        received[name] is None if gradient is None else close(received[name], gradient)
        for name, gradient in _gradients(trunk, heads, inputs).items()
        if name in received
    )


def _all_right(case: Case, seen: Observation) -> bool:
    _, gradients = _right(case)
    received = {name: mine for name, mine in seen["gradients"].items() if gradients[name] is not None}
    return all(close(mine, gradients[name]) for name, mine in received.items())


def _each_time(case: Case, seen: Observation) -> bool | None:
    """Say whether as many passes went through the trunk as there are heads; one pass for one head tells nothing."""
    heads = len(case.given["widths"])
    fits = seen["through"] == heads and _all_right(case, seen)
    return None if fits and heads == 1 else fits


def _debrief(seen: Sequence[tuple[Case, Observation]]) -> Iterator[str]:
    case, result = seen[0]
    trunk, heads, inputs = many_headed(case)
    together = saved(*(head(trunk(inputs).detach().requires_grad_()) for head in heads)).bytes
    yield (
        f"{len(heads)} heads, and when each began, earlier ones held {max(result['alive'])} bytes. Run before the "
        f"first pass, the heads' graphs would have held {together} bytes together. One pass went through the trunk."
    )


EXERCISE = Exercise(
    id="split_at_trunk",
    title="Split at the trunk",
    lesson=LESSON,
    difficulty=4,
    minutes=20,
    points=4,
    call="split_at_trunk(trunk, heads, inputs)",
    counted=True,
    cases=_cases,
    judge=_judge,
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
            "As many passes went down through the trunk as there are heads.",
            _each_time,
        ),
        Misconception(
            "all heads at once",
            "The gradients are right, and one pass went through the trunk. But a head began while an earlier one still "
            "held what it had saved.",
            lambda case, seen: (
                seen["through"] == 1
                and any(seen["alive"])
                and seen["runs"] == [1] * (1 + len(case.given["widths"]))
                and _all_right(case, seen)
            ),
        ),
        Misconception(
            "old gradients gone",
            "What you computed is right, and what some .grad held before is gone. The task adds to it, so nothing is "
            "to be cleared.",
            _old_ones_gone,
        ),
        Misconception(
            "the last head alone",
            "The heads have their gradients, and the trunk got that of the last head alone. Where each head has a cut "
            "of its own, each cut has a .grad of its own: they are to be added up.",
            _the_last_alone,
        ),
        Misconception(
            "cut and not joined",
            "The heads have their gradients, and none reached the trunk. It was cut off, and nothing was handed on.",
            lambda case, seen: seen["through"] == 0 and _nothing_in_the_trunk(case, seen),
        ),
    ),
    debrief=_debrief,
)
