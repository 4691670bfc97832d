"""Grading: right answers get their points, and nothing stops the next submission. For attacks see test_attacks.py."""

import json
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from course_utils.checks.registry import LESSONS, exercises_of
from course_utils.grading.controller import hearing, judges, machine, parent, pool
from course_utils.grading.controller.pool import grade_all
from course_utils.grading.submission import ExerciseResult, Result, Submission
from tests.answers import MISCONCEIVED, source_of
from tests.grading.submissions import RIGHT, needs_a_sandbox, points_of, submission, total_of

ROOT = Path(__file__).parents[3]

pytestmark = needs_a_sandbox


def graded(submissions: list[Submission], jobs: int = 2, **limits: float) -> dict[str, Result]:
    results = list(grade_all(submissions, jobs, **limits))
    assert len(results) == len(submissions)
    return {result.student: result for result in results}


def test_a_caller_that_wants_no_more_results_need_not_wait() -> None:
    results = grade_all([submission("a", RIGHT), *(submission(f"{n}", "while True: pass") for n in range(9))])
    assert next(results).score == total_of()
    before = time.monotonic()
    results.close()
    assert time.monotonic() - before < 8


def test_each_verdict_is_told_while_the_rest_is_observed() -> None:
    told: list[tuple[float, ExerciseResult]] = []
    slow = RIGHT + "\ndef slope(x):\n    import time\n    time.sleep(1)\n    return 3 * x.detach() ** 2\n"
    (result,) = grade_all([submission("a", slow)], told=lambda row: told.append((time.monotonic(), row)))
    end = time.monotonic()
    assert tuple(row for _, row in told) == result.exercises
    assert end - told[0][0] > 1


def test_an_exercise_that_ends_its_process_is_not_told_before_that_is_known() -> None:
    told: list[ExerciseResult] = []
    deadly = "import os\nfirst_gradient = 8\ndef slope(x): os._exit(1)"
    (result,) = grade_all([submission("a", deadly)], told=told.append)
    assert told[0].id == "first_gradient"
    assert "slope" not in {row.id for row in told}
    assert replace(result.exercises[0], flags=()) == told[0], "flags come at the end"
    assert result.exercises[1].outcome == "error"


def test_where_the_grader_fails_on_one_submission_the_others_are_graded(monkeypatch: pytest.MonkeyPatch) -> None:
    def run(submission: Submission, *rest: Any) -> Any:
        if submission.student == "b":
            raise IndexError("tuple index out of range")
        return real(submission, *rest)

    real = pool.run
    monkeypatch.setattr(pool, "run", run)
    results = graded([submission(name, RIGHT) for name in "abc"])
    assert [results[name].score for name in "abc"] == [total_of(), 0, total_of()]
    assert (results["b"].status, results["b"].points) == ("crashed", total_of())
    assert results["b"].reason == (
        "The grader failed on this submission, through no fault of its author: IndexError: tuple index out of range. "
        "All others are graded."
    )
    assert {row.outcome for row in results["b"].exercises} == {"error"}


def test_where_a_judge_fails_the_other_exercises_keep_their_points(monkeypatch: pytest.MonkeyPatch) -> None:
    def settled(item: Any, answer: Any) -> ExerciseResult | None:
        if item.exercise.id == "first_gradient":
            raise RuntimeError("invalid shape")
        return real(item, answer)

    real = hearing.settled
    monkeypatch.setattr(hearing, "settled", settled)
    (result,) = graded([submission("a", RIGHT)]).values()
    left = total_of() - points_of()["first_gradient"]
    assert (result.status, result.score, result.points, result.again) == ("crashed", left, total_of(), False)
    assert result.reason == (
        "The grader failed when it judged `first_gradient`, through no fault of the author: RuntimeError: invalid "
        "shape. The rest is judged."
    )
    first, *others = (row.outcome for row in result.exercises)
    assert (first, set(others)) == ("error", {"correct"})


def test_where_nothing_can_be_posed_each_submission_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(judges.Judges, "pose", lambda self, lesson, key: 1 / 0)
    results = graded([submission(name, RIGHT) for name in "ab"])
    assert {one.status for one in results.values()} == {"crashed"}
    assert "ZeroDivisionError: division by zero" in results["a"].reason


