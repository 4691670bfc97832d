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
    assert page.count(f'<h2 id="{flagged.ANCHOR}">') == 1
    assert "<code>gc.get_objects</code>. &lt;b&gt;Read" in page
    assert f'href="#{flagged.ANCHOR}"' in page
    assert flagged.ANCHOR not in class_page([BOB])


def test_those_with_the_same_flags_stand_together():
    eve = msgspec.structs.replace(ADA, student="eve")
    part = flagged.section([ADA, BOB, eve], ", ".join)
    assert part.count("<li>") == 1
    assert "ada, eve" in part


def test_a_student_does_not_read_the_flags():
    assert "get_objects" not in student_page("ada", [ADA])


def test_a_student_page_says_what_points_rest_on():
    assert "observed while the answer ran: passes, &lt;kept&gt;." in student_page("ada", [ADA])
    assert "observed while" not in student_page("bob", [BOB])
    assert flagged.resting(msgspec.structs.replace(ROW, score=0.0)) == "", "there are none"


def test_a_class_page_stays_small_whatever_a_notebook_holds():
    many = msgspec.structs.replace(ROW, flags=tuple(f"Cell {number}: {SENTENCE}" for number in range(4000)))
    part = flagged.section([msgspec.structs.replace(ADA, exercises=(many,))], ", ".join)
    assert part.count("get_objects") == flagged.SENTENCES
    each = [
        msgspec.structs.replace(ADA, exercises=(msgspec.structs.replace(ROW, flags=(f"Cell {number}.",)),))
        for number in range(400)
    ]
    part = flagged.section(each, ", ".join)
    assert part.count("<li>") == flagged.ITEMS
    assert "And 300 more" in part
