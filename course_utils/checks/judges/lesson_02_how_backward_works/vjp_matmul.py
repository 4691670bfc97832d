"""Judging `vjp_matmul`: VJP of a matrix product."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from course_utils.checks.compare import OF_VALUES, close
from course_utils.checks.data import Case, Observation
from course_utils.checks.exercise import Exercise, Misconception
from course_utils.checks.judges.lesson_02_how_backward_works import LESSON
from course_utils.checks.judges.lesson_02_how_backward_works.pairs import (
    debrief_pair,
    given_pair,
    judge_pair,
    swapped,
    tensors,
    vjp,
    without_seed,
)


def _cases(seed: int) -> Iterator[Case]:
    sizes = ((2, 3, 5), (5, 2, 3), (3, 5, 2), (4, 4, 4), (2, 3, 5), (3, 1, 4), (1, 1, 1), (3, 4, 1), (1, 3, 2))
    leaves: dict[int, list[str]] = {2: ["a", "b", "v"], 5: ["b"]}
    magnitudes = {4: 1e6, 6: 1e-9}  # who clips, or takes what is small for zero, gives other numbers
    for offset, (m, k, n) in enumerate(sizes):
        dtype = torch.float32 if offset == 3 else torch.float64
        given = tensors(seed + 10 * offset, dtype, magnitudes.get(offset, 1.0), a=(m, k), b=(k, n), v=(m, n))
        name = f"({m}, {k}) @ ({k}, {n}){', other numbers' if offset == 4 else ''}"
        yield Case(
            name,
            {**given, "strided": offset == 1, "leaves": leaves.get(offset, []), "new": ["a"] if offset == 5 else []},
        )


def _as_columns(case: Case, seen: Observation) -> bool:
    returned, right = given_pair(case, seen), vjp(case, torch.matmul)
    return returned is not None and all(close(r, e.T) for r, e in zip(returned, right, strict=True))


EXERCISE = Exercise(
    id="vjp_matmul",
    title="VJP of a matrix product",
    lesson=LESSON,
    difficulty=2,
    minutes=12,
    points=2,
    call="vjp_matmul(a, b, v)",
    cases=_cases,
    judge=judge_pair(torch.matmul),
    hints=(
        "Both gradients are matrix products themselves. The shapes leave few choices.",
        "The number at (i, j) of a @ b is the sum over l of a[i, l] * b[l, j]. Which numbers of the product depend on "
        "a[i, l], and with which factors? Weight them by v and sum.",
        "The gradient of a[i, l] is the sum over j of v[i, j] * b[l, j]. Write that as a matrix product with a "
        "transposed factor. Do the same for b[l, j], summing over i.",
    ),
    misconceptions=(
        Misconception(
            "transposed",
            "Your gradients are the transposes of the right ones. A gradient has the shape of its input.",
            _as_columns,
            among=OF_VALUES,
        ),
        Misconception(
            "gradients swapped",
            "You returned the gradient of b first and that of a second.",
            swapped(torch.matmul),
            among=OF_VALUES,
        ),
        Misconception(
            "v is ignored",
            "Your gradients are those for a v of ones. The v that is given takes part in both products.",
            without_seed(torch.matmul),
            among=OF_VALUES,
        ),
    ),
    debrief=debrief_pair,
)
