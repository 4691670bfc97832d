"""Finding the submissions in what a teacher names: notebooks, folders, and zips from a learning platform."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec

from course_utils.grading.errors import GradingError
from course_utils.grading.intake import archives
from course_utils.grading.intake.budget import Budget, Student
from course_utils.grading.intake.identity import (
    Place,
    Who,
    assignment_named,
    assignment_of,
    is_lesson,
    quoted,
    shown_path,
    who,
)
from course_utils.grading.intake.reading import FAILED, Content, bytes_of, content_of
from course_utils.grading.intake.walking import walk
from course_utils.grading.submission import Submission

SHOWN = 5  # files that one message names
_NOTHING = "no notebook"
_MORE = "more files"
_WITHIN = 8  # how far a name within one of several folders lies: farther than any name of such a folder itself


class SubmissionError(GradingError):
    """What a teacher named cannot be graded as it is. The message says what to change."""


@dataclass(frozen=True)
class _Named:
    """A path as the teacher typed it, and the real one. What lies in it begins at `start` of that one's parts.

    Of a folder that is named among others (`class/*`), the students may be those within it, or it may be one itself:
    then who is named within it is `farther` than who is named by it.
    """

    typed: Path
    real: Path
    start: int
    farther: int

    def place(self, *parts: str) -> Place:
        """Return the place of what lies at `parts` beneath the path."""
        return Place((*self.real.parts, *parts), self.start)

    def whose(self, place: Place) -> Who:
        """Return whose it is that lies at a place beneath the path."""
        found = who(place)
        return replace(found, far=found.far + self.farther) if place.beneath else found


@dataclass(frozen=True)
class _Found:
    """A file, how far its student's name lies, and what it is called where another one is rather that student's."""

    one: Submission
    far: int
    quoted: str

    @property
    def student(self) -> Student:
        return self.one.student, self.far


def find(paths: Iterable[Path], told: Callable[[int], None] = lambda count: None) -> list[Submission]:
    """Return the submissions in notebooks, folders and zips, sorted by student and assignment.

    `identity.who` and `identity.assignment_of` say whose they are and what they answer. A zip is a student's, and a
    class's where nothing else is named. Whatever cannot be read, or counted, is a submission with a sentence in
    `unreadable`: a damaged file, a notebook of no lesson, a student's folder without a notebook, two files of one
    student for one assignment, all that one student handed in beyond `budget.MAX_FILES`. What lies in a folder of a
    student's name is that student's, whatever else is called so: that is a row of its own, and nobody's. Zips are read
    in memory; links are not followed, except in what the teacher named. `told` is called with the number of files that
    were read, as it grows.

    Raises SubmissionError for a path that does not exist or holds nothing to grade.
    """
    typed = {Path(os.path.realpath(path)): path for path in paths}
    budget = Budget()
    found: list[_Found] = []
    for real, path in typed.items():
        farther = _WITHIN if len(typed) > 1 and real.is_dir() else 0
        for one in _within(_Named(path, real, _start(real, len(typed) == 1), farther), budget):
            found.append(one)
            told(len(found))
    found += _beyond(found, budget)
    return sorted(_one_each(found), key=lambda one: (one.student, one.assignment))


def _start(real: Path, single: bool) -> int:
    """Return where what a teacher named begins: with a folder's content, or a class's zip's, else with the file itself.

    A student's zip that is called as a lesson tells as little as a folder that is, so that the folder around it counts.
    """
    start = len(real.parts)
    if real.is_dir() or (single and archives.is_zip(real.name)):
        return start
    start -= 1
    while archives.is_zip(real.name) and start > 1 and is_lesson(real.parts[start]):
        start -= 1
    return start


def _within(named: _Named, budget: Budget) -> Iterator[_Found]:
    if not named.real.exists():
        raise SubmissionError(f"{named.typed}: there is no such file or folder.")
    if not named.real.is_dir():
        if not archives.is_wanted((named.real.name.lstrip("."),)):
            raise SubmissionError(f"{named.typed}: this is neither a notebook (.ipynb), a folder of them nor a zip.")
        yield from _in_file(named, (), budget)
        return
    met = list(walk(named.real))
    if not any(one.path.name and archives.is_wanted((one.path.name,)) for one in met):
        why = "".join(f"\n  {shown_path(str(one.path))}: {one.trouble}" for one in met[:SHOWN])
        raise SubmissionError(f"{named.typed}: there is no notebook (.ipynb) in this folder, and no zip.{why}")
    for one in met:
        parts = one.path.relative_to(named.real).parts
        if one.trouble:
            # In place of a file's name stands what is missing: it becomes that of the assignment, where nothing tells.
            yield _submission(named, (*parts, _NOTHING), Content("", unreadable=one.trouble))
        else:
            yield from _in_file(named, parts, budget)


def _in_file(named: _Named, parts: tuple[str, ...], budget: Budget) -> Iterator[_Found]:
    """Yield what is in a notebook or a zip. Raises nothing: what goes wrong is a submission."""
    file = Path(named.real, *parts)
    zipped = archives.is_zip(file.name)
    met = False

    def whose(inner: tuple[str, ...]) -> Student:
        found = named.whose(named.place(*parts, *inner))
        return found.name, found.far

    def choice(inner: tuple[str, ...], size: int, packed: int) -> str | None:
        nonlocal met
        met = True
        student = whose(inner)
        return None if budget.is_over(student) else budget.take(student, size, packed)

    try:
        if (parts or not zipped) and budget.is_over(whose(())):
            return
        for member in archives.members(file, choice) if zipped else [_alone(file)]:
            student = whose(member.parts)
            trouble = member.trouble
            if not zipped:
                trouble = trouble or budget.take(student, len(member.data), len(member.data))
            data = b"" if trouble else member.data
            content = content_of(data, trouble, member.detail, budget.repairable(student))
            budget.repaired(student, content.repaired)
            yield _submission(named, (*parts, *member.parts), content)
        if zipped and not met:
            yield _submission(named, parts, content_of(b"", "The zip holds no notebook."))
    except archives.ArchiveError as error:
        yield _submission(named, parts, content_of(b"", str(error), error.detail))
    except Exception as error:
        yield _submission(named, parts, content_of(b"", FAILED, f"{type(error).__name__}: {error}"))


def _alone(file: Path) -> archives.Member:
    data, trouble = bytes_of(file)
    return archives.Member((), data, trouble)


def _submission(named: _Named, parts: tuple[str, ...], content: Content) -> _Found:
    place = named.place(*parts)
    whose = named.whose(place)
    unreadable = content.unreadable or whose.doubt
    assignment = assignment_of(place, content.exercises)
    if assignment is None and not unreadable:
        unreadable = (
            "It belongs to no lesson: no cell checks an exercise of the course, and neither its name nor that of "
            "its folder is a lesson's."
        )
    one = Submission(
        student=whose.name,
        assignment=assignment or assignment_named(place),
        path=shown_path(str(Path(named.typed, *parts))).removesuffix(f"/{_NOTHING}"),
        digest=content.digest,
        cells=() if unreadable else content.cells,
        unreadable=unreadable,
        number=whose.number,
        detail=content.detail,
    )
    return _Found(one, whose.far, quoted(place))


def _beyond(found: Sequence[_Found], budget: Budget) -> Iterator[_Found]:
    """Yield a submission for each student who handed in more files than are looked at. It says how many they are."""
    for student, first in {it.student: it for it in reversed(found)}.items():
        if sentence := budget.overflow(student):
            content = content_of(b"", sentence)
            path = first.one.path.rpartition("/")[0] or first.one.path
            name, number = first.one.student, first.one.number
            one = Submission(name, _MORE, path, content.digest, unreadable=content.unreadable, number=number)
            yield replace(first, one=one)


def _one_each(found: Iterable[_Found]) -> Iterator[Submission]:
    """Yield one submission for each student and assignment: where there are several files, one that names them all.

    Those whose name is less near than another's are nobody's.
    """
    groups: dict[tuple[str, str], list[_Found]] = {}
    nearest: dict[tuple[str, str], _Found] = {}
    for it in found:
        groups.setdefault((it.one.student, it.one.assignment), []).append(it)
        for key in ((it.one.student, it.one.assignment), (it.one.student, _MORE)):
            nearest[key] = min(nearest.get(key, it), it, key=lambda one: one.far)
    students = {student for student, _ in groups}
    nobodys: dict[tuple[str, str], list[_Found]] = {}
    for key, group in groups.items():
        own = [it for it in group if it.far == nearest[key].far]
        if own:
            yield own[0].one if len(own) == 1 else _several([it.one for it in own])
        for it in group:
            if it.far != nearest[key].far:
                name = it.quoted
                while name in students:
                    name = f"'{name}'"
                nobodys.setdefault((name, key[1]), []).append(it)
    for (name, _), others in nobodys.items():
        one = others[0].one
        yield _nobodys([it.one for it in others], name, nearest[one.student, one.assignment].one)


def _nobodys(group: list[Submission], name: str, own: Submission) -> Submission:
    more = f" There are {len(group):,} such files." if len(group) > 1 else ""
    return msgspec.structs.replace(
        group[0],
        student=name,
        digest=_digest(group),
        cells=(),
        unreadable=f"Where it lies names {own.student}, but {own.path} does so more plainly, and counts for this "
        "student. This file counts for nobody. Put it there if it is the one that counts; rename what it lies in if it "
        f"is of another student.{more}",
        number="",
        detail="",
    )


def _several(group: list[Submission]) -> Submission:
    lines = [f"{one.path} ({one.unreadable.rstrip('.')})" if one.unreadable else one.path for one in group[:SHOWN]]
    more = f" and {len(group) - SHOWN:,} more" if len(group) > SHOWN else ""
    return msgspec.structs.replace(
        group[0],
        digest=_digest(group),
        cells=(),
        unreadable=f"There are {len(group):,} files of this student for this assignment: {'; '.join(lines)}{more}. "
        "Keep the one that counts. If they are of different students, name the very folder or zip in which each has "
        "one.",
        detail="",
    )


def _digest(group: list[Submission]) -> str:
    return hashlib.sha256("".join(one.digest for one in group).encode()).hexdigest()
