"""Judging `through_frozen`: through a frozen layer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch
from torch import nn

from course_utils.checks.compare import listed, right_value
from course_utils.checks.data import Array, Case, Observation
from course_utils.checks.exercise import Exercise, Finding, Misconception
from course_utils.checks.judges.lesson_06_detach_vs_no_grad import LESSON
from course_utils.checks.judges.lesson_06_detach_vs_no_grad.taken import alone
from course_utils.checks.judges.loops import times
from course_utils.checks.scenes.lesson_06_detach_vs_no_grad.through_frozen import crossed
from course_utils.checks.scenes.numbers import numbers
from course_utils.graph.trace import nodes_behind


def _cases(seed: int) -> list[Case]:
    kinds: list[tuple[str, str, bool, str]] = [
        ("a layer in training", "all", False, ""),
        ("some parameters frozen before", "some", False, ""),
        ("all frozen before, evaluating", "none", True, ""),
        ("a layer that evaluates", "all", True, ""),
        ("a part that raises", "some", False, "an error"),
        ("a part that raises what is no Exception", "some", False, "a stop"),
    ]
    return [
        Case(
            name,
            {
                **{"seed": seed + n, "flags": live, "eval": evaluating, "breaks": breaks},
                "own hook": name == "some parameters frozen before",
                "direction": Array.of(numbers(seed + n + 70, 7, 5)),
            },
        )
        for n, (name, live, evaluating, breaks) in enumerate(kinds)
    ]


def _crossed(case: Case) -> tuple[torch.Tensor, torch.Tensor, nn.Module]:
    """Return the layer's result, the gradient of its input, and the layer as a call leaves it."""
    layer, x = crossed(case)
    y = layer(x)
    (gradient,) = torch.autograd.grad(y, x, case.given["direction"].tensor())
    return y.detach(), gradient, layer


def _flags_kept(seen: Observation) -> bool:
    """Return whether an ordinary run leaves requires_grad as it was."""
    return bool(seen["flags"] if seen["flags at first"] is None else seen["flags at first"])


def _of_flags(case: Case, seen: Observation) -> str:
    """Say for which parameters requires_grad is another, and where only an error left it so, after which."""
    switched = listed(seen["switched"])
    if not case.given["breaks"] or not seen["raised"] or not _flags_kept(seen):
        return f"Afterwards requires_grad is not what it was, for {switched}."
    if case.given["breaks"] == "an error":
        return f"When the layer raises, what puts requires_grad back does not run: it stays changed for {switched}."
    return (
        f"When what is raised is no Exception, such as KeyboardInterrupt, requires_grad stays changed for {switched}. "
        "`except Exception` does not see such an end; `finally` does."
    )


def _judge(case: Case, seen: Observation) -> Iterator[Finding]:
    yield Finding("objects", seen["same objects"], "The layer has other parameter objects than before.")
    yield Finding("flags", seen["flags"], _of_flags(case, seen))
    yield Finding("hooks", seen["hooks"], "Your function left a hook on the layer, or removed one.")
    yield Finding("grad mode", seen["grad mode"], "Afterwards recording is still switched off.")
    yield Finding("gradients", seen["gradients"], "Your function changed the .grad of a parameter.")
    yield Finding("numbers", seen["numbers"], "Your function changed the numbers of a parameter.")
    yield Finding("modes", seen["modes"], "Your function changed whether the layer is in training or evaluating.")
    if case.given["breaks"]:
        text = "The layer raised, and your function hid that. Let the exception through."
        yield Finding("raised", seen["raised"], text)
        return
    y, gradient, layer = _crossed(case)
    yield right_value(seen["returned"], y, "What you returned")
    yield Finding(
        "runs",
        seen["runs"] == 1,
        f"Until its gradients had come, the layer itself ran {times(seen['runs'])}. Expected one run.",
    )
    graph = seen["graph"] or not alone(seen)
    yield Finding("graph", graph, "What you returned has no graph, so no gradient can go through it.")
    for name, buffer in layer.named_buffers():
        received = seen["buffers"].get(name) if isinstance(seen["buffers"], dict) else None
        yield right_value(received, buffer, f"After your function the layer's buffer {name}")
    if seen["graph"] and seen["fits"]:  # of another shape nothing was asked
        if seen["gradient"] is None:
            yield Finding("reaches x", False, "No gradient reaches x through what you returned.")
        else:
            yield right_value(seen["gradient"], gradient, "The gradient of x")
        leaves = seen["leaves"] if isinstance(seen["leaves"], list) else []
        reached = [name for name in leaves if name != "x"]
        text = f"The graph of what you returned also leads to {listed(reached)}."
        yield Finding("only x", not reached, text)


def _debrief(seen: Sequence[tuple[Case, Observation]]) -> Iterator[str]:
    layer, x = crossed(seen[0][0])
    leaves = sum(hasattr(node, "variable") for node in nodes_behind(layer(x)))
    yield f"The graph of your result leads to x alone; that of an ordinary call leads to {leaves} leaves."
    yield "The layer itself ran once, so that batch norm counted the batch, and the way to x stayed open."


EXERCISE = Exercise(
    id="through_frozen",
    title="Through a frozen layer",
    lesson=LESSON,
    difficulty=4,
    minutes=20,
    points=4,
    call="through_frozen(layer, x)",
    cases=_cases,
    judge=_judge,
    debrief=_debrief,
    reaches=("_parameters",),
    hints=(
        "no_grad would cut the way to x. The cut has to be at the parameters.",
        "Either the layer's parameters do not require a gradient while it runs, and get back what they had whatever "
        "happens; or the layer runs once with other tensors in their place.",
        "Note parameter.requires_grad for each. In try: requires_grad_(False) for all, return layer(x). In finally: "
        "give each back its own. Or torch.func.functional_call(layer, {name: parameter.detach(), ...}, (x,)).",
    ),
    misconceptions=(
        Misconception(
            "no_grad around it",
            "What you returned has no graph: the way to x is cut as well. Frozen parameters do not cut it; detach, or "
            "a switch that stops recording, does.",
            lambda case, seen: not seen["graph"] and isinstance(seen["returned"], Array) and seen["flags"],
        ),
        Misconception(
            "frozen for good",
            "Afterwards all parameters of the layer are frozen. The freezing was to last for this run only.",
            lambda case, seen: (
                not _flags_kept(seen)
                and seen["all frozen"] is True
                and (case.given["breaks"] or seen["leaves"] == ["x"])
            ),
        ),
        Misconception(
            "thawed",
            "Your function switched requires_grad on for parameters that had been frozen before.",
            lambda case, seen: not _flags_kept(seen) and case.given["flags"] != "all" and seen["thawed"] is True,
        ),
        Misconception(
            "a copy ran",
            "A copy of the layer ran, and the layer itself did not. A deep copy holds all its numbers a second time.",
            lambda case, seen: seen["runs"] == 0 and seen["copies"] > 0,
        ),
    ),
)
