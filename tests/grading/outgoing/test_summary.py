"""What a class's results add up to."""

from course_utils.grading.outgoing.summary import Spread, summarise
from course_utils.grading.submission import ExerciseResult, Result


def exercise(name: str, outcome: str, *ideas: str, seconds: float = 0.1) -> ExerciseResult:
    return ExerciseResult(name, outcome, 1.0 * (outcome == "correct"), 1.0, ideas, (), seconds)


def result(student: str, score: float, *exercises: ExerciseResult, status="graded", seconds=1.0, of="a") -> Result:
    return Result(student, of, "p", status, score, 10.0, seconds, exercises)


def test_outcomes_misconceptions_scores_and_times():
    one = result("ada", 10.0, exercise("walk", "correct"), exercise("step", "incorrect", "twice"))
    two = result("bob", 2.5, exercise("walk", "error", "no sum"), exercise("step", "incorrect", "twice", "no sum"))
    three = result("carol", 0.0, exercise("walk", "correct", seconds=0.4), status="timeout", seconds=60.0)
    four = result("dan", 0.0, exercise("walk", "not attempted"), status="unreadable", seconds=0.0)
    (summary,) = summarise([one, two, three, four])
    assert (summary.assignment, summary.points, summary.total) == ("a", 10.0, 4)
    assert summary.statuses == {"graded": 2, "timeout": 1, "unreadable": 1}
    assert summary.scores == Spread(12.5 / 3, 2.5, 10.0, 10.0)
    assert summary.bins == (1, 0, 1, 0, 0, 0, 0, 0, 0, 1)
    walk, step = summary.exercises
    assert (walk.id, walk.outcomes, walk.total, walk.seconds) == ("walk", {"correct": 2, "error": 1}, 3, 0.1)
    assert (step.id, step.outcomes) == ("step", {"incorrect": 2})
    found = [(it.exercise, it.name, it.students) for it in summary.misconceptions]
    assert found == [("step", "twice", ("ada", "bob")), ("step", "no sum", ("bob",)), ("walk", "no sum", ("bob",))]
    assert summary.seconds == Spread(62 / 3, 1.0, 60.0, 60.0)


def test_assignments_are_apart():
    summaries = summarise([result("ada", 1.0, of="b"), result("ada", 2.0, of="a"), result("bob", 3.0, of="b")])
    assert [(it.assignment, it.total) for it in summaries] == [("a", 1), ("b", 2)]


def test_nothing_readable_has_no_scores():
    (summary,) = summarise([result("ada", 0.0, status="unreadable")])
    assert summary.scores is None
    assert summary.seconds is None
    assert summary.statuses == {"unreadable": 1}
    assert sum(summary.bins) == 0
    assert summarise([]) == ()


def test_points_of_zero_and_ninety_percent():
    (summary,) = summarise([Result(str(n), "a", "p", "graded", 0.0, 0.0, float(n), ()) for n in range(1, 21)])
    assert summary.bins[0] == 20
    assert (summary.seconds.ninety, summary.seconds.largest) == (18.0, 20.0)
