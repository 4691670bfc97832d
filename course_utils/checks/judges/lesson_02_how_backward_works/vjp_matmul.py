"""Judging `vjp_matmul`: the VJP of two blocks that share a weight."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

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
    with_zeros,
    without_seed,
)


def _two_blocks(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    h = a + a @ b
    return h + h @ b


def _cases(seed: int) -> Iterator[Case]:
    sizes = ((2, 3), (5, 2), (3, 5), (4, 4), (2, 3), (3, 1), (1, 1), (3, 4), (1, 3))
    leaves: dict[int, list[str]] = {2: ["a", "b", "v"], 5: ["b"]}
    magnitudes = {4: 1e6, 6: 1e-9}  # who clips, or takes what is small for zero, gives other numbers
    for offset, (m, k) in enumerate(sizes):
        dtype = torch.float32 if offset == 3 else torch.float64
        given = tensors(seed + 10 * offset, dtype, magnitudes.get(offset, 1.0), a=(m, k), b=(k, k), v=(m, k))
        if offset == 4:
            given = with_zeros(given, 1)
        name = f"({m}, {k}) @ ({k}, {k}){', other numbers' if offset == 4 else ''}"
        yield Case(
            name,
            {**given, "strided": offset == 1, "leaves": leaves.get(offset, []), "new": ["a"] if offset == 5 else []},
        )


def _without_skips(case: Case, seen: Observation) -> bool:
    """Tell whether the gradient of `a` came through both products and by no sum."""
    returned, b = given_pair(case, seen), case.given["b"].tensor()
    return returned is not None and close(returned[0], case.given["v"].tensor() @ b.T @ b.T)


def _not_transposed(case: Case, seen: Observation) -> bool:
    """Tell whether the gradient of `a` went through b where it goes through its transpose."""
    returned, b, v = given_pair(case, seen), case.given["b"].tensor(), case.given["v"].tensor()
    d_h = v + v @ b
    return returned is not None and close(returned[0], d_h + d_h @ b)


def _by_one_use(case: Case, seen: Observation) -> bool:
    """Tell whether the gradient of `b` is what one of the two blocks sends, and that of `a` is right."""
    returned = given_pair(case, seen)
    a, b, v = (case.given[name].tensor() for name in "abv")
    second, first = (a + a @ b).T @ v, a.T @ (v + v @ b.T)
    right = vjp(case, _two_blocks)[0]
    return returned is not None and close(returned[0], right) and any(close(returned[1], it) for it in (first, second))


def _debrief(seen: Sequence[tuple[Case, Observation]]) -> Iterator[str]:
    yield from debrief_pair(seen)
    yield (
        "PyTorch's own pass goes back through two sums and two products here, and adds at three joins: at h, at a and "
        "at b. In a network that uses one weight at every step, such as an RNN, that weight is a join of all steps."
    )


EXERCISE = Exercise(
    id="vjp_matmul",
    title="Two blocks that share a weight",
    lesson=LESSON,
    difficulty=2,
    minutes=15,
    points=2,
    call="vjp_matmul(a, b, v)",
    cases=_cases,
    judge=judge_pair(_two_blocks),
    hints=(
        "Go back block by block. Where is each of a, h and b used? Each use sends something, and all of it adds up.",
        "In the second block, h is used twice: the sum sends it v, the product v @ b.T. Together they are d_h, the "
        "gradient of h, with which the first block goes on.",
        "The first block does with d_h what the second did with v. As b is used in both, its gradient is "
        "h.T @ v + a.T @ d_h.",
    ),
    misconceptions=(
        Misconception(
            "skips left out",
            "Your grad_a comes through the two products alone. The sums send something, too: to h in the second block, "
            "and to a in the first.",
            _without_skips,
            among=OF_VALUES,
        ),
        Misconception(
            "b not transposed",
            "Your grad_a went back through b itself. A product h @ b sends v @ b.T to h: the transpose.",
            _not_transposed,
            among=OF_VALUES,
        ),
        Misconception(
            "one use of b",
            "Your grad_b is what one of the two blocks sends to b. Both use it, and what they send adds up.",
            _by_one_use,
            among=OF_VALUES,
        ),
        Misconception(
            "gradients swapped",
            "You returned the gradient of b first and that of a second.",
            swapped(_two_blocks),
            among=OF_VALUES,
        ),
        Misconception(
            "v is ignored",
            "Your gradients are those for a v of ones. The v that is given is where the pass starts.",
            without_seed(_two_blocks),
            among=OF_VALUES,
        ),
    ),
    debrief=_debrief,
)
