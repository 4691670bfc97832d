"""Carrying results into an nbgrader course: scores into its gradebook, notebooks into its folder `autograded`."""

from __future__ import annotations

import glob
import hashlib
import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from course_utils.grading.intake.classroom import Classroom, ClassroomError, HandedIn, trouble
from course_utils.grading.intake.reading import Unreadable, bytes_of, cells_of
from course_utils.grading.outgoing.autograded import auto_comments, auto_scores, autograded
from course_utils.grading.outgoing.converting import Converter
from course_utils.grading.outgoing.export import replace_file
from course_utils.grading.outgoing.nbgrader_rows import Changes, Graded, differences, write
from course_utils.grading.submission import Result

AT_A_TIME = 100  # submissions that share a transaction
WAIT_SECONDS = 1.0  # after which those that are prepared are written, however few: another may take long
STAMP = "timestamp.txt"


@dataclass(frozen=True)
class Posted:
    """How many submissions were written, how many were there already, and why others were left as they are."""

    written: int
    unchanged: int
    left: tuple[str, ...]


@dataclass(frozen=True)
class _Work:
    """What the course shall hold of one student's submission for one assignment."""

    assignment: str
    folder: Path
    graded: Graded
    files: Mapping[str, bytes]

    @property
    def aside(self) -> Path:
        return self.folder.with_name(f".{self.folder.name}.being-graded")

    def is_there(self) -> bool:
        return all(_content(self.folder / name) == content for name, content in self.files.items())


def post(room: Classroom, handed: Sequence[HandedIn], results: Mapping[tuple[str, str], Result]) -> Posted:
    """Write the results, by student and lesson, of what was handed in.

    A submission whose scores and notebook are there stays untouched. What a person gave, a score, extra credit or a
    comment, is never changed. A file that could not be read is left as it is: it has no score, not a score of zero.

    While the gradebook and a notebook may differ, the notebook's folder is set aside, and nbgrader says that the
    submission needs autograding. So it does where this was ended in the middle; the same call then completes it.

    What cannot be prepared or written of one submission is left, and said so; all others are written, and none waits
    for many that take long to prepare.

    Raises ClassroomError where the gradebook cannot be written.
    """
    from sqlalchemy.exc import SQLAlchemyError

    left: list[str] = []
    written = unchanged = 0
    groups: dict[tuple[str, str], list[HandedIn]] = {}
    for one in handed:
        groups.setdefault((one.student, one.notebook.assignment), []).append(one)
    with Converter() as converter:
        prepared = (_prepared(room, group, results, left, converter) for group in groups.values())
        for works in _together(prepared):
            before = len(left)
            try:
                changed = _post_or_leave(room, works, left)
            except SQLAlchemyError as error:
                raise trouble(room.folder, error) from error
            written += changed
            unchanged += len(works) - changed - (len(left) - before)
    return Posted(written, unchanged, tuple(left))


def _together(prepared: Iterator[_Work | None]) -> Iterator[list[_Work]]:
    """Yield what is written in one transaction: AT_A_TIME at most, and fewer where they take WAIT_SECONDS."""
    works: list[_Work] = []
    began = time.monotonic()
    for work in prepared:
        works += [] if work is None else [work]
        if works and (len(works) == AT_A_TIME or time.monotonic() - began > WAIT_SECONDS):
            yield works
            works, began = [], time.monotonic()
    if works:
        yield works


def _prepared(
    room: Classroom,
    group: Sequence[HandedIn],
    results: Mapping[tuple[str, str], Result],
    left: list[str],
    converter: Converter,
) -> _Work | None:
    """Do as `_work` does, and where that fails on one student, say so."""
    try:
        return _work(room, group, results, left, converter)
    except Exception as error:
        left.append(f"{group[0].submission.path}: its notebook could not be made: {type(error).__name__}: {error}")
        return None


def _post_or_leave(room: Classroom, works: Sequence[_Work], left: list[str]) -> int:
    """Write what differs, and return of how many submissions. Where a file cannot be written, the others are."""
    try:
        return _post(room, works)
    except OSError as error:
        if len(works) == 1:
            left.append(f"{error.filename or works[0].folder}: cannot be written: {error.strerror}.")
            return 0
    return sum(_post_or_leave(room, [work], left) for work in works)


