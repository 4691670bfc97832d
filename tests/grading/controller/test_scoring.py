"""From verdicts to the result of a submission."""

from course_utils.grading.controller import orders, scoring
from course_utils.grading.controller.conversation import Answered
from course_utils.grading.controller.running import Attempt
from course_utils.grading.submission import Submission
from tests.grading.controller.questions import FIRST, LESSON, POSED, SLOPE

SUBMISSION = Submission("s", LESSON, "s.ipynb", "d", number="17", detail="half")


def test_a_result_sums_what_was_judged() -> None:
    right = scoring.verdict(POSED[0], Answered(0.5), orders.Verdict("correct", 1.0, (), (), ()))
    wrong = scoring.verdict(POSED[1], Answered(0.25), orders.Verdict("incorrect", 0.0, ("twice",), ("No.",), ("x",)))
    result = scoring.result_of(
        SUBMISSION, POSED, Attempt("graded", seconds=1.0, again=True), {FIRST: right, SLOPE: wrong}
    )
    assert (result.student, result.assignment, result.number, result.detail) == ("s", LESSON, "17", "half")
    assert (result.status, result.score, result.points, result.seconds, result.again) == ("graded", 1.0, 2.0, 1.0, True)
    assert result.exercises == (right, wrong)
    assert (wrong.misconceptions, wrong.messages, wrong.withheld, wrong.seconds) == (("twice",), ("No.",), ("x",), 0.25)


def test_what_was_not_judged_scores_nothing_and_says_why() -> None:
    attempt = Attempt("timeout", "It was too slow.", {FIRST: Answered(1.5, attempted=True)})
    first, slope = scoring.result_of(SUBMISSION, POSED, attempt, {}).exercises
    assert (first.outcome, first.score, first.seconds) == ("error", 0.0, 1.5)
    assert (slope.outcome, slope.score, slope.seconds) == ("error", 0.0, 0.0)
    assert first.messages == slope.messages == ("This exercise could not be checked: It was too slow.",)


def test_an_answer_that_is_none_or_changes_pytorch_needs_no_judge() -> None:
    none = scoring.settled(POSED[0], Answered(0.1, complete=True))
    assert none is not None
    assert (none.outcome, none.messages) == (
        "not attempted",
        ("`first_gradient` was not defined, or still holds `...`.",),
    )
    changed = Answered(0.1, complete=True, attempted=True, changed=("torch.Tensor.sum", "builtins.all"))
    row = scoring.settled(POSED[1], changed)
    assert row is not None
    assert row.outcome == "incorrect"
    assert row.messages[0].startswith("Your code changed torch.Tensor.sum and builtins.all while it was being")
    unusable = scoring.settled(POSED[1], Answered(0.1, complete=True, attempted=True, problem="It is no function."))
    assert unusable is not None
    assert unusable.messages == ("It is no function.",)
    assert scoring.settled(POSED[1], Answered(0.1, complete=True, attempted=True, seen=(b"",))) is None
