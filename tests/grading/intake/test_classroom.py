"""nbgrader courses: their configuration, their gradebook, and what was handed in."""

import builtins

import pytest

from course_utils.grading.intake.classroom import ClassroomError, handed_in, open_classroom
from tests.grading.nbgrader_course import LESSON, RIGHT, add_assignment, answered, hand_in, make_course

OTHER = "03_graph_freeing"


@pytest.fixture
def course(tmp_path):
    return make_course(tmp_path / "c", LESSON, OTHER)


def test_what_was_handed_in_is_found_by_nbgraders_rules(course, monkeypatch):
    for student in ("bob", "ada"):
        hand_in(course, student, answered(course, RIGHT))
    hand_in(course, "ada", answered(course, {}, OTHER), OTHER)
    hand_in(course, "ada", answered(course, {})).with_name("mine-Copy1.ipynb").write_text("{}")
    (course / "submitted" / "ada" / LESSON / f"{LESSON}-Copy1.ipynb").write_text("{}")
    (course / "submitted" / "ada" / "unknown").mkdir()
    (course / "submitted" / "eve").mkdir()
    (course / "submitted" / "eve" / LESSON).symlink_to(course / "submitted" / "ada" / LESSON)
    monkeypatch.chdir(course.parent)
    found = handed_in(open_classroom(course.relative_to(course.parent)))
    assert [(one.student, one.submission.assignment) for one in found] == [
        *(("ada", LESSON), ("ada", OTHER), ("bob", LESSON)),
    ]
    assert found[2].submission.path == f"c/submitted/bob/{LESSON}/{LESSON}.ipynb"
    assert [cell for cell in found[2].submission.cells if "return 3 * x.detach() ** 2" in cell.source]
    assert found[0].notebook.cells["check_slope"].points == 1.0


def test_the_gradebook_tells_the_lesson_and_not_the_learner(course):
    hand_in(course, "ada", answered(course, {}, OTHER))
    hand_in(course, "ada", answered(course, {}, OTHER), OTHER)
    hand_in(course, "bob", "{")
    found = handed_in(open_classroom(course))
    assert [one.submission.assignment for one in found] == [LESSON, OTHER, LESSON]
    assert "was cut off" in found[2].submission.unreadable


def test_paths_limit_it(course):
    paths = [hand_in(course, student, answered(course, {})) for student in ("ada", "bob", "carl")]
    room = open_classroom(course)
    chosen = handed_in(room, [paths[0].parents[1], paths[2]])
    assert [one.student for one in chosen] == ["ada", "carl"]
    with pytest.raises(ClassroomError, match=r"elsewhere: nothing was handed in there for 00_start_here, 03_graph"):
        handed_in(room, [course / "elsewhere"])


def test_nothing_handed_in(course):
    with pytest.raises(ClassroomError, match=r"nbgrader's place is .*/submitted/<student>/<assignment>"):
        handed_in(open_classroom(course))


def test_one_lesson_in_two_assignments_is_graded_apart(course):
    add_assignment(course, "again", LESSON)
    first = hand_in(course, "ada", answered(course, {}))
    again = course / "submitted" / "ada" / "again" / first.name
    again.parent.mkdir()
    again.write_bytes(first.read_bytes())
    room = open_classroom(course)
    hand_in(course, "bob", answered(course, {}))
    ada, other, bob = handed_in(room)
    assert ada.submission == other.submission
    assert ada.submission.unreadable == (
        f"ada has 2 notebooks for lesson 00_start_here: {first} and {again}. Grade them apart: name the folders of one "
        "assignment, and another --db."
    )
    assert not bob.submission.unreadable
    assert [one.path for one in handed_in(room, [again.parent])] == [again]


def test_the_configuration_is_nbgraders(course, tmp_path):
    hand_in(course, "ada", answered(course, {}))
    hand_in(course, "bob", answered(course, {}))
    (course / "submitted").rename(course / "in")
    (course / "gradebook.db").rename(course / "other.db")
    with (course / "nbgrader_config.py").open("a") as file:
        file.write("c.CourseDirectory.submitted_directory = 'in'\nc.CourseDirectory.db_url = 'sqlite:///other.db'\n")
        file.write("c.CourseDirectory.directory_structure = '{nbgrader_step}/{student_id}/{assignment_id}'\n")
        file.write("c.CourseDirectory.student_id_exclude = 'bob'\n")
    room = open_classroom(course)
    assert [one.student for one in handed_in(room)] == ["ada"]
    assert room.path("autograded", "ada", LESSON) == course / "autograded" / "ada" / LESSON


def test_another_root(course, tmp_path):
    hand_in(course, "ada", answered(course, {}))
    home = tmp_path / "home"
    home.mkdir()
    (home / "nbgrader_config.json").write_text('{"CourseDirectory": {"root": "../c"}}')
    (one,) = handed_in(open_classroom(home))
    assert one.submission.path == str(course / "submitted" / "ada" / LESSON / f"{LESSON}.ipynb")


def test_a_course_that_cannot_be_used_says_why(course, monkeypatch):
    with (course / "nbgrader_config.py").open("a") as file:
        file.write("1 / 0\n")
    with pytest.raises(ClassroomError, match=r"nbgrader_config\.py: this configuration cannot be read: ZeroDivision"):
        open_classroom(course)
    (course / "nbgrader_config.py").unlink()
    (course / "gradebook.db").rename(course / "away.db")
    with pytest.raises(ClassroomError, match=r"no gradebook .*gradebook\.db. `nbgrader generate_assignment` makes it"):
        open_classroom(course)
    assert not (course / "gradebook.db").exists()
    (course / "gradebook.db").write_text("no database, but long enough to be none" * 99)
    with pytest.raises(ClassroomError, match="gradebook cannot be used: file is not a database"):
        open_classroom(course)
    (course / "gradebook.db").write_text("")
    with pytest.raises(ClassroomError, match=r"no such table: .* run `nbgrader db upgrade`"):
        open_classroom(course)


def test_a_gradebook_of_other_courses(tmp_path):
    course = make_course(tmp_path / "c")
    from nbgrader.api import Gradebook

    with Gradebook(f"sqlite:///{course / 'gradebook.db'}", "autograd") as book:
        book.remove_assignment(LESSON)
    with pytest.raises(ClassroomError, match="has no assignment with exercises of this course"):
        open_classroom(course)


def test_without_nbgrader_the_extra_is_named(tmp_path, monkeypatch):
    real = builtins.__import__

    def refuse(name, *rest):
        if name.startswith("nbgrader"):
            raise ImportError("No module named 'nbgrader'")
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", refuse)
    with pytest.raises(ClassroomError, match=r"nbgrader is not installed .*'\.\[classroom\]'"):
        open_classroom(tmp_path)


def test_links_are_not_followed(course):
    mine = hand_in(course, "ada", answered(course, RIGHT))
    other = hand_in(course, "bob", "")
    other.unlink()
    other.symlink_to(mine)
    _, bob = handed_in(open_classroom(course))
    assert "link" in bob.submission.unreadable
