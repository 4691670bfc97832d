"""Finding the submissions in what a teacher names: notebooks, folders, and zips from a learning platform."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from course_utils.grading.errors import GradingError
from course_utils.grading.intake import archives
from course_utils.grading.intake.identity import Place, assignment_named, assignment_of, shown, student_of
from course_utils.grading.intake.reading import bytes_of, content_of
from course_utils.grading.submission import Submission

SHOWN = 10  # duplicates that one message names


class SubmissionError(GradingError):
    """What a teacher named cannot be graded as it is. The message says what to change."""


@dataclass(frozen=True)
class _Named:
    """A path as the teacher typed it, and the real one."""

    typed: Path
    real: Path

    def place(self, *parts: str) -> Place:
        """Return the place of what lies at `parts` beneath the path."""
        alone = not self.real.is_dir() and not archives.is_zip(self.real.name)
        return Place((*self.real.parts, *parts), len(self.real.parts) - alone)


def find(paths: Iterable[Path]) -> list[Submission]:
    """Return the submissions in notebooks, folders and zips, sorted by student and assignment.

    `identity.student_of` and `identity.assignment_of` say whose they are and what they answer. Hidden files are
    passed over. A file that cannot be read is a submission with a sentence in `unreadable`; so is a notebook of no
    lesson. Zips are read in memory; links are not followed, except in what the teacher named.

    Raises SubmissionError for a path that does not exist or holds no notebook, and for two files of one student
    for one assignment.
    """
    named = {Path(os.path.realpath(path)): path for path in paths}
    found = [one for real, typed in named.items() for one in _within(_Named(typed, real))]
    _refuse_duplicates(found)
    return sorted(found, key=lambda one: (one.student, one.assignment))


def _within(named: _Named) -> Iterator[Submission]:
    if not named.real.exists():
        raise SubmissionError(f"{named.typed}: there is no such file or folder.")
    if not named.real.is_dir():
        if not archives.is_wanted((named.real.name.lstrip("."),)):
            raise SubmissionError(f"{named.typed}: this is neither a notebook (.ipynb), a folder of them nor a zip.")
        yield from _in_file(named, ())
        return
    files = list(_files(named.real))
    if not files:
        raise SubmissionError(f"{named.typed}: there is no notebook (.ipynb) in this folder, and no zip.")
    for file in files:
        yield from _in_file(named, file.relative_to(named.real).parts)


def _files(folder: Path) -> Iterator[Path]:
    def stop(error: OSError) -> None:
        raise SubmissionError(f"{error.filename}: this folder cannot be read: {error.strerror}.") from error

    for parent, folders, names in os.walk(folder, onerror=stop):
        folders[:] = sorted(name for name in folders if not name.startswith(".") and name != "__MACOSX")
        yield from (Path(parent, name) for name in sorted(names) if archives.is_wanted((name,)))


def _in_file(named: _Named, parts: tuple[str, ...]) -> Iterator[Submission]:
    file = Path(named.real, *parts)
    if not archives.is_zip(file.name):
        yield _submission(named, parts, *bytes_of(file))
        return
    trouble = "The zip holds no notebook."
    try:
        if not stat.S_ISREG(file.lstat().st_mode):
            raise archives.ArchiveError("The zip is a link or a device, which is not followed.")
        for member in archives.members(file):
            trouble = ""
            yield _submission(named, (*parts, *member.parts), member.data, member.trouble)
    except (archives.ArchiveError, OSError) as error:
        trouble = str(error)
    if trouble:
        yield _submission(named, parts, b"", trouble)


def _submission(named: _Named, parts: tuple[str, ...], data: bytes, trouble: str) -> Submission:
    place = named.place(*parts)
    content = content_of(data, trouble)
    unreadable = content.unreadable
    assignment = assignment_of(place, content.exercises)
    if assignment is None and not unreadable:
        unreadable = (
            "It belongs to no lesson: no cell checks an exercise of the course, and neither its name nor that of "
            "its folder is a lesson's."
        )
    return Submission(
        student=student_of(place),
        assignment=assignment or assignment_named(place),
        path=shown(str(Path(named.typed, *parts))),
        digest=content.digest,
        cells=() if unreadable else content.cells,
        unreadable=unreadable,
    )


def _refuse_duplicates(found: list[Submission]) -> None:
    first: dict[tuple[str, str], Submission] = {}
    twice: list[str] = []
    for one in found:
        other = first.setdefault((one.student, one.assignment), one)
        if other is not one:
            twice.append(f"  {one.student}, {one.assignment}: {other.path} and {one.path}")
    if twice:
        more = f"\n  and {len(twice) - SHOWN} more" if len(twice) > SHOWN else ""
        raise SubmissionError(
            "one student has two files for one assignment. Keep the one that counts. If they are of different "
            "students, name the very folder or zip in which each student has one:\n" + "\n".join(twice[:SHOWN]) + more
        )
