"""The rows of nbgrader's gradebook that a graded submission has: which of them differ, and writing those at once.

nbgrader's own classes take some 80 ms for a submission, a query for each cell. These are the same rows.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from course_utils.grading.intake.released import CourseCell, CourseNotebook

if TYPE_CHECKING:
    from sqlalchemy import Connection, Table


@dataclass(frozen=True)
class Graded:
    """The results of one student's submission for an assignment, whose notebooks are all in `notebooks`.

    `scores` and `comments` are by notebook and cell; a score of None waits for a person. What is in neither stays as
    it is. `absent` are the notebooks that were not handed in, which nbgrader gives no points. `handed_in` is a time in
    UTC, None where nbgrader has none.
    """

    student: str
    notebooks: tuple[CourseNotebook, ...]
    scores: Mapping[str, Mapping[str, float | None]]
    comments: Mapping[str, Mapping[str, str | None]]
    absent: frozenset[str] = frozenset()
    handed_in: datetime | None = None


@dataclass
class Changes:
    """What must be written for one submission: new rows by table, and new values. `needed` is false where all is there.

    Each of `scores`, `zeros` and `comments` names a row, and holds its value; `stamps` those of submissions.
    """

    rows: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    scores: list[dict[str, Any]] = field(default_factory=list)
    zeros: list[dict[str, Any]] = field(default_factory=list)
    comments: list[dict[str, Any]] = field(default_factory=list)
    stamps: list[dict[str, Any]] = field(default_factory=list)
    needed: bool = False

    def insert(self, table: str, **values: Any) -> str:
        """Note a new row, and return its key."""
        key = uuid4().hex
        self.rows.setdefault(table, []).append({"id": key, **values})
        self.needed = True
        return key


def differences(connection: Connection, graded: Sequence[Graded]) -> list[Changes]:
    """Return what must be written for each submission. Raises SQLAlchemyError where the gradebook cannot be read."""
    there = _Rows(connection, graded)
    return [there.changes(one) for one in graded]


def write(connection: Connection, changes: Iterable[Changes]) -> None:
    """Write changes in the transaction of a connection. A manual score is not touched, and asks for a review.

    Raises SQLAlchemyError where the gradebook cannot be written.
    """
    from sqlalchemy import Boolean, Float, bindparam, insert, or_, update

    every = list(changes)
    grade, comment, submitted = _table("grade"), _table("comment"), _table("submitted_assignment")
    for name in ("student", "submitted_assignment", "submitted_notebook", "grade", "comment"):
        rows = {row["id"]: row for one in every for row in one.rows.get(name, ())}  # a student may have several
        if rows:
            connection.execute(insert(_table(name)), list(rows.values()))
    score = bindparam("score", type_=Float)
    review = or_(grade.c.manual_score.is_not(None), bindparam("unknown", type_=Boolean))
    own = grade.c.id == bindparam("row")
    statements = (
        (
            update(grade).where(own).values(auto_score=score, needs_manual_grade=review),
            [x for c in every for x in c.scores],
        ),
        (
            update(grade).where(own).values(auto_score=0.0, needs_manual_grade=False),
            [x for c in every for x in c.zeros],
        ),
        (
            update(comment).where(comment.c.id == bindparam("row")).values(auto_comment=bindparam("text")),
            [x for c in every for x in c.comments],
        ),
        (
            update(submitted).where(submitted.c.id == bindparam("row")).values(timestamp=bindparam("time")),
            [x for c in every for x in c.stamps],
        ),
    )
    for statement, values in statements:
        if values:
            connection.execute(statement, values)


class _Rows:
    """The rows that some submissions have now."""

    def __init__(self, connection: Connection, graded: Sequence[Graded]) -> None:
        from sqlalchemy import select

        student, submitted, notebook = _table("student"), _table("submitted_assignment"), _table("submitted_notebook")
        grade, comment = _table("grade"), _table("comment")
        names = {one.student for one in graded}
        self._students = set(connection.scalars(select(student.c.id).where(student.c.id.in_(names))))

        def rows(
            table: Table, parent: str, child: str, value: str, within: Collection[str]
        ) -> dict[tuple[str, str], Any]:
            column = table.c[child if child == "student_id" else parent]
            query = select(table.c[parent], table.c[child], table.c.id, table.c[value]).where(column.in_(within))
            return {(row[0], row[1]): (row[2], row[3]) for row in connection.execute(query)}

        self._submitted = rows(submitted, "assignment_id", "student_id", "timestamp", names)
        wanted = [self._submitted[key][0] for one in graded if (key := _key(one)) in self._submitted]
        self._notebooks = rows(notebook, "assignment_id", "notebook_id", "flagged", wanted)
        own = [key for key, _ in self._notebooks.values()]
        self._grades = rows(grade, "notebook_id", "cell_id", "auto_score", own)
        self._comments = rows(comment, "notebook_id", "cell_id", "auto_comment", own)

    def changes(self, one: Graded) -> Changes:
        made = Changes()
        if one.student not in self._students:
            made.rows["student"] = [{"id": one.student}]
            made.needed = True
        assignment, _ = key = _key(one)
        submitted, stamp = self._submitted.get(key, ("", None))
        if not submitted:
            submitted = made.insert(
                "submitted_assignment", assignment_id=assignment, student_id=one.student, timestamp=one.handed_in
            )
        elif one.handed_in is not None and stamp != one.handed_in:
            made.stamps.append({"row": submitted, "time": one.handed_in})
            made.needed = True
        for notebook in one.notebooks:
            own = self._notebooks.get((submitted, notebook.key), ("",))[0] or made.insert(
                "submitted_notebook", notebook_id=notebook.key, assignment_id=submitted, flagged=False
            )
            for cell in notebook.cells.values():
                if cell.graded:
                    self._grade(made, one, notebook, cell, own)
                if cell.commented:
                    self._comment(made, one, notebook, cell, own)
        return made

    def _grade(self, made: Changes, one: Graded, notebook: CourseNotebook, cell: CourseCell, own: str) -> None:
        absent = notebook.name in one.absent
        scores = dict.fromkeys(notebook.cells, 0.0) if absent else one.scores.get(notebook.name, {})
        score = scores.get(cell.name)
        row, before = self._grades.get((own, cell.graded), ("", None))
        if not row:
            made.insert(
                "grade", cell_id=cell.graded, notebook_id=own, auto_score=score, needs_manual_grade=score is None
            )
        elif cell.name in scores:
            made.needed |= before != score
            if absent:
                made.zeros.append({"row": row})
            else:
                made.scores.append({"row": row, "score": score, "unknown": score is None})

    def _comment(self, made: Changes, one: Graded, notebook: CourseNotebook, cell: CourseCell, own: str) -> None:
        comments = one.comments.get(notebook.name, {})
        text = comments.get(cell.name)
        row, before = self._comments.get((own, cell.commented), ("", None))
        if not row:
            made.insert("comment", cell_id=cell.commented, notebook_id=own, auto_comment=text)
        elif cell.name in comments and before != text:
            made.comments.append({"row": row, "text": text})
            made.needed = True


def _key(one: Graded) -> tuple[str, str]:
    return one.notebooks[0].assignment_key, one.student


def _table(name: str) -> Table:
    from nbgrader.api import Base

    table: Table = Base.metadata.tables[name]
    return table
