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
    from course_utils.grading.submission import Result

ROOT = Path(__file__).parents[1]
FIRST_LESSON = "notebooks/00_start_here.ipynb"


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
    unsafe: bool,
) -> None:
    """Grade submitted notebooks: files, folders, an nbgrader course, or zips from Moodle and Canvas.

    Each result is kept in DB as it comes. The same command goes on where it was stopped, and grades what has changed.
    """
    if not paths and course_dir is None:
        raise click.UsageError("Name what to grade: notebooks, folders or zips, or an nbgrader course by --nbgrader.")
    from course_utils.grading.parent import ParentFailed, WarmParent

    began = time.time()
    parent = WarmParent()  # it imports PyTorch while this process does

    from course_utils.grading import classroom, export, gradebook, posting
    from course_utils.grading.finding import SubmissionError, find
    from course_utils.grading.pool import grade_all
    from course_utils.grading.sandbox import NoSandbox

    troubles = (gradebook.GradebookError, export.ExportError, ParentFailed, NoSandbox, classroom.ClassroomError)
    room, handed = None, []
    try:
        if course_dir is not None:
            room = classroom.open_classroom(course_dir)
            handed = classroom.handed_in(room, paths)
        submissions = [one.submission for one in handed] if room else find(paths)
    except (SubmissionError, classroom.ClassroomError) as error:
        raise click.UsageError(str(error)) from error
    of = {(one.student, one.assignment): one for one in submissions}
    try:
        with gradebook.Gradebook(db) as book:
            waiting = book.to_grade(submissions)
            graded = grade_all(waiting, jobs, timeout, memory * 1_000_000, unsafe, parent)
            for result in track(graded, "grading", total=len(waiting), console=Console(stderr=True)):
                book.add(of[result.student, result.assignment], result)
            results = [one for one in book.results() if (one.student, one.assignment) in of]
        run = {"seconds": round(time.time() - began, 3), "graded": len(waiting), "known": len(of) - len(waiting)}
        if json_file is not None:
            export.write_json(json_file, results, run)
        if csv_file is not None:
            export.write_csv(csv_file, results)
        posted = posting.post(room, handed, {(one.student, one.assignment): one for one in results}) if room else None
    except troubles as error:
        raise click.ClickException(str(error)) from error
    _show(results)
    click.echo(f"{len(waiting)} graded, {len(of) - len(waiting)} known from before; kept in {db}")
    if posted is not None:
        click.echo(f"nbgrader: {posted.written} written, {posted.unchanged} there from before")
        for line in posted.left:
            click.echo(f"not written, as it has no score: {line}")


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


def _show(results: Sequence[Result]) -> None:
    """Print a table of scores, the students in order."""
    table = Table("student", "assignment", "status", "score")
    for one in sorted(results, key=lambda one: (one.assignment, one.student)):
        table.add_row(escape(one.student), escape(one.assignment), one.status, f"{one.score:g} of {one.points:g}")
    Console().print(table)


def _has_screen() -> bool:
    return sys.platform in ("darwin", "win32") or bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))
