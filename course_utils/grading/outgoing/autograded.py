"""The notebook that nbgrader shows of a graded submission: the learner's cells, the course's checks, our verdicts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import msgspec

from course_utils.checks.show import MARKS
from course_utils.grading.intake.reading import AnyCell
from course_utils.grading.intake.released import CHECK, CourseCell, CourseNotebook
from course_utils.grading.outgoing.inert import MAX_MARKDOWN as MAX_CELL
from course_utils.grading.submission import ExerciseResult, Result

NO_RESPONSE = "No response."  # nbgrader's words
MAX_SHOWN = 1_000_000  # characters of a learner's cells: nbgrader colours code sign by sign
MAX_MARKDOWN = 200_000  # characters that are turned into HTML, here to try it and later by nbgrader


def auto_scores(cells: Sequence[AnyCell], course: CourseNotebook, result: Result) -> dict[str, float | None]:
    """Return the score of each cell that has a grade, None where a person must give it.

    That is so for written answers, for tests that are not the course's, and where the grader's own process, or the
    learner's, died before an exercise was judged.
    """
    verdicts = _verdicts(result)
    handed = {cell.grade_id: cell.source for cell in cells}
    scores: dict[str, float | None] = {}
    for cell in course.cells.values():
        if not cell.grade:
            continue
        verdict = verdicts.get(cell.name)
        if cell.solution:
            scores[cell.name] = 0.0 if handed.get(cell.name) == cell.source else None
        elif cell.cell_type != "code" or verdict is None or not verdict.points:
            scores[cell.name] = None
        else:
            scores[cell.name] = verdict.score / verdict.points * cell.points
    return scores


def auto_comments(cells: Sequence[AnyCell], course: CourseNotebook) -> dict[str, str | None]:
    """Return nbgrader's own comment on each answer that was handed in: that there is none, or nothing."""
    handed = {cell.grade_id: cell.source for cell in cells}
    return {
        name: NO_RESPONSE if handed[name] == cell.source and not cell.task else None
        for name, cell in course.cells.items()
        if (cell.solution or cell.task) and name in handed
    }


def autograded(
    cells: Sequence[AnyCell],
    course: CourseNotebook,
    result: Result,
    converted: Callable[[Sequence[str]], Sequence[str | None]],
) -> bytes:
    """Return the notebook, in format 4.5.

    Locked cells are the course's, as nbgrader restores them; those that are missing come after their answer, or at
    the end. Of the learner nothing is kept but the sources of cells, of which MAX_SHOWN characters are shown: the
    outputs are our verdicts, as plain text. A learner's Markdown stands there as `Converter.converted` returns it, and
    as code where that is None. Where it is more than MAX_MARKDOWN characters, all of it is shown as code.
    """
    cells = _shortened(cells)
    last = {cell.grade_id: index for index, cell in enumerate(cells)}  # of two cells with one name nbgrader takes it
    missing = [cell for cell in course.cells.values() if (cell.grade or cell.task) and cell.name not in last]
    after = {cell.name.removeprefix(CHECK): cell for cell in missing if cell.name.removeprefix(CHECK) in last}
    verdicts = _verdicts(result)
    texts = [cell.source for cell in cells if cell.cell_type == "markdown" and len(cell.source) <= MAX_CELL]
    html: dict[str, str | None] = {}
    if sum(map(len, texts)) <= MAX_MARKDOWN:
        own = [cell.source for cell in course.cells.values() if cell.cell_type == "markdown"]
        tried = list(dict.fromkeys((*own, *texts)))  # the course's are no learner's to delay
        html = dict(zip(tried, converted(tried), strict=True))
    built: list[dict[str, Any]] = []
    for index, cell in enumerate(cells):
        known = course.cells.get(cell.grade_id) if last[cell.grade_id] == index else None
        built.append(_known(known, cell.source, verdicts, html) if known else _plain(cell.cell_type, cell.source, html))
        if known and cell.grade_id in after:
            check = after[cell.grade_id]
            built.append(_known(check, check.source, verdicts, html))
    built += [_known(cell, cell.source, verdicts, html) for cell in missing if cell not in after.values()]
    for number, made in enumerate(built, start=1):
        made["id"] = f"cell-{number}"
    metadata = {"kernelspec": course.kernelspec, "language_info": {"name": "python"}}
    notebook = {"cells": built, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}
    return msgspec.json.format(msgspec.json.encode(notebook, order="sorted"), indent=1) + b"\n"


def _shortened(cells: Sequence[AnyCell]) -> list[AnyCell]:
    """Return the cells with no more of their sources than is shown."""
    left, kept = MAX_SHOWN, list[AnyCell]()
    for cell in cells:
        more = len(cell.source) - left
        if more > 0:
            cell = replace(cell, source=f"{cell.source[:left]}\n# {more:,} characters more")
        left = max(left - len(cell.source), 0)
        kept.append(cell)
    return kept


def _verdicts(result: Result) -> dict[str, ExerciseResult]:
    """Return the verdicts by check cell. Where a process died, an error may be nobody's verdict."""
    unsure = result.status == "crashed"
    return {f"{CHECK}{one.id}": one for one in result.exercises if not (unsure and one.outcome == "error")}


def _plain(cell_type: str, source: str, html: Mapping[str, str | None]) -> dict[str, Any]:
    if cell_type == "markdown" and (harmless := html.get(source)) is not None:
        return {"cell_type": "markdown", "metadata": {}, "source": harmless}
    # nbgrader puts a raw cell into its pages as HTML. As code it is shown, not run; so is what no page can be made of.
    return {"cell_type": "code", "execution_count": None, "metadata": {}, "outputs": [], "source": source}


def _known(
    cell: CourseCell, source: str, verdicts: Mapping[str, ExerciseResult], html: Mapping[str, str | None]
) -> dict[str, Any]:
    made = _plain(cell.cell_type, cell.source if cell.locked else source, html)
    if cell.locked:
        made["source"] = cell.source
    marks: dict[str, Any] = {"grade_id": cell.name, "schema_version": 3, "cell_type": cell.cell_type}
    marks |= {"grade": cell.grade, "solution": cell.solution, "locked": cell.locked, "task": cell.task}
    if cell.checksum is not None:
        marks["checksum"] = cell.checksum
    if cell.grade or cell.task:
        marks["points"] = cell.points
    made["metadata"] = {"nbgrader": marks}
    if cell.cell_type == "code" and cell.grade and not cell.solution:
        made["outputs"] = [_output(cell.name, verdicts.get(cell.name))]
    return made


def _output(name: str, verdict: ExerciseResult | None) -> dict[str, Any]:
    """Return what a check cell says. nbgrader reads an error as no points, and plain text as all of them."""
    if verdict is None:
        text = f"{name} was not judged by `course grade`. Please look at it."
        return {"output_type": "error", "ename": "NotJudged", "evalue": text, "traceback": [text]}
    title = f"{verdict.id}: {verdict.outcome}"
    lines = [f"{MARKS.get(verdict.outcome, '')} {title}".strip()]
    lines += [f"  {line}" for message in verdict.messages for line in message.splitlines()]
    text = "\n".join(
        "".join(sign if sign.isprintable() else "\N{REPLACEMENT CHARACTER}" for sign in it) for it in lines
    )
    if verdict.outcome == "correct":
        return {"output_type": "stream", "name": "stdout", "text": f"{text}\n"}
    return {"output_type": "error", "ename": "CheckFailed", "evalue": title, "traceback": [text]}
