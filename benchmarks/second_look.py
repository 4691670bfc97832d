"""What the second look costs: grading in two children against grading in one, on the same notebooks."""

from __future__ import annotations

import contextlib
import statistics
import time
from collections.abc import Iterator
from unittest import mock

from benchmarks.grading import ROOT, cpu_seconds
from benchmarks.timing import Row
from course_utils.checks.registry import LESSONS
from course_utils.grading.controller import pool
from course_utils.grading.controller.pool import MEMORY, Grader, limits_of
from course_utils.grading.intake.finding import find

TWICE = 1.9
# A child's CPU time is known when its watcher was waited for, a moment after its result.
ROUNDS, BLOCK, SETTLED = 4, 3, 0.3


def rows() -> Iterator[Row]:
    yield _against_one_child()


def _against_one_child() -> Row:
    """Compare, in turn, the CPU time of grading a lesson's right answers with that of grading without a second look."""
    ratios: dict[str, float] = {}
    for lesson in LESSONS:
        (master,) = find([ROOT / "solutions" / f"{lesson}.ipynb"])
        grader, limits = Grader(), limits_of(60.0, MEMORY, unsafe=False)
        used: dict[bool, list[float]] = {True: [], False: []}
        grader.grade(master, limits)
        for twice in (True, False) * ROUNDS:
            time.sleep(SETTLED)
            before = cpu_seconds()
            with contextlib.nullcontext() if twice else _no_second_look():
                for _ in range(BLOCK):
                    grader.grade(master, limits)
            time.sleep(SETTLED)
            used[twice].append(cpu_seconds() - before)
        grader.close()
        ratios[lesson] = min(used[True]) / min(used[False])
    worst = max(ratios, key=ratios.__getitem__)
    what = "a master with the second look, in a child of its own, against one child, CPU time"
    result = f"{statistics.median(ratios.values()):.2f} times, the median of all lessons; most for {worst}, "
    return Row(what, f"{result}{ratios[worst]:.2f}", f"at most {TWICE} times", ratios[worst] <= TWICE)


def _no_second_look() -> contextlib.AbstractContextManager[object]:
    return mock.patch.object(pool, "looked_twice", lambda result, *rest: result)
