"""Writing results as JSON for programs and as CSV for spreadsheets."""

from __future__ import annotations

import csv
import io
import os
import re
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from course_utils.grading.errors import GradingError
from course_utils.grading.intake.identity import shown_lines
from course_utils.grading.submission import Result

_COLUMNS = ("student", "assignment", "path", "status", "score", "points", "seconds")
# Signs with which a spreadsheet begins a formula, full-width ones too. What parts cells, the language of the reader's
# spreadsheet says, and some take a quote within a cell for its end.
_FORMULA = re.compile(r"(^|[;,|\t\r\n\"])(?=\s*[=+\-@\uff1d\uff0b\uff0d\uff20\t\r])")


class ExportError(GradingError):
    """Results cannot be written. The message names the file."""


def write_json(path: Path, results: Sequence[Result], run: dict[str, Any]) -> None:
    """Write `{"submissions": [...], "run": run}`, the results with the fields of `Result`.

    The file is there as a whole or stays as it was. Raises ExportError where it cannot be written.
    """
    content = msgspec.json.encode({"submissions": results, "run": run})
    _replace(path, msgspec.json.format(content, indent=2) + b"\n")


def write_csv(path: Path, results: Sequence[Result]) -> None:
    """Write a row for each submission, and in it a column with the score of each exercise that any of them has.

    Further columns name the misconceptions, the reason, what points rest on that was observed and that no number
    proves, and the flags. Where a spreadsheet could begin a formula in a text, whatever parts its cells, there stands
    a '. What does not print is escaped, as a terminal would obey it. The file is there as a whole or stays as it was.

    Raises ExportError where it cannot be written.
    """
    names = list(dict.fromkeys(exercise.id for result in results for exercise in result.exercises))
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(map(_harmless, [*_COLUMNS, *names, "misconceptions", "reason", "observed", "flags"]))
    for result in results:
        scores = {exercise.id: exercise.score for exercise in result.exercises}
        wrong = [f"{exercise.id}: {name}" for exercise in result.exercises for name in exercise.misconceptions]
        rests = [f"{row.id}: {', '.join(row.observed)}" for row in result.exercises if row.score and row.observed]
        row = [getattr(result, column) for column in _COLUMNS]
        row += [scores.get(name, "") for name in names]
        flags = [f"{_flagged(result, sentence)}: {sentence}" for sentence in result.flags]
        row += ["; ".join(wrong), result.reason, "; ".join(rests), " ".join(flags)]
        writer.writerow(map(_harmless, row))
    _replace(path, text.getvalue().encode())


def replace_file(path: Path, content: bytes, mode: int = 0o644) -> None:
    """Write a file in one step: readers see the old one or the new one, also after a crash. Raises OSError."""
    with tempfile.NamedTemporaryFile(dir=path.parent, prefix=f".{path.name}.", suffix=".tmp", delete=False) as file:
        temporary = Path(file.name)
        try:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
            temporary.chmod(mode)
            temporary.replace(path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise


def _flagged(result: Result, sentence: str) -> str:
    return ", ".join(row.id for row in result.exercises if sentence in row.flags)


def _replace(path: Path, content: bytes) -> None:
    try:
        replace_file(path, content)
    except OSError as error:
        raise ExportError(f"{path}: cannot be written: {error.strerror}.") from error


def _harmless(cell: object) -> object:
    return _FORMULA.sub(r"\1'", shown_lines(cell)) if isinstance(cell, str) else cell
