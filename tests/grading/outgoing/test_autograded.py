"""The notebook that nbgrader shows of a graded submission."""

import nbformat
import pytest
from nbgrader.utils import compute_checksum, determine_grade

from course_utils.grading.intake.reading import AnyCell
from course_utils.grading.intake.released import CourseCell, CourseNotebook
from course_utils.grading.outgoing import autograded as module
from course_utils.grading.outgoing.autograded import auto_comments, auto_scores, autograded
from course_utils.grading.outgoing.converting import Converter, tried
from course_utils.grading.submission import ExerciseResult, Result

KERNEL = {"display_name": "Python 3", "language": "python", "name": "python3"}


def course_cell(name: str, source: str, **more: object) -> CourseCell:
    kind = {"locked": False, "grade": False, "solution": False, "task": False, "points": 0.0} | more
    graded, commented = kind["grade"] or kind["task"], kind["solution"] or kind["task"]
    made = {"name": name, "cell_type": "code", "source": source, "checksum": f"sum of {name}"} | kind
    return CourseCell(**made, graded=f"g {name}" * graded, commented=f"c {name}" * commented)


def check_cell(name: str, points: float) -> CourseCell:
    return course_cell(f"check_{name}", f'check("{name}", {name})', locked=True, grade=True, points=points)


CELLS = (
    course_cell("walk", "walk = ...", solution=True),
    check_cell("walk", 2.0),
    course_cell("step", "step = ...", solution=True),
    check_cell("step", 3.0),
    course_cell("essay", "Write here.", cell_type="markdown", solution=True, grade=True, points=4.0),
    course_cell("own_test", "assert walk", locked=True, grade=True, points=1.0),
    course_cell("poster", "Make one.", cell_type="markdown", locked=True, task=True, points=5.0),
)
COURSE = CourseNotebook("n", "nb", "a", "k", "01_graph_structure", KERNEL, {cell.name: cell for cell in CELLS})
HANDED = (
    AnyCell("markdown", "# Title", ""),
    AnyCell("code", "walk = 1", "walk"),
    AnyCell("code", "raise SystemExit", "check_walk"),
    AnyCell("code", "step = ...", "step"),
    AnyCell("code", 'check("step", step)', "check_step"),
    AnyCell("markdown", "My words.", "essay"),
    AnyCell("code", "assert walk", "own_test"),
    AnyCell("markdown", "Make one.", "poster"),
)
WALK = ExerciseResult("walk", "correct", 2.0, 2.0, (), (), 0.1)
STEP = ExerciseResult("step", "error", 0.0, 3.0, (), ("It raised \x1b[31m<b>bad</b>\nin line 2.",), 0.1)
RESULT = Result("ada", "01_graph_structure", "p", "graded", 2.0, 5.0, 0.1, (WALK, STEP))


def in_this_process(texts):
    return [tried(text) for text in texts]


def made(cells=HANDED, result=RESULT, converted=in_this_process) -> nbformat.NotebookNode:
    notebook = nbformat.reads(autograded(cells, COURSE, result, converted).decode(), 4)
    nbformat.validate(notebook)
    return notebook


def named(notebook: nbformat.NotebookNode) -> dict:
    return {cell.metadata.nbgrader.grade_id: cell for cell in notebook.cells if "nbgrader" in cell.metadata}


def test_the_courses_locked_cells_replace_the_learners():
    cells = made().cells
    assert [cell.source for cell in cells] == [
        *(
            "# Title",
            "walk = 1",
            'check("walk", walk)',
            "step = ...",
            'check("step", step)',
            "My words.",
            "assert walk",
        ),
        "Make one.",
    ]
    assert named(made())["check_walk"].metadata.nbgrader == {
        **{"schema_version": 3, "grade_id": "check_walk", "cell_type": "code", "checksum": "sum of check_walk"},
        **{"grade": True, "solution": False, "locked": True, "task": False, "points": 2.0},
    }
    assert "nbgrader" not in cells[0].metadata
    assert made().metadata == {"kernelspec": KERNEL, "language_info": {"name": "python"}}


