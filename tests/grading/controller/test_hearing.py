"""Judging one submission: whatever becomes of the process that judges it, there is a row, and others go on."""

import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from course_utils.grading.controller import hearing, judges
from course_utils.grading.controller.conversation import Answered
from course_utils.grading.controller.hearing import Hearing
from course_utils.grading.controller.judges import Judges
from course_utils.grading.submission import ExerciseResult
from tests.grading.controller.questions import FIRST, LESSON, POSED, RIGHT, SLOPE, seen
from tests.grading.submissions import submission

SEEN = {item.exercise.id: seen(item, RIGHT[item.exercise.id]) for item in POSED}


@pytest.fixture(scope="module")
def every() -> Iterator[Judges]:
    """Judges that do what the warnings beside an answer say."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(judges, "PROGRAM", "tests.grading.controller.faulty")
        found = Judges()
        yield found
        found.close()


def heard(every: Judges, *deeds: str, told: list[ExerciseResult] | None = None) -> tuple[Hearing, list[ExerciseResult]]:
    """Have two right answers judged, the first by a process that does `deeds` before."""
    with Hearing(every, told.append if told is not None else None) as found:
        for item, warnings in zip(POSED, (deeds, ()), strict=True):
            answer = Answered(0.1, True, True, seen=SEEN[item.exercise.id], warnings=warnings)
            found.hear(item, answer)
        rows = found.rows()
    return found, [rows[name] for name in (FIRST, SLOPE) if name in rows]


def test_right_answers_are_judged_and_told_in_turn(every: Judges) -> None:
    told: list[ExerciseResult] = []
    found, rows = heard(every, told=told)
    assert (found.status, found.reason, found.again) == ("graded", "", False)
    assert [row.outcome for row in rows] == ["correct", "correct"]
    assert told == rows


def test_a_call_in_c_that_does_not_end_is_ended_and_costs_this_submission_alone(
    every: Judges, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hearing, "SECONDS", 1.0)
    ended: dict[str, float] = {}
    results = {}

    def hear(name: str, *deeds: str) -> None:
        results[name] = heard(every, *deeds)
        ended[name] = time.monotonic()

    threads = [
        threading.Thread(target=hear, args=("busy", "compute in C")),
        *(threading.Thread(target=hear, args=(f"{number}",)) for number in range(4)),
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found, rows = results.pop("busy")
    assert (found.status, found.again) == ("timeout", False)
    assert found.reason == "What was observed of `first_gradient` could not be judged in 1 seconds."
    assert [row.outcome for row in rows] == ["error", "error"]
    assert rows[1].messages == (
        "This exercise could not be checked: what was observed could not be judged in time.",
    )  # its budget was spent
    assert all(one.status == "graded" for one, _ in results.values())
    assert max(ended, key=lambda name: ended[name]) == "busy"


def test_a_process_that_only_waits_is_ended_by_the_clock(every: Judges, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hearing, "CLOCK_SECONDS", 0.5)
    found, rows = heard(every, "wait")
    assert found.status == "timeout"
    assert [row.outcome for row in rows] == ["error", "error"]


@pytest.mark.parametrize("left", [0.0, hearing.SECONDS])
def test_a_look_at_cells_that_does_not_end_has_seconds_of_its_own(
    every: Judges, monkeypatch: pytest.MonkeyPatch, left: float
) -> None:
    monkeypatch.setattr(hearing, "LOOK_SECONDS", 1.0)
    exercises = tuple(item.exercise for item in POSED)
    before = time.monotonic()
    with Hearing(every, left=left) as found:
        flags = found.flags(submission("ada", "compute in C", assignment=LESSON), exercises)
        assert found.flags(submission("bob", assignment=LESSON), exercises) == {}
    assert time.monotonic() - before < hearing.CLOCK_SECONDS / 2
    assert set(flags.values()) == {("The look at the cells failed (it took too long). Read them.",)}
    assert flags.keys() == {FIRST, SLOPE}
    assert (found.left, found.status) == (left, "graded")


@pytest.mark.parametrize(
    ("deed", "status", "reason", "again"),
    [
        ("fill", "memory", "To judge what was observed of `first_gradient` takes too much memory.", False),
        ("leave", "crashed", "`first_gradient` could not be judged: the process that judges ended with code 3.", False),
        ("break", "crashed", "`first_gradient` could not be judged: the process that judges ended by SIGSEGV.", False),
        (
            "be killed",
            "crashed",
            "`first_gradient` could not be judged: the process that judges ended by SIGKILL, 3 times.",
            True,
        ),
        ("write", "crashed", "`first_gradient` could not be judged: File too large.", False),
    ],
)
def test_what_a_judge_does_costs_one_exercise(every: Judges, deed: str, status: str, reason: str, again: bool) -> None:
    found, rows = heard(every, deed)
    assert (found.status, found.reason, found.again) == (status, reason, again)
    assert [row.outcome for row in rows] == ["error", "correct"]
    assert rows[0].messages[0].startswith("This exercise could not be checked: ")


def test_a_parent_that_is_killed_is_replaced_and_its_children_go_with_it(every: Judges) -> None:
    judge = every.lend(LESSON)
    child = psutil.Process(judge.process)
    every.give_back(judge)
    child.parent().kill()
    found, rows = heard(every)
    assert (found.status, [row.outcome for row in rows]) == ("graded", ["correct", "correct"])
    assert not psutil.wait_procs([child], timeout=10)[1]


def test_a_process_lives_as_long_as_it_behaves(every: Judges) -> None:
    def children() -> set[int]:
        return {it.pid for it in psutil.Process().children(recursive=True) if "faulty" in " ".join(it.cmdline())}

    heard(every)
    before = children()
    heard(every)
    assert children() == before
    found, rows = heard(every, "fill a little")
    assert (found.status, [row.outcome for row in rows]) == ("graded", ["correct", "correct"])
    after = children()
    assert after != before
    assert len(after) == len(before)


def test_a_judge_has_no_file_of_the_session(every: Judges, tmp_path: Path) -> None:
    with (tmp_path / "grades.sqlite").open("w") as file:
        os.set_inheritable(file.fileno(), True)
        judge = every.lend(LESSON)
        open_files = [str(path.readlink()) for path in Path(f"/proc/{judge.process}/fd").iterdir()]
        every.give_back(judge)
    others = [name for name in open_files if name != "/dev/null"]
    assert len(others) == 1
    assert others[0].startswith("socket:")


def test_whoever_is_told_and_fails_costs_no_verdict_of_others(every: Judges) -> None:
    with Hearing(every, lambda row: 1 // 0) as found:
        found.hear(POSED[0], Answered(0.1, True, True, seen=SEEN[FIRST]))
        assert found.rows() == {}
    assert found.reason == (
        "The grader failed when it judged `first_gradient`, through no fault of the author: ZeroDivisionError: integer "
        "division or modulo by zero. The rest is judged."
    )


def test_after_the_end_nobody_is_judged() -> None:
    ended = Judges()
    ended.close()
    found, rows = heard(ended)
    assert (found.status, found.again, rows) == ("crashed", True, [])
    assert "JudgesFailed: grading was stopped" in found.reason
