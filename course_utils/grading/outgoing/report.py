"""`course report`: a page about the class and a page for each student, as files. Static HTML that needs no network."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

import msgspec

from course_utils.grading.errors import GradingError
from course_utils.grading.outgoing.class_page import class_page
from course_utils.grading.outgoing.export import replace_file
from course_utils.grading.outgoing.page import NAMED, page_of
from course_utils.grading.outgoing.student_page import student_page
from course_utils.grading.submission import Result

_NO_PAGE = "What the checks say could not be laid out ({}). It stands in what `course grade --json` writes."


class ReportError(GradingError):
    """A report cannot be written. The message names the file or folder."""


def write_report(results: Sequence[Result], folder: Path) -> list[Path]:
    """Write index.html for the class and students/*.html into `folder`, and return their paths, the class first.

    A student's page holds nothing about others, so it can be handed out. Raises ReportError where there are no
    results, where a page cannot be written, and at the end where one could not be laid out.
    """
    if not results:
        raise ReportError("there are no results to report yet. Grade submissions first: `course grade`.")
    by_student: dict[str, list[Result]] = defaultdict(list)
    for result in results:
        by_student[result.student].append(result)
    failed: list[str] = []
    pages = {folder / "index.html": class_page(results)}
    for student, mine in sorted(by_student.items()):
        try:
            page = student_page(student, mine)
        except Exception as error:  # all others are written
            page = _without_words(student, mine, error)
            failed.append(student)
        pages[folder / page_of(student)] = page
    try:
        (folder / "students").mkdir(parents=True, exist_ok=True)
        for path, page in pages.items():
            replace_file(path, page.encode())
    except OSError as error:
        raise ReportError(f"{error.filename or folder}: cannot be written: {error.strerror}.") from error
    if failed:
        raise ReportError(
            f"{len(failed)} of {len(by_student)} pages are without what the checks say, which could not be laid out. "
            f"All others are whole. They are those of {', '.join(failed[:NAMED])}"
            f"{' and others' * (len(failed) > NAMED)}."
        )
    return list(pages)


def _without_words(student: str, mine: Sequence[Result], error: Exception) -> str:
    reason = _NO_PAGE.format(type(error).__name__)
    return student_page(
        student, [msgspec.structs.replace(one, exercises=(), status="crashed", reason=reason) for one in mine]
    )
