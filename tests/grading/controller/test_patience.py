"""How long a run waits for one student."""

from typing import Any

import pytest
from msgspec.structs import replace

from course_utils.checks.registry import LESSONS
from course_utils.grading.controller.patience import Patience
from course_utils.grading.controller.pool import Grader, grade_all
from course_utils.grading.submission import Result
from tests.grading.submissions import RIGHT, needs_a_sandbox, submission, total_of

HANG = "import time\nwhile True:\n    try:\n        while True: time.sleep(1)\n    except BaseException: pass\n"


def test_what_is_quick_costs_nothing_however_many_there_are() -> None:
    patience = Patience(60)
    for _ in range(100):
        patience.took("ada", 29)
    assert not patience.over("ada")


def test_a_student_whose_slow_ones_took_three_limits_waits_for_another_run() -> None:
    patience = Patience(60)
    patience.took("eve", 121)
    patience.took("ada", 178)
    assert not patience.over("eve")
    patience.took("eve", 59.4)
    assert patience.over("eve") == (
        "It was not run: other notebooks of this student took 180 seconds in this run, which waits for 180 seconds of "
        "one student's, beside those that are quick. The same command tries it again."
    )
    assert not patience.over("ada")
    assert not Patience(60).over("eve"), "each run begins anew"


@needs_a_sandbox
def test_one_that_hangs_in_each_lesson_keeps_nobody_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    def graded(self: Grader, submission: Any, *rest: Any) -> Result:
        ran.append(submission)
        return real(self, submission, *rest)

    ran: list[Any] = []
    real = Grader.graded
    monkeypatch.setattr(Grader, "graded", graded)
    hanging = [submission("eve", HANG, HANG, HANG, assignment=lesson) for lesson in LESSONS[:5]]
    last = submission("zoe", RIGHT)
    unread = replace(submission("eve", assignment=LESSONS[5]), unreadable="No.")
    results = list(grade_all([*hanging, unread, last], jobs=1, timeout=5))
    assert len(results) == 7
    hung = [one.student for one in ran].count("eve")
    assert hung in (2, 3), "three limits, with what it takes to start"
    statuses = sorted((one.status, one.again) for one in results if one.student == "eve")
    expected = [("crashed", True)] * (5 - hung) + [("timeout", False)] * hung + [("unreadable", False)]
    assert statuses == expected
    assert (results[-1].student, results[-1].score) == ("zoe", total_of())
    refused = [one for one in results if one.status == "crashed"]
    assert all(one.points and "in this run, which waits for 15 seconds" in one.reason for one in refused)
