"""Masters: their solution and check cells marked as nbgrader marks them, and exercises released from them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import nbformat

from course_utils.checks.guidance import BEGIN, END
from course_utils.checks.registry import UnknownExercise, exercise_called
from course_utils.notebooks.files import NotebookError

STUB = "# Your answer here."

_CHECK = re.compile(r"^check\((.*)\)$", re.MULTILINE)
_WELL_FORMED = re.compile(r"""["'](\w+)["'], *(\w+)""")


def mark_exercises(cells: list[Any], path: Path) -> None:
    """Write nbgrader's metadata (schema 3): solution cells, and locked check cells with their points.

    A cell with solution markers belongs to the first check that follows it. A check cell may raise, so that
    "run all" goes on to the next exercise.

    Raises NotebookError where a check has no solution cell, no exercise, or another name than its exercise.
    """
    answer = None
    known: set[str] = set()
    for cell in cells:
        if cell.cell_type != "code":
            continue
        if BEGIN in cell.source:
            if END not in cell.source.partition(BEGIN)[2]:
                raise NotebookError(f"{path}, cell {cell.id}: {BEGIN!r} has no {END!r} after it")
            if answer is not None:
                raise NotebookError(f"{path}, cell {answer.id}: no check follows this solution")
            answer = cell
        found = _CHECK.findall(cell.source)
        if not found or path.parent.name != "solutions":
            continue
        parts = _WELL_FORMED.fullmatch(found[0])
        if len(found) > 1 or parts is None or parts[2] != _defined(parts[1]) or parts[1] in known:
            raise NotebookError(
                f'{path}, cell {cell.id}: a check cell holds one check, of the form check("name", name), '
                f"and each exercise is checked once; this one holds check({'), check('.join(found)})"
            )
        name = parts[1]
        known.add(name)
        if answer is None:
            raise NotebookError(f"{path}, cell {cell.id}: check({name!r}) has no solution cell before it")
        try:
            points = exercise_called(name).points
        except UnknownExercise as error:
            raise NotebookError(f"{path}, cell {cell.id}: {error}") from error
        common = {"schema_version": 3, "task": False}
        answer.metadata["nbgrader"] = {**common, "grade": False, "solution": True, "locked": False, "grade_id": name}
        cell.metadata["nbgrader"] = {
            **{**common, "grade": True, "solution": False, "locked": True},
            **{"grade_id": f"check_{name}", "points": points},
        }
        cell.metadata["tags"] = ["raises-exception"]
        answer = None
    if answer is not None:
        raise NotebookError(f"{path}, cell {answer.id}: no check follows this solution")


def _defined(exercise: str) -> str:
    """Return the name that an exercise asks for: its id, but where several ask for one thing."""
    try:
        return exercise_called(exercise).name
    except UnknownExercise:
        return exercise


def release(master: Any, path: Path) -> Any:
    """Return the exercise notebook of a master: answers cut out, outputs cleared.

    Raises NotebookError where a marker is left over.
    """
    notebook = nbformat.from_dict(master)
    for cell in notebook.cells:
        if cell.cell_type == "code":
            markers = [line.strip() for line in cell.source.split("\n") if line.strip() in (BEGIN, END)]
            if markers != [BEGIN, END] * (len(markers) // 2):
                raise NotebookError(f"{path}, cell {cell.id}: {BEGIN!r} and {END!r} do not alternate")
            cell.source = without_answers(cell.source)
            cell.outputs, cell.execution_count = [], None
        if BEGIN in cell.source or END in cell.source:
            raise NotebookError(f"{path}, cell {cell.id}: a solution marker is left after the answers are cut out")
    return notebook


def without_answers(source: str) -> str:
    """Replace each region between solution markers by a comment, as nbgrader does."""
    lines, inside = [], False
    for line in source.split("\n"):
        if line.strip() == BEGIN and not inside:
            inside = True
            lines.append(line.partition("#")[0] + STUB)
        elif line.strip() == END and inside:
            inside = False
        elif not inside:
            lines.append(line)
    return "\n".join(lines)
