"""The commands that grade: `course grade`, `report`, `export` and `gradescope`."""

from __future__ import annotations

import gc
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.console import Console
from rich.markup import escape
from rich.progress import track
from rich.table import Table

from course_utils.grading.errors import GradingError

if TYPE_CHECKING:
    from course_utils.grading.outgoing.fill import Filled
    from course_utils.grading.submission import ExerciseResult, Result, Submission

ROOT = Path(__file__).parents[2]
_LINUX = (
    "learners' code is run in forks that Linux keeps in a sandbox, and this is {}. Use a Linux machine, WSL 2 or a "
    "virtual machine, or name a --scheduler whose workers have Linux. --unsafe, which gives up the sandbox, needs "
    "Linux too."
)
_SHOWN = 500  # rows of the table; --csv has them all
_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


@contextmanager
def _told() -> Iterator[None]:
    """Tell what goes wrong as click does: without a traceback, and with exit code 1."""
    try:
        yield
    except GradingError as error:
        raise click.ClickException(str(error)) from error


@click.command()
@click.argument("paths", nargs=-1, type=click.Path(exists=True, path_type=Path))
@click.option(
    "--nbgrader",
    "course_dir",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Grade what was handed in to this nbgrader course, or of it what PATHS name, and write the scores into its "
    "gradebook and the notebooks into its `autograded`.",
)
@click.option("--db", type=click.Path(dir_okay=False, path_type=Path), default="grades.sqlite", show_default=True)
@click.option("--json", "json_file", type=click.Path(dir_okay=False, path_type=Path), help="Write the results there.")
@click.option(
    "--csv", "csv_file", type=click.Path(dir_okay=False, path_type=Path), help="Write a table of scores there."
)
@click.option("--jobs", type=click.IntRange(1), default=os.cpu_count() or 1, show_default=True)
@click.option("--timeout", type=float, default=60.0, show_default=True, help="Seconds for one submission.")
@click.option(
    "--memory", type=click.IntRange(64), default=1000, show_default=True, help="Megabytes for one submission."
)
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
    scheduler: str | None,
    unsafe: bool,
) -> None:
    """Grade submitted notebooks: files, folders, an nbgrader course, or zips from Moodle and Canvas.

    Each result is kept in DB as it comes. The same command goes on where it was stopped, and grades what has changed.
    """
    if not paths and course_dir is None:
        raise click.UsageError("Name what to grade: notebooks, folders or zips, or an nbgrader course by --nbgrader.")
    began = time.time()
    click.echo("loading PyTorch, reading what was handed in", err=True)
    with _told(), ExitStack() as after:
        grader = _here(after, jobs) if scheduler is None else _on_a_cluster(scheduler)
        # None of these needs PyTorch: a mistake in what was named is told at once.
        from course_utils.grading import gradebook
        from course_utils.grading.intake import classroom
        from course_utils.grading.intake.finding import SubmissionError, find
        from course_utils.grading.outgoing import export

        room, handed = None, []
        try:
            if course_dir is not None:
                room = classroom.open_classroom(course_dir)
                handed = classroom.handed_in(room, paths)
            submissions = [one.submission for one in handed] if room else find(paths)
        except (SubmissionError, classroom.ClassroomError) as error:
            raise click.UsageError(str(error)) from error
        of = {(one.student, one.assignment): one for one in submissions}
        with gradebook.Gradebook(db) as book:
            waiting = book.to_grade(submissions)
            graded = grader(waiting, timeout, memory * 1_000_000, unsafe) if waiting else ()
            if len(waiting) > 1:  # of a single one, each verdict is told as it comes
                graded = track(graded, "grading", total=len(waiting), console=Console(stderr=True))
            for result in graded:
                book.add(of[result.student, result.assignment], result)
            results = [one for one in book.results() if (one.student, one.assignment) in of]
        run = {"seconds": round(time.time() - began, 3), "graded": len(waiting), "known": len(of) - len(waiting)}
        if json_file is not None:
            export.write_json(json_file, results, run)
        if csv_file is not None:
            export.write_csv(csv_file, results)
        if room:
            from course_utils.grading.outgoing import posting

            posted = posting.post(room, handed, {(one.student, one.assignment): one for one in results})
    _show(results)
    click.echo(f"{len(waiting)} graded, {len(of) - len(waiting)} known from before; kept in {db}")
    if room:
        click.echo(f"nbgrader: {posted.written} written, {posted.unchanged} there from before")
        for line in posted.left:
            click.echo(f"not written, as it has no score: {line}")


@contextmanager
def _without_collecting() -> Iterator[None]:
    """Load modules without looking for garbage among what is loaded, which takes a fifth of the time."""
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


_Grade = Callable[[Sequence["Submission"], float, int, bool], Iterable["Result"]]


def _here(after: ExitStack, jobs: int) -> _Grade:
    """Return what grades on this machine. Its first warm parent imports PyTorch while this process does."""
    if sys.platform != "linux":
        raise GradingError(_LINUX.format(sys.platform))
    from course_utils.grading.controller.parent import WarmParent

    parent = WarmParent()
    after.callback(parent.close)

    def graded(submissions: Sequence[Submission], timeout: float, memory: int, unsafe: bool) -> Iterable[Result]:
        with _without_collecting():
            from course_utils.grading.controller.pool import grade_all

        told = _tell if len(submissions) == 1 else None
        return grade_all(submissions, jobs, timeout, memory, unsafe, parent, told)

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


