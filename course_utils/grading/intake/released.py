"""What the teacher of an nbgrader course released: its notebooks and their cells, from nbgrader's gradebook."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from course_utils.checks.registry import lessons_by_exercise

if TYPE_CHECKING:
    from sqlalchemy import Engine

CHECK = "check_"  # before an exercise's name, the name of its check cell


@dataclass(frozen=True)
class CourseCell:
    """A cell as the teacher released it, from nbgrader's gradebook. `points` is the most that it can give.

    `graded` and `commented` are the keys of its rows as a cell that has a grade, or a comment; empty where it has none.
    """

    name: str
    cell_type: str
    source: str
    checksum: str | None
    locked: bool
    grade: bool
    solution: bool
    task: bool
    points: float
    graded: str
    commented: str


@dataclass(frozen=True)
class CourseNotebook:
    """A notebook of an nbgrader assignment, from its gradebook, and the lesson that it poses; empty where none.

    `key` and `assignment_key` are those of its row and its assignment's.
    """

    key: str
    name: str
    assignment: str
    assignment_key: str
    lesson: str
    kernelspec: Mapping[str, Any]
    cells: Mapping[str, CourseCell]


def released_notebooks(engine: Engine) -> dict[str, tuple[CourseNotebook, ...]]:
    """Return the notebooks of the assignments that pose exercises of this course, by assignment.

    Raises SQLAlchemyError where the gradebook cannot be read.
    """
    from nbgrader.api import Assignment, BaseCell, GradeCell, Notebook, SourceCell, TaskCell
    from sqlalchemy import select

    assignment, notebook, base = Assignment.__table__, Notebook.__table__, BaseCell.__table__
    grade, task, source = GradeCell.__table__, TaskCell.__table__, SourceCell.__table__
    with engine.connect() as connection:
        heads = connection.execute(
            select(notebook.c.id, notebook.c.name, assignment.c.name, assignment.c.id, notebook.c.kernelspec)
            .join(assignment, assignment.c.id == notebook.c.assignment_id)
            .order_by(assignment.c.name, notebook.c.name)
        ).all()
        most: dict[str, float] = {}
        for table in (grade, task):
            most |= {key: points for key, points in connection.execute(select(table.c.id, table.c.max_score))}
        keys: dict[tuple[str, str], dict[str, str]] = {}
        for key, name, of, kind in connection.execute(select(base.c.id, base.c.name, base.c.notebook_id, base.c.type)):
            keys.setdefault((of, name), {})[kind] = key
        cells: dict[str, dict[str, CourseCell]] = {}
        for row in connection.execute(select(source).order_by(source.c.name)):
            kinds = keys.get((row.notebook_id, row.name), {})
            graded = kinds.get("GradeCell") or kinds.get("TaskCell", "")
            cells.setdefault(row.notebook_id, {})[row.name] = CourseCell(
                name=row.name,
                cell_type=row.cell_type,
                source=row.source or "",
                checksum=row.checksum,
                locked=bool(row.locked),
                grade="GradeCell" in kinds,
                solution="SolutionCell" in kinds,
                task="TaskCell" in kinds,
                points=most.get(graded, 0.0),
                graded=graded,
                commented=kinds.get("SolutionCell") or kinds.get("TaskCell", ""),
            )
    found: dict[str, list[CourseNotebook]] = {}
    for key, name, of, of_key, spec in heads:
        own = cells.get(key, {})
        one = CourseNotebook(key, name, of, of_key, _lesson(own), _kernelspec(spec), own)
        found.setdefault(of, []).append(one)
    return {name: tuple(own) for name, own in found.items() if any(one.lesson for one in own)}


def _lesson(cells: Iterable[str]) -> str:
    checked = (name.removeprefix(CHECK) for name in cells if name.startswith(CHECK))
    lessons = lessons_by_exercise()
    votes = Counter(lessons[name] for name in checked if name in lessons)
    return votes.most_common(1)[0][0] if votes else ""


def _kernelspec(text: str | None) -> dict[str, Any]:
    spec = json.loads(text) if text else None
    return spec or {"display_name": "Python 3", "language": "python", "name": "python3"}
