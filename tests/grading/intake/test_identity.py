"""Whose a file is, and for which assignment."""

import time
import unicodedata

import pytest

from course_utils.checks.registry import LESSONS
from course_utils.grading.intake.identity import (
    Place,
    UnknownLesson,
    Who,
    assignment_named,
    assignment_of,
    lesson_called,
    shown,
    shown_path,
    who,
)

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
        ("t/class|Ada_Lovelace_12345_assignsubmission_file_/deep/nb.ipynb", "Ada_Lovelace_12345"),
        ("t/class|02_how_backward_works/Ada_12345_assignsubmission_file_/nb.ipynb", "Ada_12345"),
        ("t/class/Ada_12345_assignsubmission_file_|nb.ipynb", "Ada_12345"),
        ("t/class.zip|Ada_1_assignsubmission_file_/Ada_2_assignsubmission_file_nb.ipynb", "Ada_1"),
        ("t/class.zip|lovelaceada_123_456_nb.ipynb", "lovelaceada_123"),
        ("t/class.zip|lovelaceada_LATE_123_456_nb-1.ipynb", "lovelaceada_123"),
        (f"t|submitted/ada/{LESSON}/{LESSON}.ipynb", "ada"),
        (f"t/x.zip|submitted/ada_/{LESSON}/{LESSON}.ipynb", "ada_"),
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
    assert who(place(path)).name == student


@pytest.mark.parametrize(
    "path",
    [
        "t|submitted/eve/ps1/ada_12_assignsubmission_file_nb.ipynb",
        "t/submitted|eve/ps1/lovelaceada_123_456_nb.ipynb",
        "t/submitted|eve/ps1/submitted/ada/ps1/nb.ipynb",
        "t/submitted|eve/submitted/ada/nb.ipynb",
        "t/submitted/eve|ps1/ada_12_assignsubmission_file_/nb.ipynb",
        "t/submitted/eve/ps1|submitted/ada/ps1/nb.ipynb",
        "t/class|eve/lovelaceada_123_456_nb.ipynb",
        "t/class|eve/submitted/ada/ps1/nb.ipynb",
        "t/class|eve/ada_12_assignsubmission_file_/nb.ipynb",
        "t/class|eve.zip/ada_12_assignsubmission_file_/nb.ipynb",
        "t/class|eve.zip/submitted/ada/ps1/nb.ipynb",
        "t/class|02_how_backward_works/eve/ada/nb.ipynb",
    ],
)
def test_what_a_student_names_makes_nobody_else_of_them(path):
    assert who(place(path)).name == "eve"


def test_moodles_folder_tells_more_than_what_lies_in_it():
    inside = ("ada_12_assignsubmission_file_/nb.ipynb", "a_12_34_nb.ipynb", "submitted/ada/x/nb.ipynb")
    for path in inside:
        folder = "Eve 02_how_backward_works_13_assignsubmission_file_"
        assert who(place(f"t/moodle.zip|{folder}/{path}")).name == "Eve 02_how_backward_works_13"


def test_the_name_of_a_folder_is_the_nearest() -> None:
    paths = (
        "t/class|ada/nb.ipynb",
        "t/class| ada/nb.ipynb",
        f"t/class|{LESSON}/ada/nb.ipynb",
        f"t/class|{LESSON}/ada /nb.ipynb",
        "t/class|ada.ipynb",
        "t/class|ada.zip/nb.ipynb",
        f"t/class|{LESSON}.zip/ada/nb.ipynb",
    )
    found = [who(place(path)) for path in paths]
    assert {one.name for one in found} == {"ada"}
    assert [one.far for one in found] == [0, 1, 2, 3, 4, 5, 6]
    assert who(place("t/submitted|ada/ps1/nb.ipynb")).far == who(place("t/c.zip|ada.d/nb.ipynb")).far == 0
    moodle = "Ada_1_assignsubmission_file_"
    assert [who(place(f"t/c.zip|{moodle}{rest}")).far for rest in ("/nb.ipynb", "nb.ipynb")] == [0, 4]


def test_one_name_written_in_two_ways_is_one_student():
    assert who(place("t|Zoe\u0308/nb.ipynb")) == who(place("t|Zo\u00eb/nb.ipynb"))


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


