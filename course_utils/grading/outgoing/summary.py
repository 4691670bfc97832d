"""What a class's results add up to: outcomes, misconceptions, scores and times, as plain numbers."""

from __future__ import annotations

import statistics
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from course_utils.grading.submission import ExerciseResult, Result

BINS = 10


@dataclass(frozen=True)
class ExerciseSummary:
    """How often each outcome was had in one exercise, and the median of its seconds."""

    id: str
    outcomes: dict[str, int]
    seconds: float

    @property
    def total(self) -> int:
        return sum(self.outcomes.values())


@dataclass(frozen=True)
class MisconceptionSummary:
    """A misconception and the students who hold it, sorted."""

    exercise: str
    name: str
    students: tuple[str, ...]


@dataclass(frozen=True)
class Spread:
    """Some numbers: the mean, the median, the least that 90 % do not exceed, and the largest."""

    mean: float
    median: float
    ninety: float
    largest: float


@dataclass(frozen=True)
class AssignmentSummary:
    """One assignment. `statuses` counts all submissions; the rest is about those that could be read.

    `bins` counts scores by their share of the points: from 0 up to 10 %, from 10 up to 20 %, ..., from 90 to 100 %.
    `scores` and `seconds` are None where nothing could be read.
    """

    assignment: str
    points: float
    statuses: dict[str, int]
    scores: Spread | None
    bins: tuple[int, ...]
    exercises: tuple[ExerciseSummary, ...]
    misconceptions: tuple[MisconceptionSummary, ...]
    seconds: Spread | None

    @property
    def total(self) -> int:
        return sum(self.statuses.values())


def summarise(results: Sequence[Result]) -> tuple[AssignmentSummary, ...]:
    """Add up the results of each assignment, sorted by its name; misconceptions from the most frequent on."""
    by_assignment: dict[str, list[Result]] = defaultdict(list)
    for result in results:
        by_assignment[result.assignment].append(result)
    return tuple(_assignment(name, by_assignment[name]) for name in sorted(by_assignment))


def _assignment(name: str, results: list[Result]) -> AssignmentSummary:
    # A submission that was stopped has a score, too: what it had solved until then.
    read = [result for result in results if result.status != "unreadable"]
    holders: dict[tuple[str, str], set[str]] = defaultdict(set)
    tried: dict[str, list[ExerciseResult]] = defaultdict(list)
    for result in read:
        for exercise in result.exercises:
            tried[exercise.id].append(exercise)
            for idea in exercise.misconceptions:
                holders[exercise.id, idea].add(result.student)
    misconceptions = [MisconceptionSummary(*key, tuple(sorted(holders[key]))) for key in holders]
    return AssignmentSummary(
        assignment=name,
        points=max(result.points for result in results),
        statuses=dict(Counter(result.status for result in results).most_common()),
        scores=_spread([result.score for result in read]),
        bins=_bins(read),
        exercises=tuple(_exercise(id, tried[id]) for id in tried),
        misconceptions=tuple(sorted(misconceptions, key=lambda it: (-len(it.students), it.exercise, it.name))),
        seconds=_spread([result.seconds for result in read]),
    )


def _exercise(id: str, results: list[ExerciseResult]) -> ExerciseSummary:
    outcomes = dict(Counter(result.outcome for result in results))
    return ExerciseSummary(id, outcomes, statistics.median(result.seconds for result in results))


def _bins(read: list[Result]) -> tuple[int, ...]:
    counts = [0] * BINS
    for result in read:
        share = result.score / result.points if result.points else 0.0
        counts[min(max(int(share * BINS), 0), BINS - 1)] += 1
    return tuple(counts)


def _spread(numbers: list[float]) -> Spread | None:
    if not numbers:
        return None
    ordered = sorted(numbers)
    ninety = ordered[-(-len(ordered) * 9 // 10) - 1]
    return Spread(statistics.fmean(ordered), statistics.median(ordered), ninety, ordered[-1])
