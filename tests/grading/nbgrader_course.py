"""An nbgrader course as `nbgrader generate_assignment` leaves it, made in a tenth of the time."""

from pathlib import Path

import nbformat

from course_utils import notebooks
from course_utils.checks.registry import lessons_by_exercise
from tests.grading.submissions import ANSWERS

ROOT = Path(__file__).parents[2]
LESSON = "00_start_here"
CONFIG = """c = get_config()
c.CourseDirectory.course_id = "autograd"
c.ClearSolutions.code_stub = {"python": "# Your answer here."}
"""
RIGHT = {name: ANSWERS[name] for name, lesson in lessons_by_exercise().items() if lesson == LESSON}


def make_course(root: Path, *lessons: str, extra: tuple = ()) -> Path:
    """Make a course whose assignments and notebooks are called as the lessons; `extra` cells end each notebook."""
    from nbgrader.api import Base
    from sqlalchemy import create_engine

    root.mkdir(parents=True)
    (root / "nbgrader_config.py").write_text(CONFIG)
    engine = create_engine(f"sqlite:///{root / 'gradebook.db'}")
    Base.metadata.create_all(engine)
    engine.dispose()
    for lesson in lessons or (LESSON,):
        add_assignment(root, lesson, lesson, extra)
    return root


def add_assignment(root: Path, assignment: str, lesson: str, extra: tuple = ()) -> None:
    """Make an assignment of the notebook of a lesson, and release it."""
    from nbgrader.api import Gradebook
    from nbgrader.preprocessors import ComputeChecksums, SaveCells

    url = f"sqlite:///{root / 'gradebook.db'}"
    with Gradebook(url, "autograd") as book:
        book.update_or_create_assignment(assignment, course_id="autograd")
    notebook = notebooks.read(ROOT / "exercises" / f"{lesson}.ipynb")
    notebook.cells += [nbformat.from_dict(cell) for cell in extra]
    names = {"notebook": lesson, "assignment": assignment, "db_url": url, "student": "."}
    for step in (ComputeChecksums(), SaveCells()):
        notebook, _ = step.preprocess(notebook, {"nbgrader": names})
    folder = root / "release" / assignment
    folder.mkdir(parents=True)
    nbformat.write(notebook, folder / f"{lesson}.ipynb")


def answered(course: Path, answers: dict[str, str], lesson: str = LESSON) -> nbformat.NotebookNode:
    """Return the released notebook with some answers in it."""
    notebook = nbformat.read(course / "release" / lesson / f"{lesson}.ipynb", 4)
    for cell in notebook.cells:
        cell.source = answers.get(cell.metadata.get("nbgrader", {}).get("grade_id"), cell.source)
    return notebook


def hand_in(course: Path, student: str, notebook: object, lesson: str = LESSON, stamp: str = "") -> Path:
    """Put a notebook, or any text, where nbgrader collects it, and return its path."""
    folder = course / "submitted" / student / lesson
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{lesson}.ipynb"
    path.write_text(notebook if isinstance(notebook, str) else nbformat.writes(notebook))
    if stamp:
        (folder / "timestamp.txt").write_text(stamp)
    return path
