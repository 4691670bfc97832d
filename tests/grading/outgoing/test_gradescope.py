"""A result in Gradescope's form."""

from course_utils.grading.outgoing import gradescope
from course_utils.grading.submission import ExerciseResult, Result
from tests.grading.gradescope_form import valid

LESSON = "00_start_here"


def test_scores_lie_within_the_points_and_texts_are_plain():
    rows = (
        ExerciseResult("a", "correct", 9.0, 2.0, (), (), 0.1),
        ExerciseResult("b", "incorrect", -1.0, 2.0, ("idea",), ("<script>", "x\x1b\u202e"), 0.1),
    )
    told = valid(
        gradescope.told(Result("s", LESSON, "p", "timeout", 8.0, 4.0, 1.0, rows, "It was <b>stopped</b>.\x07"))
    )
    assert [test["score"] for test in told["tests"]] == [2.0, 0.0]
    assert told["score"] == 2.0
    assert told["output"] == "It was <b>stopped</b>.\\x07"
    assert told["tests"][1]["output"] == "incorrect\n<script>\nx\\x1b\\u202e"
