"""What a report says about how far points hold."""

import msgspec

from course_utils.grading.outgoing import flagged
from course_utils.grading.outgoing.report import class_page, student_page
from course_utils.grading.submission import ExerciseResult, Result

SENTENCE = "Cell 3 uses `gc.get_objects`. <b>Read</b> the cell."
ROW = ExerciseResult("walk", "correct", 2.0, 2.0, (), (), 0.1, (), (SENTENCE,), ("passes", "<kept>"))
ADA = Result("ada", "01_graph_structure", "nb.ipynb", "graded", 2.0, 2.0, 0.1, (ROW,))
BOB = msgspec.structs.replace(ADA, student="bob", exercises=(msgspec.structs.replace(ROW, flags=(), observed=()),))


def test_the_class_page_names_whom_to_look_at_and_why():
    page = class_page([ADA, BOB])
    assert page.count(flagged.HEADING) == 1
    assert "<code>gc.get_objects</code>. &lt;b&gt;Read" in page
    assert flagged.HEADING not in class_page([BOB])


def test_a_student_does_not_read_the_flags():
    assert "get_objects" not in student_page("ada", [ADA])


def test_a_student_page_says_what_points_rest_on():
    assert "observed while the answer ran: passes, &lt;kept&gt;." in student_page("ada", [ADA])
    assert "observed while" not in student_page("bob", [BOB])
    assert flagged.resting(msgspec.structs.replace(ROW, score=0.0)) == "", "there are none"


def test_a_class_page_stays_small_whatever_a_notebook_holds():
    many = msgspec.structs.replace(ROW, flags=tuple(f"Cell {number}: {SENTENCE}" for number in range(4000)))
    ((_, _, _, why),) = flagged.rows([msgspec.structs.replace(ADA, exercises=(many,))], str)
    assert why.count("get_objects") == flagged.SENTENCES
