"""Cases for models whose last layer is new."""

from __future__ import annotations

from course_utils.checks.data import Case


def head_cases(seed: int) -> list[Case]:
    return [
        Case("three batches", {"seed": seed, "sizes": [5, 7, 4]}),
        Case("old gradients, and a part that evaluates", {"seed": seed + 1, "sizes": [4, 6, 3], "oddities": True}),
    ]
