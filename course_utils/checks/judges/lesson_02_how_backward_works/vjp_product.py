"""Judging `vjp_product`: VJP of a product with broadcasting."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch

from course_utils.checks.compare import OF_VALUES, close
from course_utils.checks.data import Array, Case, Observation
from course_utils.checks.exercise import Exercise, Misconception
from course_utils.checks.judges.lesson_02_how_backward_works import LESSON
from course_utils.checks.judges.lesson_02_how_backward_works.pairs import (
    debrief_pair,
    given_pair,
    judge_pair,
    swapped,
    tensors,
    vjp,
    with_zeros,
    without_seed,
)

_BROADCASTS = {
    "equal shapes": ((2, 3), (2, 3)),
    "b is a row": ((3, 3), (3,)),  # from the sizes alone it could be a column
    "b is a column": ((5, 3), (5, 1)),
    "b is one number": ((2, 5), ()),
    "a is the smaller one": ((3,), (5, 2, 3)),
    "both are stretched": ((3, 1, 2), (5, 1)),
    "b is a row again": ((3, 3), (3,)),
    "float32": ((4, 4), (4, 1)),
    "one number each": ((1, 1), (1,)),
}


def _cases(seed: int) -> Iterator[Case]:
    for offset, (name, (a, b)) in enumerate(_BROADCASTS.items()):
        dtype = torch.float32 if name == "float32" else torch.float64
        size = {"equal shapes": 1e6, "one number each": 1e-9}.get(name, 1.0)
        given = tensors(seed + 10 * offset, dtype, size, a=a, b=b, v=tuple(torch.empty(a).mul(torch.empty(b)).shape))
        if name == "b is a row again":
            given = with_zeros(given, 0)
        expanded = ["b"] if name == "equal shapes" else []  # its strides tell nothing of what broadcasting repeats
        for key in expanded:
            rows = given[key].tensor()
            given[key] = Array.of(rows[..., :1].expand_as(rows))
        leaves = {"b is a column": ["a", "b", "v"], "both are stretched": ["b"]}.get(name, [])
        new = ["a"] if name == "both are stretched" else []
        yield Case(name, {**given, "strided": offset == 3, "leaves": leaves, "new": new, "expanded": expanded})


def _not_summed(case: Case, seen: Observation) -> bool:
    """Tell whether both gradients have the shape of the product, though an input is smaller."""
    returned, v = given_pair(case, seen), case.given["v"].tensor()
    return returned is not None and all(
        close(received, v * case.given[other].tensor()) for received, other in zip(returned, "ba", strict=True)
    )


def _gradients_in_full(case: Case) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """Return each input, with its gradient in the shape of the product."""
    a, b, v = (case.given[name].tensor() for name in "abv")
    return [(a, v * b), (b, v * a)]


def _only_missing(case: Case, seen: Observation) -> bool:
    """Tell gradients that were summed over dimensions that an input has not, and over none of size 1."""
    returned = given_pair(case, seen)
    summed = [
        full.sum(tuple(range(full.dim() - it.dim()))) if full.dim() > it.dim() else full
        for it, full in _gradients_in_full(case)
    ]
    return returned is not None and all(map(close, returned, summed))


def _from_the_left(case: Case, seen: Observation) -> bool:
    """Tell a row's gradient that was summed as if the row were a column, beside a right one."""
    returned = given_pair(case, seen)
    (_, full), (row, of_row) = _gradients_in_full(case)
    fits = row.dim() == 1 and of_row.dim() == 2 and full.shape == case.given["a"].tensor().shape
    return fits and returned is not None and close(returned[0], full) and close(returned[1], of_row.sum(1))


def _without_dimensions(case: Case, seen: Observation) -> bool:
    """Tell gradients of single numbers that are right, and have lost the dimensions of their inputs."""
    returned, right = given_pair(case, seen), vjp(case, torch.mul)
    return returned is not None and all(
        close(mine, it.reshape(()) if it.numel() == 1 else it) for mine, it in zip(returned, right, strict=True)
    )


def _debrief(seen: Sequence[tuple[Case, Observation]]) -> Iterator[str]:
    yield from debrief_pair(seen)
    sizes = [{name: case.given[name].tensor().numel() for name in "abv"} for case, _ in seen]
    repeated = sum(min(size["a"], size["b"]) < size["v"] for size in sizes)
    yield (
        f"In {repeated} of {len(sizes)} cases broadcasting used numbers of an input several times, and the gradients "
        "of all uses were added. In the others v times the other factor was the whole answer."
    )


EXERCISE = Exercise(
    id="vjp_product",
    title="VJP of a product with broadcasting",
    lesson=LESSON,
    difficulty=2,
    minutes=12,
    points=2,
    call="vjp_product(a, b, v)",
    cases=_cases,
    judge=judge_pair(torch.mul),
    hints=(
        "Without broadcasting: each number of the product depends on one number of a, and the factor is the b "
        "beside it.",
        "First compute both gradients in the shape of v. Then bring each to the shape of its input: a number that was "
        "used in several places collects the gradient of all of them.",
        "The gradient of a is v * b, that of b is v * a. Sum over the dimensions that broadcasting added or "
        "stretched. Tensor.sum_to_size does that.",
    ),
    misconceptions=(
        Misconception(
            "not summed back",
            "Your gradients have the shape of the product. The gradient of an input has the shape of that input: "
            "where "
            "broadcasting used one number several times, its gradients have to become one number again.",
            _not_summed,
            among=OF_VALUES,
        ),
        Misconception(
            "dimensions of size 1 left",
            "Where an input lacks a dimension, you sum its gradient over it, and where the input has size 1 in one, "
            "you do not. Broadcasting used its numbers several times there, too.",
            _only_missing,
            among=OF_VALUES,
        ),
        Misconception(
            "lined up from the left",
            "The gradient of a row is summed as if the row were a column. Broadcasting lines shapes up from the right, "
            "and missing dimensions stand in front.",
            _from_the_left,
            ended=("RuntimeError",),
            ended_in=("a is the smaller one", "both are stretched"),
            ended_alone=False,
            among=OF_VALUES,
        ),
        Misconception(
            "one number without dimensions",
            "The gradient of an input of one number is right, and has no dimensions, where the input has some. It is "
            "to have the input's shape: (1,) is not ().",
            _without_dimensions,
            among=OF_VALUES,
        ),
        Misconception(
            "gradients swapped",
            "You returned the gradient of b first and that of a second.",
            swapped(torch.mul),
            among=OF_VALUES,
        ),
        Misconception(
            "v is ignored",
            "Your gradients are those for a v of ones. Multiply by the v that is given, and only then sum.",
            without_seed(torch.mul),
            among=OF_VALUES,
        ),
    ),
    debrief=_debrief,
)