def test_what_cannot_be_read_is_neither_run_nor_judged_nor_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    posed: list[str] = []
    real = judges.Judges.pose
    monkeypatch.setattr(
        judges.Judges, "pose", lambda self, lesson, key: posed.append(lesson) or real(self, lesson, key)
    )
    monkeypatch.setattr(pool, "Hearing", lambda *given, **more: 1 / 0)
    monkeypatch.setattr(pool, "ThreadPoolExecutor", Idle)
    names = [f"{number:05}" for number in range(300)] + [LESSONS[0]] * 3
    tried = [Submission(f"{n}", name, "a.ipynb", "d", unreadable="No.") for n, name in enumerate(names)]
    results = graded(tried)
    assert posed == [LESSONS[0]], "cases are made for lessons alone, and once"
    assert {(one.status, one.reason, one.again, one.flags) for one in results.values()} == {
        ("unreadable", "No.", False, ())
    }
    assert (results["0"].points, results["302"].points) == (0, total_of())
    assert [row.id for row in results["302"].exercises] == list(points_of())


class Idle(ThreadPoolExecutor):
    """Threads that are never given anything to do."""

    def submit(self, *given: Any, **more: Any) -> Any:
        raise AssertionError("nothing is to be done in a thread")


def test_where_no_cases_can_be_made_what_cannot_be_read_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(judges.Judges, "pose", lambda self, lesson, key: 1 / 0)
    (result,) = grade_all([Submission("a", LESSONS[0], "a.ipynb", "d", unreadable="No.")])
    assert (result.status, result.reason, result.points) == ("unreadable", "No.", 0)


def test_where_nobody_can_look_at_the_cells_that_is_no_flag(monkeypatch: pytest.MonkeyPatch) -> None:
    def flags(self: hearing.Hearing, *given: object) -> Any:
        raise judges.JudgesFailed("there is no room")

    monkeypatch.setattr(hearing.Hearing, "flags", flags)
    (result,) = graded([submission("a", RIGHT)]).values()
    assert (result.status, result.score, result.again, result.flags) == ("crashed", total_of(), True, ())
    assert result.reason == (
        "The grader failed on a part of this submission, through no fault of its author: there is no room. What was "
        "found before stands."
    )


def test_both_looks_at_a_submission_are_judged_in_one_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    begun: list[float | None] = []

    class Noting(hearing.Hearing):
        def __init__(self, *given: Any, left: float | None = None) -> None:
            super().__init__(*given, left=left)
            begun.append(left)

    monkeypatch.setattr(pool, "Hearing", Noting)
    graded([submission("a", RIGHT)])
    first, second = begun
    assert first is None
    assert second is not None
    assert 0 < second < hearing.SECONDS


def test_a_warm_parent_that_is_killed_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    parents = []

    def deadly(used: parent.WarmParent, *arguments: object) -> object:
        parents.append(used)
        if len(parents) == 2:
            used.kill()
        return begin(used, *arguments)

    begin = parent.WarmParent.begin
    monkeypatch.setattr(parent.WarmParent, "begin", deadly)
    assert [result.score for result in grade_all([submission(f"{n}", RIGHT) for n in range(3)])] == [total_of()] * 3
    assert len(set(parents)) == 2


