"""The command `course`."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.console import Console
from rich.markup import escape
from rich.progress import track
from rich.table import Table

if TYPE_CHECKING:
    from course_utils.grading.fill import Filled
    from course_utils.grading.submission import Result

ROOT = Path(__file__).parents[1]
FIRST_LESSON = "notebooks/00_start_here.ipynb"
_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def course() -> None:
    """Open the course, build its notebooks, or grade a class."""


@course.command()
@click.option("--port", type=int, help="Port of the server; a free one by default.")
def lab(port: int | None) -> None:
    """Open JupyterLab on the first lesson. Without a screen it serves and prints the address."""
    if not (ROOT / FIRST_LESSON).exists():
        raise click.ClickException(
            f"{ROOT / FIRST_LESSON} is missing: run `course lab` from a copy of the whole course"
        )
    command = [sys.executable, "-m", "jupyterlab", "--ServerApp.root_dir=.", "--LabApp.news_url="]
    command.append(f"--LabApp.default_url=/lab/tree/{FIRST_LESSON}")
    if port is not None:
        command += [f"--port={port}", "--ServerApp.port_retries=0"]
    if not _has_screen():
        command.append("--no-browser")
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        command.append("--allow-root")
    try:
        raise SystemExit(subprocess.run(command, cwd=ROOT, check=False).returncode)
    except KeyboardInterrupt:
        raise SystemExit(0) from None


@course.command()
@click.argument("names", nargs=-1)
@click.option("--check", is_flag=True, help="Write nothing; fail if a notebook is not as it would be built.")
def build(names: tuple[str, ...], check: bool) -> None:
    """Execute lessons and masters, put them into normal form, and release the exercises.

    NAMES limits this to notebooks whose file name begins so, as in `course build 01`.
    """
    from course_utils import notebooks

    console = Console(stderr=True)
    try:
        with console.status("running notebooks"):
            built = notebooks.build(ROOT, names)
    except notebooks.NotebookError as error:
        raise click.ClickException(f"{error}\nNothing was written.") from error
    try:
        changed = notebooks.differing(built) if check else notebooks.write(built)
    except notebooks.NotebookError as error:
        raise click.ClickException(str(error)) from error
    for path in changed:
        click.echo(f"{'differs' if check else 'wrote'}: {path.relative_to(ROOT)}")
    click.echo(f"{len(built)} notebooks built, {len(changed)} {'differ' if check else 'changed'}.")
    if check and changed:
        raise click.ClickException("run `course build` and commit what it writes")


@course.command()
@click.argument("paths", nargs=-1, required=True, type=click.Path(exists=True, path_type=Path))
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
@click.option("--unsafe", is_flag=True, help="Run learners' code without a sandbox: with your rights, on your files.")
def grade(
    paths: tuple[Path, ...],
    db: Path,
    json_file: Path | None,
    csv_file: Path | None,
    jobs: int,
    timeout: float,
    memory: int,
    unsafe: bool,
) -> None:
    """Grade submitted notebooks: files, folders, nbgrader's `submitted`, or zips from Moodle and Canvas.

    Each result is kept in DB as it comes. The same command goes on where it was stopped, and grades what has changed.
    """
    from course_utils.grading import export, gradebook
    from course_utils.grading.finding import SubmissionError, find
    from course_utils.grading.parent import ParentFailed
    from course_utils.grading.pool import grade_all
    from course_utils.grading.sandbox import NoSandbox

    began = time.time()
    try:
        submissions = find(paths)
    except SubmissionError as error:
        raise click.UsageError(str(error)) from error
    of = {(one.student, one.assignment): one for one in submissions}
    try:
        with gradebook.Gradebook(db) as book:
            waiting = book.to_grade(submissions)
            graded = grade_all(waiting, jobs, timeout, memory * 1_000_000, unsafe)
            for result in track(graded, "grading", total=len(waiting), console=Console(stderr=True)):
                book.add(of[result.student, result.assignment], result)
            results = [one for one in book.results() if (one.student, one.assignment) in of]
        run = {"seconds": round(time.time() - began, 3), "graded": len(waiting), "known": len(of) - len(waiting)}
        if json_file is not None:
            export.write_json(json_file, results, run)
        if csv_file is not None:
            export.write_csv(csv_file, results)
    except (gradebook.GradebookError, export.ExportError, ParentFailed, NoSandbox) as error:
        raise click.ClickException(str(error)) from error
    _show(results)
    click.echo(f"{len(waiting)} graded, {len(of) - len(waiting)} known from before; kept in {db}")


@course.command()
@click.argument("db", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--out", type=click.Path(file_okay=False, path_type=Path), default="report", show_default=True)
def report(db: Path, out: Path) -> None:
    """Write a page for the class and one for each student, from the results in DB."""
    from course_utils.grading import gradebook
    from course_utils.grading.report import ReportError, write_report

    try:
        with gradebook.Gradebook(db, create=False) as book:
            written = write_report(book.results(), out)
    except (gradebook.GradebookError, ReportError) as error:
        raise click.ClickException(str(error)) from error
    click.echo(f"{len(written)} pages written to {out}")


@course.command()
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
    from course_utils.grading.fill import FillError, fill_canvas, fill_moodle
    from course_utils.grading.github import GithubError, notices, write_step

    if [canvas is not None, moodle is not None, github].count(True) != 1:
        raise click.UsageError("name one of --canvas FILE, --moodle FILE and --github")
    lesson = _lesson(lesson) if lesson is not None else None
    source = canvas or moodle
    try:
        with gradebook.Gradebook(db, create=False) as book:
            results = [one for one in book.results() if lesson in (None, one.assignment)]
        if source is None:
            write_step(results)
            click.echo(notices(results))
        else:
            filled = (fill_canvas if canvas else fill_moodle)(source.read_bytes(), results, lesson, column)
            _write(source, out or source.with_name(f"{source.stem}-graded{source.suffix}"), filled)
    except (gradebook.GradebookError, GithubError) as error:
        raise click.ClickException(str(error)) from error
    except FillError as error:
        raise click.ClickException(f"{source}: {error}") from error
    except OSError as error:
        raise click.ClickException(f"{source}: cannot be read: {error.strerror}") from error
    if source is None and any(one.score < one.points or one.status != "graded" for one in results):
        raise click.ClickException("points are missing: the job's summary says where")


@course.command()
@click.argument("lesson")
@click.option("--out", type=click.Path(dir_okay=False, path_type=Path), default="autograder.zip", show_default=True)
@click.option("--unsafe", is_flag=True, help="Where Gradescope's container has no sandbox, run learners' code without.")
def gradescope(lesson: str, out: Path, unsafe: bool) -> None:
    """Write the autograder of a Gradescope assignment for LESSON, as in `course gradescope 02`."""
    from course_utils.grading.autograder import AutograderError, Settings, autograder_zip
    from course_utils.grading.export import replace_file

    settings = Settings(_lesson(lesson), unsafe)
    try:
        replace_file(out, autograder_zip(ROOT, settings))
    except AutograderError as error:
        raise click.ClickException(str(error)) from error
    except OSError as error:
        raise click.ClickException(f"{out}: cannot be written: {error.strerror}") from error
    click.echo(f"{out}: grades {settings.lesson}. Upload it as the autograder of a programming assignment.")


def _lesson(name: str) -> str:
    from course_utils.grading.identity import UnknownLesson, lesson_called

    try:
        return lesson_called(name)
    except UnknownLesson as error:
        raise click.UsageError(str(error)) from error


def _write(source: Path, out: Path, filled: Filled) -> None:
    """Write the copy of a gradebook, and tell what is in it."""
    from course_utils.grading.export import replace_file

    if out.exists() and out.samefile(source):
        raise click.UsageError(f"--out {out}: that is the exported file itself. Name another one.")
    try:
        replace_file(out, filled.content)
    except OSError as error:
        raise click.ClickException(f"{out}: cannot be written: {error.strerror}") from error
    for note in filled.notes:
        click.echo(note)
    click.echo(f"{filled.cells} scores written to {out}")


def _show(results: Sequence[Result]) -> None:
    """Print a table of scores, the students in order."""
    table = Table("student", "assignment", "status", "score")
    for one in sorted(results, key=lambda one: (one.assignment, one.student)):
        table.add_row(escape(one.student), escape(one.assignment), one.status, f"{one.score:g} of {one.points:g}")
    Console().print(table)


def _has_screen() -> bool:
    return sys.platform in ("darwin", "win32") or bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))