@pytest.mark.parametrize(
    ("path", "number"),
    [
        ("t/class.zip|Ada Lovelace_12345_assignsubmission_file_/nb.ipynb", "12345"),
        ("t/class.zip|  Ada  B_12_assignsubmission_file_nb.ipynb", "12"),
        ("t/class.zip|lovelaceada_LATE_123_456_nb-1.ipynb", "123"),
        ("t/class|lovelaceada_123_456_work.zip/nb.ipynb", "123"),
        ("t/submitted|ada_12/ps1/nb.ipynb", ""),
        ("t/class|eve/ada_12_assignsubmission_file_nb.ipynb", ""),
        ("t/class|eve_3_assignsubmission_file_/ada_12_assignsubmission_file_nb.ipynb", "3"),
        ("t/class|eve_77/eve_77_assignsubmission_file_nb.ipynb", ""),
        ("t/class|bob_12/bob_12_34_nb.ipynb", ""),
    ],
)
def test_numbers_are_those_that_the_platform_wrote(path, number):
    assert who(place(path)).number == number


def test_what_moodle_wrote_ends_where_the_file_that_a_student_named_begins():
    path = "t/class.zip|Eve_1_assignsubmission_file_x_assignsubmission_file_Ada_2_assignsubmission_file_nb.ipynb"
    assert who(place(path)) == Who("Eve_1", "1")


def test_what_a_student_hands_in_to_moodle_by_another_way_is_theirs_as_well():
    path = "t/class.zip|Eve_1_assignsubmission_onlinetext_x_2_assignsubmission_file_nb.ipynb"
    assert who(place(path)) == Who("Eve_1", "1")


@pytest.mark.parametrize(
    "path",
    [
        "t/canvas.zip|eve_3_9003_x_101_assignsubmission_file_nb.ipynb",
        "t/canvas.zip|eve_LATE_3_9003_101_assignsubmission_file_nb.ipynb",
        "t/canvas.zip|eve_van_e_3_9003_x_101_assignsubmission_file_nb.ipynb",
        "t/canvas|eve_3_9003_x_101_assignsubmission_file_work.zip/nb.ipynb",
        "t/canvas|eve_3_9003_x_101_assignsubmission_file_work/nb.ipynb",
        "t/eve_3_9003_x_101_assignsubmission_file_work.zip|nb.ipynb",
        "t/eve_3_9003_x_101_assignsubmission_file_work.zip|ada_101_assignsubmission_file_/nb.ipynb",
    ],
)
def test_what_follows_the_name_that_canvas_wrote_makes_nobody_else_of_a_student(path):
    found = who(place(path))
    assert found.name.startswith("eve_")
    assert found.name.endswith(("_assignsubmission_file_nb", "_assignsubmission_file_work"))
    assert not found.number
    assert "_3_9003_" in found.doubt


def test_a_zip_that_canvas_named_is_that_students():
    for path in ("t/class|lovelaceada_123_456_work.zip/nb.ipynb", "t/c.zip|lovelaceada_LATE_123_456_work.zip"):
        assert who(place(path)) == Who("lovelaceada_123", "123")


@pytest.mark.parametrize(
    ("name", "printed"),
    [
        ("a\x1b[2Jb", "a\\x1b[2Jb"),
        ("\u202egnp.exe", "\\u202egnp.exe"),
        ("a\u200bb", "a\\u200bb"),
        ("a\nb", "a\\nb"),
        ("Zo\u00eb \u0141ukasz \u674e", "Zo\u00eb \u0141ukasz \u674e"),
    ],
)
def test_what_does_not_print_never_reaches_a_terminal(name, printed):
    assert shown(name) == printed
    assert shown(name).isprintable()


def test_long_names_are_cut_and_stay_different():
    first, second = (who(place(f"t/c.zip|{'x' * 60_000}{end}/nb.ipynb")).name for end in "ab")
    assert first != second
    assert len(first) < 300
    path = shown_path("a" * 5000 + "nb.ipynb")
    assert len(path) < 700
    assert path.endswith("nb.ipynb")


def test_a_normal_form_takes_time_in_proportion():
    text = "e\u0301 " * 200 + "\u1112\u1161\u11ab" * 50 + "x\u0327\u0300"
    assert shown(text) == unicodedata.normalize("NFC", text)
    before = time.thread_time()
    shown("a" + "\u0300" * 100_000 + "\u0327" * 100_000)
    shown("a" * 1_000_000)
    assert time.thread_time() - before < 5, "seconds: at once it takes minutes"


def test_lessons_are_called_by_their_beginning():
    assert lesson_called("02") == lesson_called(LESSON) == LESSON
    assert [lesson_called(lesson) for lesson in LESSONS] == list(LESSONS)
    for name in ("", "0", "99", "02_how_backward_works.ipynb"):
        with pytest.raises(UnknownLesson, match=f"'{name}' names no single lesson of the course: 00_start_here, 01"):
            lesson_called(name)
