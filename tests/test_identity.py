"""Whose a file is, and for which assignment."""

import pytest

from course_utils.grading.identity import Place, assignment_named, assignment_of, shown, student_of

LESSON = "02_how_backward_works"


def place(path: str) -> Place:
    """What the teacher named ends at the bar."""
    before, after = path.split("|")
    parts = (*before.strip("/").split("/"), *after.strip("/").split("/"))
    return Place(("/", *parts), len(before.strip("/").split("/")) + 1)


@pytest.mark.parametrize(
    ("path", "student"),
    [
        ("t/class.zip|Ada Lovelace_12345_assignsubmission_file_/nb.ipynb", "Ada Lovelace_12345"),
        ("t/class.zip|Ada Lovelace_12345_assignsubmission_file_nb.ipynb", "Ada Lovelace_12345"),
        ("t/class|x/Ada_Lovelace_12345_assignsubmission_file_/deep/nb.ipynb", "Ada_Lovelace_12345"),
        ("t/class.zip|Ada_1_assignsubmission_file_/Ada_2_assignsubmission_file_nb.ipynb", "Ada_1"),
        ("t/class.zip|lovelaceada_123_456_nb.ipynb", "lovelaceada_123"),
        ("t/class.zip|lovelaceada_LATE_123_456_nb-1.ipynb", "lovelaceada_123"),
        (f"t|submitted/ada/{LESSON}/{LESSON}.ipynb", "ada"),
        (f"t/submitted|ada/{LESSON}/{LESSON}.ipynb", "ada"),
        (f"t/submitted/ada|{LESSON}/{LESSON}.ipynb", "ada"),
        (f"t/submitted/ada/{LESSON}|{LESSON}.ipynb", "ada"),
        ("t/submitted/ada/ps1|nb.ipynb", "ada"),
        ("t/class|ada/nb.ipynb", "ada"),
        (f"t/class|{LESSON}/ada/nb.ipynb", "ada"),
        (f"t/class|{LESSON}/ada.ipynb", "ada"),
        ("t/class|ada.zip/homework/nb.ipynb", "ada"),
        ("t/class|ada.ipynb", "ada"),
        (f"t/class|ada_{LESSON}.ipynb", "ada"),
        (f"t/class|{LESSON}-ada.ipynb", "ada"),
        (f"t/ada|{LESSON}.ipynb", "ada"),
        (f"t/ada/{LESSON}|{LESSON}.ipynb", "ada"),
        (f"t/ada.zip|{LESSON}.ipynb", "ada"),
        ("t/class|  ada \t lovelace /nb.ipynb", "ada lovelace"),
        ("t/class|ada\udcff/nb.ipynb", "ada\\udcff"),
    ],
)
def test_students(path, student):
    assert student_of(place(path)) == student


def test_one_name_written_in_two_ways_is_one_student():
    assert student_of(place("t|Zoe\u0308/nb.ipynb")) == student_of(place("t|Zo\u00eb/nb.ipynb"))


@pytest.mark.parametrize(
    ("path", "named", "assignment"),
    [
        ("t|ada/nb.ipynb", ("walk", "walk", "first_gradient"), "01_graph_structure"),
        ("t|ada/nb.ipynb", ("unknown", "first_gradient"), "00_start_here"),
        ("t|02_how_backward_works/nb.ipynb", ("first_gradient",), "00_start_here"),
        ("t|01_graph_structure/nb.ipynb", ("walk", "first_gradient"), "01_graph_structure"),
        ("t|02_how_backward_works/nb.ipynb", ("walk", "first_gradient"), "00_start_here"),
        ("t|ada/02_how_backward_works.ipynb", (), LESSON),
        ("t|ada/my 02_How_Backward_Works (1).ipynb", (), LESSON),
        ("t|02_how_backward_works/ada/nb.ipynb", (), LESSON),
        ("t|ada/02-final.ipynb", (), LESSON),
        ("t.zip|lovelaceada_123_456_02_done.ipynb", (), LESSON),
        ("t|ada/2024.ipynb", (), None),
        ("t|ada/99_x.ipynb", (), None),
        ("t|ada/nb.ipynb", ("unknown",), None),
    ],
)
def test_assignments(path, named, assignment):
    assert assignment_of(place(path), named) == assignment


def test_a_name_for_what_is_no_assignment():
    assert assignment_named(place("t.zip|lovelaceada_123_456_notes.ipynb")) == "notes"
    assert assignment_named(place("t.zip|ada/.ipynb")) == "unnamed"


def test_shown_names_can_be_kept():
    assert shown("a\udcff").encode() == b"a\\udcff"
