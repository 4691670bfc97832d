"""The second look at what was found right by observing it."""

from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field

import pytest
from msgspec.structs import replace

from course_utils.grading.controller import second
from course_utils.grading.controller.conversation import Answered
from course_utils.grading.controller.judges import JudgesFailed
from course_utils.grading.controller.making import pose
from course_utils.grading.controller.parent import Parents
from course_utils.grading.controller.posing import Posed
from course_utils.grading.controller.running import Attempt
from course_utils.grading.controller.second import looked_twice
from course_utils.grading.submission import ExerciseResult, Result
from course_utils.grading.wire import Limits
from tests.grading.submissions import submission

LESSON = "04_retain_graph"
POSED = pose(LESSON, lambda below: 7)
LIMITS = Limits("none", 60.0, 1_000_000)
RIGHT = ExerciseResult("one_pass", "correct", 2.0, 2.0, (), (), 0.1, (), ("First.",), ("passes",))
RESULT = Result("ada", LESSON, "p", "graded", 2.0, 2.0, 1.0, (RIGHT, replace(RIGHT, id="loss_gradients", observed=())))


@dataclass
class Runs:
    """What stands for running: it notes what was asked, and has some heard."""

    silent: bool = False
    failed: bool = False
    limits: list[Limits] = field(default_factory=list)
    posed: list[Posed] = field(default_factory=list)

    def __call__(
        self,
        handed: object,
        posed: list[Posed],
        limits: Limits,
        parents: object,
        heard: Callable[[Posed, Answered], None],
        second: bool,
    ) -> Attempt:
        assert second
        self.limits.append(limits)
        self.posed += posed
        for item in posed:
            if not self.silent:
                heard(item, Answered(0.1, complete=True))
        if self.failed:
            return Attempt("crashed", "The warm parent is gone.", again=True, failed=True)
        return Attempt("timeout", "It was still running.") if self.silent else Attempt("graded")


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> Runs:
    found = Runs()
    monkeypatch.setattr(second, "run", found)
    return found


def looked(result: Result, row: ExerciseResult | Exception = RIGHT) -> Result:
    future: Future[ExerciseResult] = Future()
    future.set_exception(row) if isinstance(row, Exception) else future.set_result(row)
    handed = submission("ada", "x = 1", assignment=LESSON)
    found = looked_twice(result, handed, lambda: POSED, LIMITS, Parents(), lambda item, answer: future)
    assert [one.score for one in found.exercises] == [one.score for one in result.exercises], "no score changes"
    return found


def flags(result: Result, row: ExerciseResult | Exception = RIGHT) -> list[tuple[str, ...]]:
    return [one.flags for one in looked(result, row).exercises]


def test_what_is_right_twice_gets_no_flag(runs: Runs) -> None:
    assert flags(RESULT, replace(RIGHT, flags=())) == [("First.",), ("First.",)]
    assert [item.exercise.id for item in runs.posed] == ["one_pass"], "what rests on numbers alone is not run again"
    whole = next(item for item in POSED if item.exercise.id == "one_pass")
    assert len(runs.posed[0].cases) == (len(whole.cases) + 2) // 3
    assert set(runs.posed[0].cases) < set(whole.cases)
    assert runs.limits[0].seconds == 11.0, "as long as the first, and ten more"


def test_what_is_right_once_is_flagged_with_what_was_found(runs: Runs) -> None:
    wrong = replace(RIGHT, outcome="incorrect", score=0.0, messages=("You ran 2 passes.",), flags=("Second.",))
    (first, flag, other), untouched = flags(RESULT, wrong)
    assert (first, other, untouched) == ("First.", "Second.", ("First.",))
    assert "the answer was found incorrect: You ran 2 passes. Read the answer." in flag


def test_what_cannot_be_observed_again_is_flagged(runs: Runs) -> None:
    runs.silent = True
    assert flags(RESULT)[0][1] == ("The answer could not be observed a second time (It was still running). Read it.")


def said(error: str) -> str:
    return (
        f"The grader failed on a part of this submission, through no fault of its author: {error}. What was found "
        "before stands."
    )


def test_a_failure_of_the_grader_is_no_flag(runs: Runs) -> None:
    found = looked(RESULT, ValueError("x"))
    assert [one.flags for one in found.exercises] == [("First.",), ("First.",)]
    assert (found.status, found.reason, found.score, found.again) == ("crashed", said("ValueError: x"), 2.0, False)
    found = looked(RESULT, JudgesFailed("no room"))
    assert (found.status, found.reason, found.again) == ("crashed", said("no room"), True)
    runs.silent = runs.failed = True
    found = looked(RESULT)
    assert (found.reason, found.again) == (said("The warm parent is gone"), True)
    assert [one.flags for one in found.exercises] == [("First.",), ("First.",)]
    timeout = looked(replace(RESULT, status="timeout", reason="It took long."))
    assert (timeout.status, timeout.reason, timeout.again) == ("timeout", "It took long.", True)


def test_where_the_cases_cannot_be_made_it_is_tried_again(runs: Runs) -> None:
    def fails() -> list[Posed]:
        raise OSError("no room")

    found = looked_twice(RESULT, submission("ada", "x = 1"), fails, LIMITS, Parents(), lambda item, answer: Future())
    assert found.exercises == RESULT.exercises
    assert (found.reason, found.again) == (said("OSError: no room"), True)


def test_where_no_points_rest_on_observation_nothing_runs(runs: Runs) -> None:
    without = replace(RESULT, exercises=(replace(RIGHT, score=0.0), replace(RIGHT, observed=())))
    assert flags(without) == [("First.",), ("First.",)]
    assert not runs.posed