@click.command()
@click.argument("db", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--out", type=click.Path(file_okay=False, path_type=Path), default="report", show_default=True)
def report(db: Path, out: Path) -> None:
    """Write a page for the class and one for each student, from the results in DB."""
    from course_utils.grading import gradebook
    from course_utils.grading.outgoing.report import write_report

    with _told(), gradebook.Gradebook(db, create=False) as book:
        written = write_report(book.results(), out)
    click.echo(f"{len(written)} pages written to {out}")


@click.command()
@click.argument("db", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--canvas", type=_FILE, help="A gradebook that Canvas exported: write a copy with the scores in it.")
@click.option("--moodle", type=_FILE, help="A grading worksheet of Moodle: write a copy with the scores in it.")
@click.option("--github", is_flag=True, help="Tell a workflow of GitHub Actions; fail where points are missing.")
@click.option("--lesson", help="Only the results of this lesson, as in `--lesson 02`.")
@click.option("--column", help="The title of the column for the scores, where it cannot be told.")
@click.option("--out", type=click.Path(dir_okay=False, path_type=Path), help="The copy; FILE-graded.csv by default.")
def export(
    db: Path,
    canvas: Path | None,
    moodle: Path | None,
    github: bool,
    lesson: str | None,
    column: str | None,
    out: Path | None,
) -> None:
    """Bring the results in DB to where scores are kept: Canvas, Moodle, or a page of GitHub's."""
    from course_utils.grading import gradebook
    from course_utils.grading.outgoing.fill import FillError, fill_canvas, fill_moodle
    from course_utils.grading.outgoing.github import notices, write_step

    if [canvas is not None, moodle is not None, github].count(True) != 1:
        raise click.UsageError("name one of --canvas FILE, --moodle FILE and --github")
    lesson = _lesson(lesson) if lesson is not None else None
    source = canvas or moodle
    with _told():
        with gradebook.Gradebook(db, create=False) as book:
            results = [one for one in book.results() if lesson in (None, one.assignment)]
        if source is None:
            write_step(results)
            click.echo(notices(results))
        else:
            try:
                filled = (fill_canvas if canvas else fill_moodle)(source.read_bytes(), results, lesson, column)
            except FillError as error:
                raise click.ClickException(f"{source}: {error}") from error
            except OSError as error:
                raise click.ClickException(f"{source}: cannot be read: {error.strerror}") from error
            _write(source, out or source.with_name(f"{source.stem}-graded{source.suffix}"), filled)
    if source is None and any(one.score < one.points or one.status != "graded" for one in results):
        raise click.ClickException("points are missing: the job's summary says where")


@click.command()
@click.argument("lesson")
@click.option("--out", type=click.Path(dir_okay=False, path_type=Path), default="autograder.zip", show_default=True)
@click.option("--unsafe", is_flag=True, help="Where Gradescope's container has no sandbox, run learners' code without.")
def gradescope(lesson: str, out: Path, unsafe: bool) -> None:
    """Write the autograder of a Gradescope assignment for LESSON, as in `course gradescope 02`."""
    from course_utils.grading.outgoing.autograder import Settings, autograder_zip

    settings = Settings(_lesson(lesson), unsafe)
    with _told():
        content = autograder_zip(ROOT, settings)
    _replace(out, content)
    click.echo(f"{out}: grades {settings.lesson}. Upload it as the autograder of a programming assignment.")


def _lesson(name: str) -> str:
    from course_utils.grading.intake.identity import UnknownLesson, lesson_called

    try:
        return lesson_called(name)
    except UnknownLesson as error:
        raise click.UsageError(str(error)) from error


def _write(source: Path, out: Path, filled: Filled) -> None:
    """Write the copy of a gradebook, and tell what is in it."""
    if out.exists() and out.samefile(source):
        raise click.UsageError(f"--out {out}: that is the exported file itself. Name another one.")
    _replace(out, filled.content)
    for note in filled.notes:
        click.echo(note)
    click.echo(f"{filled.cells} scores written to {out}")


def _replace(out: Path, content: bytes) -> None:
    from course_utils.grading.outgoing.export import replace_file

    try:
        replace_file(out, content)
    except OSError as error:
        raise click.ClickException(f"{out}: cannot be written: {error.strerror}") from error


def _show(results: Sequence[Result]) -> None:
    """Print a table of scores, the students in order."""
    table = Table("student", "assignment", "status", "score")
    ordered = sorted(results, key=lambda one: (one.assignment, one.student))
    for one in ordered[:_SHOWN]:
        table.add_row(escape(one.student), escape(one.assignment), one.status, f"{one.score:g} of {one.points:g}")
    if len(ordered) > _SHOWN:
        table.add_row(f"and {len(ordered) - _SHOWN:,} more")
    Console().print(table)