def test_the_masters_and_every_right_and_misconceived_answer_are_judged_as_in_a_notebook(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # With a few seeds a misconception is not told apart from another wrong answer, in notebooks too.
    real = judges.Judges.pose
    monkeypatch.setattr(judges.Judges, "pose", lambda self, lesson, key: real(self, lesson, b"the same in each run"))
    tried = []
    for lesson in LESSONS:
        cells = json.loads((ROOT / "solutions" / f"{lesson}.ipynb").read_text())["cells"]
        sources = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
        tried.append(submission(f"{lesson} master", *sources, assignment=lesson))
        # Each file apart: its names are not the exercises'.
        sources = {exercise.id: source_of(exercise.id) for exercise in exercises_of(lesson)}
        answers = f"spaces = {{name: {{'__name__': 'answers'}} for name in {list(sources)}}}\n"
        answers += f"for name, source in {sources!r}.items(): exec(source, spaces[name])"
        for number in (0, 1):
            names = {exercise.id: exercise.name for exercise in exercises_of(lesson)}
            bind = f"globals().update({{{names}[name]: space['RIGHT'][{number}] for name, space in spaces.items()}})"
            tried.append(submission(f"{lesson} right {number}", answers, bind, assignment=lesson))
        bind = f"globals().update({{{names}[name]: answer for name, space in spaces.items()\n"
        bind += "    for answer in space.get('MISCONCEIVED', {}).values()})"
        tried.append(submission(f"{lesson} wrong", answers, bind, assignment=lesson))
    results = graded(tried)
    held = {wrong for result in results.values() for row in result.exercises for wrong in row.misconceptions}
    assert all(result.status == "graded" for result in results.values())
    for name, result in results.items():
        for row in result.exercises:
            if name.endswith("wrong"):
                last = [wrong for exercise, wrong in MISCONCEIVED if exercise == row.id][-1:]
                assert row.misconceptions == tuple(last), (name, row)
            else:
                assert row.outcome == "correct", (name, row)
    assert len(held) > 50
    assert {result.points for result in results.values()} == {total_of(lesson) for lesson in LESSONS}


@pytest.fixture(scope="module")
def small() -> dict[str, Result]:
    """Small submissions in one run, by a caller with two threads."""
    deadly = "import os\nfirst_gradient = 8\ndef slope(x): os._exit(1)"
    unreadable = Submission("unreadable", LESSONS[0], "a.ipynb", "d", unreadable="It is no notebook.")
    tried = [
        submission("untouched", "first_gradient = ...\nslope = ..."),
        submission("a wrong idea", "first_gradient = 15\nslope = 3"),
        submission("errors", "1 / 0", RIGHT, "raise SystemExit", "exit()", "%nothing", "def"),
        submission("deadly", deadly),
        unreadable,
        submission("unknown", "x = 1", assignment="99_nothing"),
    ]
    return graded(tried, jobs=1)


def test_an_untouched_notebook_is_not_attempted(small: dict[str, Result]) -> None:
    result = small["untouched"]
    assert (result.status, result.score) == ("graded", 0)
    assert {row.outcome for row in result.exercises} == {"not attempted"}


def test_a_wrong_idea_is_named(small: dict[str, Result]) -> None:
    result = small["a wrong idea"]
    assert result.exercises[0].misconceptions == ("the value",)
    assert "asks for a function" in result.exercises[1].messages[0]


def test_an_error_in_one_cell_does_not_stop_the_rest(small: dict[str, Result]) -> None:
    assert (small["errors"].status, small["errors"].score) == ("graded", total_of())


def test_a_deadly_exercise_costs_only_itself(small: dict[str, Result]) -> None:
    result = small["deadly"]
    assert result.status == "crashed"
    assert [row.outcome for row in result.exercises[:2]] == ["correct", "error"]
    assert "ended itself with code 1" in result.reason


def test_what_cannot_be_graded_says_why(small: dict[str, Result]) -> None:
    assert (small["unreadable"].status, small["unreadable"].reason) == ("unreadable", "It is no notebook.")
    assert small["unreadable"].points == total_of()
    assert "99_nothing" in small["unknown"].reason


def test_limits_must_be_limits() -> None:
    with pytest.raises(ValueError, match="jobs=0"):
        list(grade_all([], jobs=0))


def test_without_a_sandbox_nothing_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "available", lambda: "none")
    with pytest.raises(machine.NoSandbox, match="--unsafe grades without"):
        list(grade_all([submission("a", "x = 1")]))


def test_the_warm_parent_holds_no_exercises() -> None:
    code = "import sys\nfrom course_utils.grading.sandbox.warm import Warmth\nWarmth().whole()\n"
    code += "assert 'course_utils.checks.observers.lesson_10_custom_functions.squash' in sys.modules\n"
    code += "assert not [name for name in sys.modules if name.startswith('course_utils.checks.judges')]\n"
    code += "from pathlib import Path\nassert len(list(Path('/proc/self/task').iterdir())) == 1"
    subprocess.run([sys.executable, "-c", code], check=True, env=machine.child_environment())
