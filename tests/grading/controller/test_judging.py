"""From what was seen of a submission to its result."""

from course_utils.checks.data import Raised
from course_utils.grading.controller import judging
from course_utils.grading.controller.conversation import Answered
from course_utils.grading.controller.posing import pose
from course_utils.grading.controller.running import Attempt
from course_utils.grading.submission import ExerciseResult, Submission

LESSON = "00_start_here"
POSED = pose(LESSON, lambda below: 7)
SUBMISSION = Submission("s", LESSON, "s.ipynb", "d")
FIRST, SLOPE = (item.exercise.id for item in POSED)


def judged(attempt: Attempt) -> list[ExerciseResult]:
    """Return the verdicts in the result where all that was complete has been judged as it came."""
    complete = {item.exercise.id: item for item in POSED if item.exercise.id in attempt.answers}
    rows = {name: judging.judge_one(item, attempt.answers[name]) for name, item in complete.items()}
    rows = {name: row for name, row in rows.items() if attempt.answers[name].complete}
    result = judging.result_of(SUBMISSION, POSED, attempt, rows)
    assert (result.student, result.assignment, result.points) == ("s", LESSON, 2.0)
    assert (result.status, result.reason) == (attempt.status, attempt.reason)
    assert result.score == sum(row.score for row in result.exercises)
    return list(result.exercises)


def test_what_was_observed_is_judged() -> None:
    right = Answered(0.5, complete=True, attempted=True, seen=({"value": 8},))
    wrong = Answered(0.25, complete=True, attempted=True, seen=(Raised("ValueError", "no"),) * len(POSED[1].cases))
    first, slope = judged(Attempt("graded", answers={FIRST: right, SLOPE: wrong}))
    assert (first.outcome, first.score, first.seconds) == ("correct", 1.0, 0.5)
    assert (slope.outcome, slope.score, slope.seconds) == ("error", 0.0, 0.25)
    assert "Your code raised ValueError: no" in slope.messages[0]


def test_what_was_not_observed_to_its_end_scores_nothing_and_says_why() -> None:
    half = Answered(1.5, attempted=True, seen=({"value": 8},))
    first, slope = judged(Attempt("timeout", "It was too slow.", {FIRST: half}))
    assert (first.outcome, first.score, first.seconds) == ("error", 0.0, 1.5)
    assert (slope.outcome, slope.score, slope.seconds) == ("error", 0.0, 0.0)
    assert first.messages == slope.messages == ("This exercise could not be checked: It was too slow.",)


def test_an_answer_that_is_none_or_changes_pytorch_is_not_judged() -> None:
    none = Answered(0.1, complete=True)
    changed = Answered(0.1, complete=True, attempted=True, changed=("torch.Tensor.sum", "builtins.all"))
    first, slope = judged(Attempt("graded", answers={FIRST: none, SLOPE: changed}))
    assert (first.outcome, first.messages) == (
        "not attempted",
        ("`first_gradient` was not defined, or still holds `...`.",),
    )
    assert slope.outcome == "incorrect"
    assert slope.messages[0].startswith("Your code changed torch.Tensor.sum and builtins.all while it was being")


def test_an_answer_that_is_not_there_since_its_cell_failed_is_an_error_that_says_so() -> None:
    failed = Answered(0.1, complete=True, fault="Cell 3, where the answer stands, raised an error: NameError: t")
    first, _ = judged(Attempt("graded", answers={FIRST: failed}))
    assert (first.outcome, first.score) == ("error", 0.0)
    assert first.messages == (failed.fault, "`first_gradient` was not defined, or still holds `...`.")


def test_a_part_that_is_not_there_since_its_cell_failed_is_an_error_too() -> None:
    item = next(item for item in pose("11_build_your_own", lambda below: 7) if item.exercise.id == "backward")
    seen = ({"absent": ["value.backward"]},) * len(item.cases)
    alone = judging.judge_one(item, Answered(0.1, complete=True, attempted=True, seen=seen))
    failed = judging.judge_one(item, Answered(0.1, complete=True, attempted=True, seen=seen, fault="Cell 3 failed."))
    assert alone.outcome == "not attempted"
    assert (failed.outcome, failed.messages) == ("error", ("Cell 3 failed.", *alone.messages))


def test_a_problem_is_the_message_at_a_length_that_a_page_can_hold() -> None:
    long = Answered(0.1, complete=True, attempted=True, problem="x" * 2 * judging.MAX_MESSAGE)
    first, _ = judged(Attempt("graded", answers={FIRST: long}))
    assert first.messages == ("x" * judging.MAX_MESSAGE,)


def test_a_judge_that_does_not_end_is_stopped(monkeypatch) -> None:
    monkeypatch.setattr(judging, "JUDGE_SECONDS", 0.05)
    monkeypatch.setattr(judging, "judge", lambda *arguments: [0 for _ in iter(int, 1)])
    answer = Answered(0.1, complete=True, attempted=True, seen=({"value": 8},))
    first, _ = judged(Attempt("graded", answers={FIRST: answer}))
    assert first.messages == ("This exercise could not be checked: what was observed could not be judged in time.",)
