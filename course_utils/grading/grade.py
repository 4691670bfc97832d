"""The command `course grade`: everything is found, graded, kept and told, whatever one submission does."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table

from course_utils.grading.errors import GradingError
from course_utils.grading.intake.identity import shown
from course_utils.grading.terminal import plain, say, told

if TYPE_CHECKING:
    from course_utils.grading.intake.classroom import Classroom, HandedIn
    from course_utils.grading.submission import ExerciseResult, Result, Submission

_LINUX = (
    "learners' code is run in forks that Linux keeps in a sandbox, and this is {}. Use a Linux machine, WSL 2 or a "
    "virtual machine, or name a --scheduler whose workers have Linux. --unsafe, which gives up the sandbox, needs "
    "Linux too."
)
_COLUMNS = (
    *("{task.description}", BarColumn(), "{task.completed:,} of {task.total:,},"),
    *(TimeElapsedColumn(), "elapsed,", TimeRemainingColumn(), "left"),
)
_SHOWN = 500  # rows of the table; --csv has them all
_LISTED = 50  # lines on submissions that could not be graded
_OF_ONE = 3  # of them on one student's
_REASON = 600  # characters of what is said of each
_FAILED = ("crashed", "unreadable")
_DAY = 86_400.0


def _seconds(context: click.Context, option: click.Parameter, value: float) -> float:
    if not 1 <= value <= _DAY:
        raise click.BadParameter(f"{value:g} is no time limit. Name seconds, from 1 to {_DAY:,.0f}, which is a day.")
    return value


@click.command(short_help="Grade what learners handed in.", epilog="Example: course grade submitted/ --csv scores.csv")
@click.argument("paths", nargs=-1, type=click.Path(exists=True, path_type=Path))
@click.option(
    "--nbgrader",
    "course_dir",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Grade what was handed in to this nbgrader course, or of it what PATHS name, and write the scores into its "
    "gradebook and the notebooks into its `autograded`.",
)
@click.option(
    "--db",
    type=click.Path(dir_okay=False, path_type=Path),
    default="grades.sqlite",
    show_default=True,
    help="The file that keeps every result.",
)
@click.option("--json", "json_file", type=click.Path(dir_okay=False, path_type=Path), help="Write the results there.")
@click.option(
    "--csv", "csv_file", type=click.Path(dir_okay=False, path_type=Path), help="Write a table of scores there."
)
@click.option(
    "--jobs",
    type=click.IntRange(1, 1024),
    default=os.cpu_count() or 1,
    show_default=True,
    help="Submissions graded at a time: by default as many as this machine has processors.",
)
@click.option(
    "--timeout", type=float, callback=_seconds, default=60.0, show_default=True, help="Seconds for one submission."
)
@click.option(
    "--memory",
    type=click.IntRange(64, 1_000_000),
    default=1000,
    show_default=True,
    help="Megabytes for one submission.",
)
@click.option("--replace", is_flag=True, help="Let results take the place of those from files that lie elsewhere.")
@click.option("--scheduler", help="Grade on the workers of this Dask scheduler, as in tcp://10.0.0.5:8786.")
@click.option("--unsafe", is_flag=True, help="Run learners' code without a sandbox: with your rights, on your files.")
def grade(
    paths: tuple[Path, ...],
    course_dir: Path | None,
    db: Path,
    json_file: Path | None,
    csv_file: Path | None,
    jobs: int,
    timeout: float,
    memory: int,
    replace: bool,
    scheduler: str | None,
    unsafe: bool,
) -> None:
    """Grade submitted notebooks: files, folders, an nbgrader course, or zips from Moodle and Canvas.

    Each result is kept in DB as it comes. The same command goes on where it was stopped, and grades what has changed.
    The exit code is 1 where a submission could not be graded; a list at the end says which, and why.
    """
    if not paths and course_dir is None:
        raise click.UsageError("Name what to grade: notebooks, folders or zips, or an nbgrader course by --nbgrader.")
    began = time.time()
    click.echo("loading PyTorch, reading what was handed in", err=True)
    with told(), ExitStack() as after:
        grader = _here(after, jobs) if scheduler is None else _on_a_cluster(scheduler)
        # None of these needs PyTorch: a mistake in what was named is told at once.
        from course_utils.grading import gradebook
        from course_utils.grading.alone import alone
        from course_utils.grading.intake.replacing import from_elsewhere
        from course_utils.grading.outgoing import export

        room, handed, submissions = _read(paths, course_dir)
        for database in (db, *([room.database] if room else [])):
            after.enter_context(alone(database))
        if room and room.database.exists() and not os.access(room.database, os.W_OK, effective_ids=True):
            raise GradingError(
                f"{room.database}: this gradebook of nbgrader's may only be read. Make it writable first."
            )
        of = {(one.student, one.assignment): one for one in submissions}
        with gradebook.Gradebook(db) as book:
            waiting = book.to_grade(of.values())
            stay = {} if replace else from_elsewhere(waiting, book.paths(), [course_dir] if course_dir else paths)
            waiting = [one for one in waiting if (one.student, one.assignment) not in stay]
            graded = grader(waiting, timeout, memory * 1_000_000, unsafe) if waiting else ()
            kept = 0
            try:
                for result in _shown(graded, len(waiting)):
                    book.add(of[result.student, result.assignment], result)
                    kept += 1
            except KeyboardInterrupt:
                raise _Stopped(
                    f"stopped: {kept} of {len(waiting)} are graded and kept in {db}. The same command goes on there."
                ) from None
            results = [one for one in book.results() if (one.student, one.assignment) in of]
        known = len(of) - len(waiting) - len(stay)
        run: dict[str, Any] = {"seconds": round(time.time() - began, 3), "graded": len(waiting), "known": known}
        run["not_graded"] = list(stay.values())
        if json_file is not None:
            export.write_json(json_file, results, run)
        if csv_file is not None:
            export.write_csv(csv_file, results)
        left: tuple[str, ...] = ()
        if room:
            from course_utils.grading.outgoing import posting

            handed = [one for one in handed if (one.submission.student, one.submission.assignment) not in stay]
            posted = posting.post(room, handed, {(one.student, one.assignment): one for one in results})
            left = posted.left
    _show(results)
    say(f"{len(waiting)} graded, {known} known from before; kept in {db}")
    if room:
        click.echo(f"nbgrader: {posted.written} written, {posted.unchanged} there from before")
        for line in left:
            say(f"not written, as it has no score: {line}")
    failed = _list(results)
    if stay:
        say(f"{len(stay)} not graded, as the results that are kept are from files that lie elsewhere:")
        _some(list(stay.values()))
        click.echo("--replace grades them in place of those; another --db keeps both.")
    if failed or left or stay:
        raise click.exceptions.Exit(1)


class _Stopped(click.ClickException):
    """Whoever grades pressed Ctrl-C. The message says what is kept."""

    exit_code = 130  # as shells have it


def _read(paths: Sequence[Path], course_dir: Path | None) -> tuple[Classroom | None, list[HandedIn], list[Submission]]:
    """Return what was handed in, and the nbgrader course that it belongs to, if any, telling how far this is."""
    from course_utils.grading.intake import classroom
    from course_utils.grading.intake.finding import SubmissionError, find

    try:
        with Console(stderr=True).status("reading what was handed in") as status:
            if course_dir is None:
                return (
                    None,
                    [],
                    find(paths, lambda count: status.update(f"reading what was handed in: {count:,} files")),
                )
            room = classroom.open_classroom(course_dir)
            handed = classroom.handed_in(room, paths)
            return room, handed, [one.submission for one in handed]
    except (SubmissionError, classroom.ClassroomError) as error:
        raise click.UsageError(plain(str(error))) from error


def _shown(graded: Iterable[Result], total: int) -> Iterator[Result]:
    """Yield the results beside a bar. Of a single submission each verdict is told as it comes, in place of a bar."""
    if total <= 1:
        yield from graded
        return
    with Progress(*_COLUMNS, console=Console(stderr=True)) as bar:
        yield from bar.track(graded, total, description="grading")


def _list(results: Sequence[Result]) -> bool:
    """Print which submissions could not be graded, and why, of each student a few. Return whether there is one."""
    by_student: dict[str, list[Result]] = {}
    for one in results:
        if one.status in _FAILED:
            by_student.setdefault(one.student, []).append(one)
    if by_student:
        say(f"{sum(map(len, by_student.values()))} could not be graded, or not to the end:")
    lines = []
    for student, theirs in by_student.items():
        lines += [f"{student}, {one.assignment}: {shown(one.reason)[:_REASON]}" for one in theirs[:_OF_ONE]]
        if len(theirs) > _OF_ONE:
            lines.append(f"{student}, and {len(theirs) - _OF_ONE:,} more")
    _some(lines)
    return bool(by_student)


def _some(lines: Sequence[str]) -> None:
    """Print the first of many lines."""
    for line in lines[:_LISTED]:
        say(f"  {line}")
    if len(lines) > _LISTED:
        say(f"  and {len(lines) - _LISTED:,} more; --json writes them all")


_Grade = Callable[[Sequence["Submission"], float, int, bool], Iterable["Result"]]


def _here(after: ExitStack, jobs: int) -> _Grade:
    """Return what grades on this machine. Its first processes import PyTorch while this one reads, and needs none."""
    if sys.platform != "linux":
        raise GradingError(_LINUX.format(sys.platform))
    from course_utils.grading.controller.judges import Judges
    from course_utils.grading.controller.parent import WarmParent

    judges, parent = Judges(), WarmParent()
    after.callback(judges.close)
    after.callback(parent.close)

    def graded(submissions: Sequence[Submission], timeout: float, memory: int, unsafe: bool) -> Iterable[Result]:
        from course_utils.grading.controller.pool import grade_all

        told = _tell if len(submissions) == 1 else None
        return grade_all(submissions, jobs, timeout, memory, unsafe, parent, told, judges)

    return graded


def _tell(row: ExerciseResult) -> None:
    """Print the verdict on one exercise, as soon as it is there."""
    click.echo(f"{row.id}: {row.outcome}, {row.score:g} of {row.points:g}")


def _on_a_cluster(address: str) -> _Grade:
    """Return what grades on the workers of a scheduler."""
    from course_utils.grading.controller.cluster import grade_on_cluster

    def graded(submissions: Sequence[Submission], timeout: float, memory: int, unsafe: bool) -> Iterable[Result]:
        return grade_on_cluster(submissions, address, timeout, memory, unsafe)

    return graded


def _show(results: Sequence[Result]) -> None:
    """Print a table of scores, the students in order, and what could not be graded last."""
    table = Table("student", "assignment", "status", "score")
    ordered = sorted(results, key=lambda one: (one.status in _FAILED, one.assignment, one.student))
    for one in ordered[:_SHOWN]:
        table.add_row(
            escape(shown(one.student)), escape(shown(one.assignment)), one.status, f"{one.score:g} of {one.points:g}"
        )
    if len(ordered) > _SHOWN:
        table.add_row(f"and {len(ordered) - _SHOWN:,} more")
    Console().print(table)