def _work(
    room: Classroom,
    group: Sequence[HandedIn],
    results: Mapping[tuple[str, str], Result],
    left: list[str],
    converter: Converter,
) -> _Work | None:
    """Say what a student's notebooks for one assignment amount to; None where none of them could be read."""
    student, assignment = group[0].student, group[0].notebook.assignment
    submitted = room.path("submitted", student, assignment)
    scores: dict[str, dict[str, float | None]] = {}
    comments: dict[str, dict[str, str | None]] = {}
    files: dict[str, bytes] = {}
    for one in group:
        name = one.notebook.name
        result = results[one.submission.student, one.submission.assignment]
        data, why_not = bytes_of(one.path)
        if result.status == "unreadable":
            left.append(f"{one.submission.path}: {result.reason}")
        elif why_not or hashlib.sha256(data).hexdigest() != one.submission.digest:
            left.append(f"{one.submission.path}: {why_not or 'The file was changed meanwhile. Grade it again.'}")
        else:
            try:
                cells = cells_of(data)
            except Unreadable as error:
                left.append(f"{one.submission.path}: {error}")
                continue
            scores[name] = auto_scores(cells, one.notebook, result)
            comments[name] = auto_comments(cells, one.notebook)
            files[f"{name}.ipynb"] = autograded(cells, one.notebook, result, converter.converted)
    if not files:
        return None
    stamp = _content(submitted / STAMP)
    if stamp is not None:  # nbgrader compares it to see whether a submission is newer than what was graded
        files[STAMP] = stamp
    notebooks = room.notebooks[assignment]
    absent = {it.name for it in notebooks if not (submitted / f"{it.name}.ipynb").exists()} - scores.keys()
    graded = Graded(student, notebooks, scores, comments, frozenset(absent), _time(stamp))
    return _Work(assignment, room.path("autograded", student, assignment), graded, files)


def _post(room: Classroom, works: Sequence[_Work]) -> int:
    """Write what differs, and return of how many submissions."""
    with room.engine.connect() as connection:
        needed = differences(connection, [work.graded for work in works])
    changed = [(work, need) for work, need in zip(works, needed, strict=True) if need.needed or not work.is_there()]
    for work, _ in changed:
        _set_aside(work)
        for name, content in work.files.items():
            replace_file(work.aside / name, content, 0o664 if room.directory.groupshared else 0o444)
    _commit(room, [need for _, need in changed])
    for work, _ in changed:
        _penalise(room, work)
        if room.directory.groupshared:
            work.aside.chmod(0o2770 | work.aside.stat().st_mode & 0o777)
        work.aside.rename(work.folder)
    return len(changed)


def _set_aside(work: _Work) -> None:
    """Move the folder of a submission, with what else lies in it, to where nbgrader does not look."""
    if work.folder.exists():
        if work.aside.exists():  # an earlier run was ended, and nbgrader has graded since
            shutil.rmtree(work.aside)
        work.folder.rename(work.aside)
    work.aside.mkdir(parents=True, exist_ok=True)
    for name in work.files:
        for half in work.aside.glob(f".{glob.escape(name)}.*.tmp"):  # replace_file was ended by force
            half.unlink()


def _commit(room: Classroom, changes: Sequence[Changes]) -> None:
    if changes:
        with room.engine.begin() as connection:
            write(connection, changes)


def _penalise(room: Classroom, work: _Work) -> None:
    """Let nbgrader give its penalty for being late, where the course configures one."""
    if not room.config.keys() & {"LateSubmissionPlugin", "AssignLatePenalties"}:
        return
    from nbformat import NotebookNode
    from nbgrader.preprocessors import AssignLatePenalties

    url = room.engine.url.render_as_string(hide_password=False)
    for name in work.graded.scores:
        names = {"notebook": name, "assignment": work.assignment, "student": work.graded.student, "db_url": url}
        try:
            AssignLatePenalties(config=room.config).preprocess(NotebookNode(cells=[]), {"nbgrader": names})
        except Exception as error:  # the plugin is the teacher's
            raise ClassroomError(
                f"{room.folder}: nbgrader's penalty for {work.graded.student} could not be computed: {error}. If it is "
                "a plugin of your own, add its folder to PYTHONPATH."
            ) from error


def _time(stamp: bytes | None) -> datetime | None:
    from nbgrader.utils import parse_utc

    try:
        time: datetime | None = parse_utc(stamp.decode().strip()) if stamp and stamp.strip() else None
    except (ValueError, OverflowError):
        return None
    return time


def _content(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except OSError:
        return None