def test_check_cells_show_our_verdict_as_plain_text_and_nothing_else_has_outputs():
    cells = named(made())
    (right,), (wrong,) = cells["check_walk"].outputs, cells["check_step"].outputs
    assert right == {"output_type": "stream", "name": "stdout", "text": "✔ walk: correct\n"}
    assert (wrong.ename, wrong.evalue) == ("CheckFailed", "step: error")
    assert wrong.traceback == ["✘ step: error\n  It raised \N{REPLACEMENT CHARACTER}[31m<b>bad</b>\n  in line 2."]
    assert [name for name, cell in cells.items() if cell.get("outputs")] == ["check_walk", "check_step", "own_test"]


def test_nbgrader_reads_the_scores_that_we_give_out_of_the_outputs():
    cells, scores = named(made()), auto_scores(HANDED, COURSE, RESULT)
    for name in ("check_walk", "check_step"):
        assert determine_grade(cells[name])[0] == scores[name]


def test_a_person_grades_what_we_did_not():
    scores = auto_scores(HANDED, COURSE, RESULT)
    assert scores == {"check_walk": 2.0, "check_step": 0.0, "essay": None, "own_test": None}
    assert "not judged" in named(made())["own_test"].outputs[0].evalue
    untouched = [cell if cell.grade_id != "essay" else AnyCell("markdown", "Write here.", "essay") for cell in HANDED]
    assert auto_scores(untouched, COURSE, RESULT)["essay"] == 0.0


def test_a_process_that_died_is_no_zero():
    crashed = Result("ada", "01_graph_structure", "p", "crashed", 2.0, 5.0, 0.1, (WALK, STEP))
    assert auto_scores(HANDED, COURSE, crashed)["check_step"] is None
    assert auto_scores(HANDED, COURSE, crashed)["check_walk"] == 2.0
    stopped = Result("ada", "01_graph_structure", "p", "timeout", 2.0, 5.0, 0.1, (WALK, STEP))
    assert auto_scores(HANDED, COURSE, stopped)["check_step"] == 0.0


def test_points_that_the_teacher_changed():
    cells = {**COURSE.cells, "check_walk": check_cell("walk", 10.0)}
    course = CourseNotebook("n", "nb", "a", "k", COURSE.lesson, KERNEL, cells)
    assert auto_scores(HANDED, course, RESULT)["check_walk"] == 10.0


def test_missing_cells_come_back_after_their_answer_or_at_the_end():
    cells = made([cell for cell in HANDED if cell.grade_id in ("", "walk", "poster")]).cells
    assert [cell.metadata.get("nbgrader", {}).get("grade_id") for cell in cells] == [
        *(None, "walk", "check_walk", "poster", "check_step", "essay", "own_test"),
    ]
    assert len({cell.id for cell in cells}) == len(cells)
    assert auto_scores([], COURSE, RESULT)["check_walk"] == 2.0


def test_of_two_cells_with_one_name_the_last_counts():
    cells = made([AnyCell("code", "walk = 0", "walk"), *HANDED]).cells
    assert "nbgrader" not in cells[0].metadata
    assert auto_comments([AnyCell("code", "walk = ...", "walk"), *HANDED], COURSE)["walk"] is None


def test_a_name_that_is_none_of_the_course_is_dropped():
    cells = made([*HANDED, AnyCell("code", "1", "forged")]).cells
    assert cells[-1].metadata == {}


def test_comments_as_nbgraders():
    assert auto_comments(HANDED, COURSE) == {"walk": None, "step": "No response.", "essay": None, "poster": None}
    assert auto_comments([], COURSE) == {}


