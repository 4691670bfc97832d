"""What the stages of the engine share: the stages that each needs, and the findings that all of them begin with."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from course_utils.checks.compare import listed
from course_utils.checks.data import Case, Observation, Raised
from course_utils.checks.examine import ATTEMPTED
from course_utils.checks.exercise import Exercise, Finding, Misconception
from course_utils.checks.judges.lesson_11_build_your_own import LESSON, ORDER

Judge = Callable[[dict[str, Any], Observation], Iterable[Finding]]

# How many random expressions a stage is tried on that a later one needs.
FEW = 8


@dataclass(frozen=True)
class Stage:
    """One stage: its id, what it is given (from a seed and a number of random expressions), how it is judged.

    `needs` are the stages that it stands on, the first ones first.
    """

    id: str
    given: Callable[[int, int], dict[str, Any]]
    judge: Judge
    needs: tuple[Stage, ...] = ()

    @property
    def number(self) -> int:
        return ORDER.index(self.id) + 1

    @property
    def title(self) -> str:
        return f"stage {self.number}, `{self.id}`"

    def chain(self) -> tuple[Stage, ...]:
        """Return the stages that this one needs, and those that they need, the first ones first."""
        found = {below.id: below for need in self.needs for below in (*need.chain(), need)}
        return tuple(sorted(found.values(), key=lambda stage: stage.number))


def exercise(
    stage: Stage,
    count: int,
    *,
    title: str,
    difficulty: int,
    minutes: int,
    points: int,
    hints: tuple[str, str, str],
    misconceptions: tuple[Misconception, ...],
) -> Exercise:
    """Return a stage as an exercise. The stages that it needs are tried first, on little."""

    def cases(seed: int) -> list[Case]:
        below = [Case(f"stage {it.number}, {it.id}", {"stage": it.id, **it.given(seed, FEW)}) for it in stage.chain()]
        return [*below, Case("", {"stage": stage.id, **stage.given(seed, count)})]

    stages = {it.id: it for it in (*stage.chain(), stage)}

    def judge(case: Case, seen: Observation) -> Iterator[Finding]:
        asked = stages[case.given["stage"]]
        found = [*_first(asked, seen)] if _stopped(seen) else [*_first(asked, seen), *asked.judge(case.given, seen)]
        if asked is stage:
            yield from found
            return
        failed = next((finding for finding in found if not finding.ok), None)
        if failed is not None and failed.prop == ATTEMPTED:
            yield Finding(ATTEMPTED, False, f"This stage needs {asked.title}. {failed.message}")
        else:
            text = (
                f"This stage needs {asked.title}, which your engine does not pass. {failed.message}" if failed else ""
            )
            yield Finding(f"needs {asked.id}", failed is None, text)

    def own(wrong: Misconception) -> Misconception:
        return replace(
            wrong,
            seen=lambda case, seen: case.given["stage"] == stage.id and "absent" not in seen and wrong.seen(case, seen),
        )

    return Exercise(
        id=stage.id,
        title=title,
        lesson=LESSON,
        difficulty=difficulty,
        minutes=minutes,
        points=points,
        call="engine",
        cases=cases,
        judge=judge,
        hints=hints,
        misconceptions=(*map(own, misconceptions), ANOTHER),
        answer="engine",
        # For nodes of the learner's own, and tensors that are kinds of NumPy's arrays.
        reaches=("setattr with a computed name", "__dict__", "__array_finalize__", "__array_ufunc__", "__del__"),
    )


def _stopped(seen: Observation) -> bool:
    return bool(seen.get("absent"))


def _first(stage: Stage, seen: Observation) -> Iterator[Finding]:
    absent = seen.get("absent") or []
    message = (
        f"Not there yet: {listed(f'`{part}`' for part in absent)}. The table of the interface says what each does."
    )
    yield Finding(ATTEMPTED, not absent, message)
    if absent:
        return
    used, others = seen["torch"], seen["elsewhere"]
    message = f"PyTorch ran inside your engine: {listed(used)}. Every operation is to be NumPy's."
    yield Finding("alone", not used, message)
    packages = [] if isinstance(others, Raised) else others
    yield Finding("alone", not packages, f"{listed(packages)} ran inside your engine. It is to be your own.")
    before, after = seen["records"]
    yield Finding("records", before is not False or after is not False, _OFF_BEFORE)
    yield Finding("records", before is not True or after is not False, _OFF_AFTER)


_OFF_BEFORE = (
    "For a leaf x that requires a gradient, `x * x` has no grad_fn. If your engine did record before this check, "
    "something left recording off: a block or pass that ended in an exception, or a block inside another. Put the "
    "switch back to what it was, in a `finally`, and run the cells of your engine again."
)
_OFF_AFTER = (
    "In the course of this check your engine stopped recording, and what follows has no graph. Something left your "
    "switch off: a block or a pass that ended in an exception, as some here must, or a block inside another. Put it "
    "back to what it was, in a `finally`, and run the cells of your engine again."
)


def _elsewhere(case: Case, seen: Observation) -> bool:
    others = seen.get("elsewhere")
    return bool(seen.get("torch")) or (isinstance(others, list) and bool(others))


ANOTHER = Misconception(
    "another autograd",
    "Your engine has another one do the work: operations of PyTorch's, or of a package like it, ran inside. NumPy "
    "computes, and the record and its rules are yours.",
    _elsewhere,
)


def nothing(seed: int, count: int) -> dict[str, Any]:
    """Give a stage nothing: its scenes are always the same."""
    return {}


def ran(seen: Observation, scenes: Mapping[str, str]) -> Iterator[Finding]:
    """Find whether no scene ended in an exception. `scenes` says what each tried, as a sentence begins."""
    for name, tried in scenes.items():
        text = f"{tried} ended in {told(seen[name])}." if raised(seen[name]) else ""
        yield Finding("runs", not raised(seen[name]), text)


def raised(result: object, kind: str | None = None) -> bool:
    """Return whether a scene ended in an exception, or in one of a kind."""
    return isinstance(result, Raised) and (kind is None or result.kind == kind)


def told(error: Raised) -> str:
    """Return an exception as the end of a sentence."""
    where = f", in the line `{error.line}`" if error.line else ""
    return f"{error.kind}{': ' + error.message if error.message else ''}{where}"
