"""Judging `predict_leaves`: predict the leaves."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch
from torch import nn

from course_utils.checks.compare import describe
from course_utils.checks.data import Array, Case, Observation, Other, Value
from course_utils.checks.exercise import Exercise, Finding, Misconception
from course_utils.checks.judges.lesson_01_graph_structure import LESSON
from course_utils.checks.judges.predictions import Table, one_case

TABLE = Table(
    lambda: {name: tensor.is_leaf for name, tensor in eight_tensors().items()},
    reasons={
        "plain": "torch.ones makes it of nothing, and it requires no gradient.",
        "product": "The multiplication was recorded, as w requires a gradient.",
        "updated": "Under no_grad nothing is recorded, whatever goes in.",
        "cut": "detach() gives a tensor without history, in the same memory.",
        "weight": "nn.Parameter starts without history, whatever it is made of.",
        "double": "A conversion to another dtype is an operation, and it was recorded.",
        "same": "There is nothing to convert, so to() returns w itself.",
        "late": "plain requires no gradient, so the addition was not recorded; the flag came later.",
    },
)


def _judge_leaves(case: Case, seen: Observation) -> Iterator[Finding]:
    leaves = TABLE.right()
    value = seen["value"]
    if isinstance(value, dict) and value.keys() == leaves.keys():
        odd = [name for name, it in value.items() if type(it) is not bool and not _is_flag(it) and it != Other("...")]
        if odd:
            message = f"Each value must be True or False; the value for {odd[0]} is {describe(value[odd[0]])}."
            yield Finding("flags", False, message)
            return
    yield from TABLE.judge(case, seen)


def _predicts(seen: Observation, belief: Callable[[torch.Tensor], bool], but: str = "") -> bool:
    """Tell whether a prediction follows from a belief about leaves, turned round for the entry `but`."""
    return bool(seen["value"] == {name: belief(it) is not (name == but) for name, it in eight_tensors().items()})


def _predicts_only(seen: Observation, names: tuple[str, ...]) -> bool:
    """Tell whether a prediction calls these tensors leaves and no others."""
    return bool(seen["value"] == {name: name in names for name in eight_tensors()})


EXERCISE = Exercise(
    id="predict_leaves",
    title="Predict the leaves",
    lesson=LESSON,
    difficulty=1,
    minutes=5,
    points=1,
    call=None,
    cases=one_case,
    judge=_judge_leaves,
    hints=(
        "Ask one question of each tensor: did a recorded operation make it?",
        "An operation is recorded when gradients are on and one of its inputs requires a gradient. "
        "detach() and nn.Parameter give tensors that start without history.",
        "Go through the lines. Only w requires a gradient at the start. For each line find out whether a tensor that "
        "requires a gradient goes in, whether recording is on, and whether .to() has anything to convert.",
    ),
    misconceptions=(
        Misconception(
            "only with requires_grad",
            "You called every tensor without requires_grad a non-leaf. is_leaf asks whether a recorded operation "
            "made the tensor. It does not ask whether the tensor requires a gradient.",
            lambda case, seen: _predicts(seen, lambda tensor: tensor.is_leaf and tensor.requires_grad),
        ),
        Misconception(
            "only the first",
            "You call no tensor but `plain` a leaf. Whether something was computed does not decide: only operations "
            "that autograd records count.",
            lambda case, seen: _predicts_only(seen, ("plain",)),
        ),
        Misconception(
            "to() always converts",
            "You call `same` no leaf, as if a conversion had made it. to() with the dtype that the tensor already has "
            "makes no new tensor.",
            lambda case, seen: _predicts(seen, lambda tensor: tensor.is_leaf, but="same"),
        ),
    ),
    debrief=TABLE.debrief,
)


def eight_tensors() -> dict[str, torch.Tensor]:
    """Return the tensors that the exercise builds, by name."""
    plain = torch.ones(3)
    w = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
    product = w * plain
    with torch.no_grad():
        updated = w - 0.1 * w
    cut = product.detach()
    weight = nn.Parameter(product)
    double = w.to(torch.float64)
    same = w.to(torch.float32)
    late = (plain + 1).requires_grad_()
    return {
        **{"plain": plain, "product": product, "updated": updated, "cut": cut},
        **{"weight": weight, "double": double, "same": same, "late": late},
    }


def _is_flag(item: Value) -> bool:
    return isinstance(item, Array) and item.shape == () and item.dtype == "bool"
