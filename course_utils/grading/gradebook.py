"""Keeping results in a SQLite file: each is committed as it comes, so that an interrupted run can go on."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType

import msgspec

from course_utils.grading.errors import GradingError
from course_utils.grading.submission import ExerciseResult, Result, Submission

APPLICATION = 0x61757467  # "autg", in the file's header: this is a gradebook of the course
VERSION = 2
WAIT_SECONDS = 30.0  # for another process that writes

_SCHEMA = f"""
begin immediate;
create table if not exists results (
    student text not null,
    assignment text not null,
    digest text not null,
    path text not null,
    status text not null,
    score real not null,
    points real not null,
    seconds real not null,
    reason text not null,
    exercises text not null,
    number text not null,
    detail text not null,
    primary key (student, assignment)
) without rowid;
pragma application_id = {APPLICATION};
pragma user_version = {VERSION};
commit;
"""
_DAMAGED = "Its row in the gradebook is damaged. Grade it into a new file."
_AGAIN = ""  # in place of the digest of a file: no file has it
_EXERCISES = msgspec.json.Decoder(tuple[ExerciseResult, ...])


class GradebookError(GradingError):
    """A file cannot be used as a gradebook. The message names the file and says what to try."""


class Gradebook:
    """The results of a class, in one file. A student has one row for each assignment: that of the last file graded.

    A row is there as a whole or not at all, also after the process was killed. Several processes may write at a
    time. Every method raises GradebookError where the file cannot be read or written; one that was opened to `create`
    can be written.
    """

    def __init__(self, path: Path, create: bool = True) -> None:
        """Open the gradebook at `path`. A missing one is made where `create` is true."""
        self.path = path
        if not create and not path.exists():
            raise GradebookError(f"{path}: there is no such gradebook. `course grade` makes one.")
        try:
            self._database = sqlite3.connect(path, timeout=WAIT_SECONDS)
        except sqlite3.Error as error:
            raise self._trouble(error) from error
        try:
            self._prepare(create)
        except sqlite3.Error as error:
            self._database.close()
            raise self._trouble(error) from error
        except GradebookError:
            self._database.close()
            raise

    def __enter__(self) -> Gradebook:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the file. What was added stays."""
        self._database.close()

    def add(self, submission: Submission, result: Result) -> None:
        """Keep the result of a submission in place of an earlier one of the same student and assignment.

        A result that cannot be kept as it is, is kept as one that crashed, with a sentence.
        """
        try:
            self._add(submission, result)
        except GradebookError:
            raise
        except Exception as error:
            reason = f"Its result could not be kept ({type(error).__name__}). Grade it into a new file to try again."
            bare = Result(result.student, result.assignment, "", "crashed", 0.0, result.points, 0.0, (), reason)
            self._add(submission, bare)

    def _add(self, submission: Submission, result: Result) -> None:
        exercises = msgspec.json.encode(result.exercises).decode()
        digest = _AGAIN if result.again else submission.digest
        row = (submission.student, submission.assignment, digest, result.path, result.status, result.score)
        rest = (result.points, result.seconds, result.reason, exercises, result.number, result.detail)
        try:
            with self._database:
                self._database.execute("insert or replace into results values (?,?,?,?,?,?,?,?,?,?,?,?)", row + rest)
        except sqlite3.Error as error:
            raise self._trouble(error) from error

    def to_grade(self, submissions: Iterable[Submission]) -> list[Submission]:
        """Return the submissions without a result, in their order.

        A file that was changed has none, and neither has one whose result is to be tried again.
        """
        query = "select student, assignment, digest from results"
        try:
            done = set(self._database.execute(query))
        except sqlite3.Error as error:
            raise self._trouble(error) from error
        return [one for one in submissions if (one.student, one.assignment, one.digest) not in done]

    def paths(self) -> dict[tuple[str, str], str]:
        """Return where the file lay whose result is kept, by student and assignment."""
        try:
            rows = self._database.execute("select student, assignment, path from results").fetchall()
        except sqlite3.Error as error:
            raise self._trouble(error) from error
        return {(student, assignment): path for student, assignment, path in rows}

    def results(self) -> list[Result]:
        """Return all results, by student and assignment. A row that is damaged is a result that says so."""
        query = (
            "select student, assignment, path, status, score, points, seconds, exercises, reason, number, detail, "
            f"digest = '{_AGAIN}' "
            "from results order by student, assignment"
        )
        try:
            rows = self._database.execute(query).fetchall()
        except sqlite3.Error as error:
            raise self._trouble(error) from error
        return [_result(row) for row in rows]

    def _prepare(self, create: bool) -> None:
        (application,) = self._database.execute("pragma application_id").fetchone()
        (version,) = self._database.execute("pragma user_version").fetchone()
        (tables,) = self._database.execute("select count(*) from sqlite_master").fetchone()
        if (application, version) == (APPLICATION, VERSION):
            if create:  # a file that may only be read fails here, not after the first submission
                self._database.execute("begin immediate")
                self._database.rollback()
            return
        if application == APPLICATION:
            raise GradebookError(
                f"{self.path}: this gradebook has version {version}, and this course writes version {VERSION}. "
                "Grade into a new file."
            )
        if tables or application or not create:
            raise GradebookError(f"{self.path}: this is no gradebook. Name another file.")
        # With a write-ahead log a commit needs no rewriting, and readers never wait for the writer.
        self._database.execute("pragma journal_mode = wal")
        self._database.executescript(_SCHEMA)

    def _trouble(self, error: Exception) -> GradebookError:
        return GradebookError(
            f"{self.path}: this cannot be used as a gradebook: {error}. Name another file, or move this one away."
        )


def _result(row: tuple[object, ...]) -> Result:
    try:
        whole = (*row[:7], _EXERCISES.decode(str(row[7])), *row[8:-1], bool(row[-1]))
        return msgspec.convert(dict(zip(Result.__struct_fields__, whole, strict=True)), Result)
    except (ValueError, RecursionError):
        return Result(str(row[0]), str(row[1]), str(row[2]), "crashed", 0.0, 0.0, 0.0, (), _DAMAGED)