@pytest.mark.parametrize(
    ("cell", "shown"),
    [
        (AnyCell("markdown", "<img src=x onerror=alert(1)>", ""), "< img src=x onerror=alert(1)>"),
        (AnyCell("markdown", "a<b, a < 1, <!--, </p>, <?", "essay"), "a< b, a < 1, < !--, < /p>, < ?"),
        (AnyCell("raw", "<script>alert(1)</script>", ""), "<script>alert(1)</script>"),
    ],
)
def test_no_tag_of_a_learners_is_left_where_nbgrader_shows_html(cell, shown):
    (first, *_) = made([cell, *HANDED[:5]]).cells
    assert first.source == shown
    assert first.cell_type == ("code" if cell.cell_type == "raw" else "markdown")


def test_the_same_bytes_each_time():
    with Converter() as converter:
        first = autograded(HANDED, COURSE, RESULT, converter.converted)
        assert autograded(HANDED, COURSE, RESULT, converter.converted) == first
    assert autograded(HANDED, COURSE, RESULT, in_this_process) == first


def test_checksums_are_nbgraders(tmp_path):
    from course_utils.grading.intake.classroom import handed_in, open_classroom
    from course_utils.grading.intake.reading import cells_of
    from tests.grading.nbgrader_course import LESSON, RIGHT, answered, hand_in, make_course

    course = make_course(tmp_path / "c")
    hand_in(course, "ada", answered(course, RIGHT))
    (one,) = handed_in(open_classroom(course))
    bare = Result("ada", LESSON, "p", "graded", 0.0, 2.0, 0.1, ())
    data = autograded(cells_of(one.path.read_bytes()), one.notebook, bare, in_this_process)
    for name, cell in named(nbformat.reads(data.decode(), 4)).items():
        assert (compute_checksum(cell) == cell.metadata.nbgrader.checksum) is (name.startswith("check_"))


@pytest.mark.parametrize(
    "source",
    ["![x]( attachment:y.png)", "![x][y]\n\n[y]:\n  attachment:z.png", "> " * 100_001, "![x](attachment:y.png)"],
)
def test_markdown_that_no_page_can_be_made_of_stops_no_feedback(source):
    from nbconvert import HTMLExporter

    notebook = made((AnyCell("markdown", source, ""), *HANDED))
    page, _ = HTMLExporter().from_notebook_node(notebook)
    assert "My words." in page


def test_what_no_converter_takes_is_shown_as_it_was_typed():
    def converted(texts):
        return [None if text == "evil" else text for text in texts]

    first, second = made((AnyCell("markdown", "evil", ""), AnyCell("markdown", "kind", "")), converted=converted).cells[
        :2
    ]
    assert (first.cell_type, first.source) == ("code", "evil")
    assert (second.cell_type, second.source) == ("markdown", "kind")


def test_the_courses_own_texts_are_tried_before_a_learners():
    asked = []
    made((AnyCell("markdown", "slow", ""), *HANDED), converted=lambda texts: asked.extend(texts) or list(texts))
    assert asked == ["Write here.", "Make one.", "slow", "# Title", "My words."], "each once"
    (poster,) = [
        cell
        for cell in made((AnyCell("markdown", "![x](attachment:y.png)", "poster"),)).cells
        if cell.metadata.get("nbgrader", {}).get("grade_id") == "poster"
    ]
    assert (poster.cell_type, poster.source) == ("markdown", "Make one."), "whatever stood in its place"


def test_markdown_without_end_is_shown_as_code(monkeypatch):
    monkeypatch.setattr(module, "MAX_MARKDOWN", sum(len(c.source) for c in HANDED if c.cell_type == "markdown") - 1)
    assert {cell.cell_type for cell in made().cells} == {"code"}
    assert made().cells[0].source == "# Title"


def test_of_very_long_cells_the_rest_is_cut_off(monkeypatch):
    monkeypatch.setattr(module, "MAX_SHOWN", 20)
    sources = [
        cell.source for cell in made([AnyCell("code", "a = 1", ""), AnyCell("raw", "x" * 50, ""), *HANDED]).cells
    ]
    assert sources[:3] == ["a = 1", f"{'x' * 15}\n# 35 characters more", "\n# 7 characters more"]
