"""The commands that tell what was graded: `course report` and `export`, and `course gradescope`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from course_utils.grading.terminal import plain, say, told
from course_utils.place import PACKAGE, ROOT

if TYPE_CHECKING:
    from course_utils.grading.outgoing.fill import Filled

_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.command(
    short_help="Write pages of results for the class and each student.",
    epilog="Example: course report grades.sqlite --out pages",
)
@click.argument("db", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    default="report",
    show_default=True,
    help="The folder for the pages; index.html is the one for the class.",
)
def report(db: Path, out: Path) -> None:
    """Write a page for the class and one for each student, from the results in DB."""
    from course_utils.grading import gradebook
    from course_utils.grading.outgoing.report import write_report

    with told(), gradebook.Gradebook(db, create=False) as book:
        written = write_report(book.results(), out)
    say(f"{len(written)} pages written to {out}")


@click.command(
    short_help="Bring the scores to Canvas, Moodle or GitHub.",
    epilog="Example: course export grades.sqlite --canvas gradebook.csv",
)
@click.argument("db", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--canvas", type=_FILE, help="A gradebook that Canvas exported: write a copy with the scores in it.")
@click.option("--moodle", type=_FILE, help="A grading worksheet of Moodle: write a copy with the scores in it.")
@click.option("--github", is_flag=True, help="Tell a workflow of GitHub Actions; fail where points are missing.")
@click.option("--lesson", metavar="NN", help="Only the results of this lesson, as in `--lesson 02`.")
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
    with told():
        with gradebook.Gradebook(db, create=False) as book:
            results = [one for one in book.results() if lesson in (None, one.assignment)]
        if source is None:
            write_step(results)
            say(notices(results))
        else:
            try:
                filled = (fill_canvas if canvas else fill_moodle)(source.read_bytes(), results, lesson, column)
            except FillError as error:
                raise click.ClickException(plain(f"{source}: {error}")) from error
            except OSError as error:
                raise click.ClickException(f"{source}: cannot be read: {error.strerror}") from error
            _write(source, out or source.with_name(f"{source.stem}-graded{source.suffix}"), filled)
    if source is None and any(one.score < one.points or one.status != "graded" for one in results):
        raise click.ClickException("points are missing: the job's summary says where")


@click.command(
    short_help="Write the autograder of a Gradescope assignment.",
    epilog="Example: course gradescope 02 --out autograder.zip",
)
@click.argument("lesson")
@click.option(
    "--out",
    type=click.Path(dir_okay=False, path_type=Path),
    default="autograder.zip",
    show_default=True,
    help="The zip to upload.",
)
@click.option("--unsafe", is_flag=True, help="Where Gradescope's container has no sandbox, run learners' code without.")
def gradescope(lesson: str, out: Path, unsafe: bool) -> None:
    """Write the autograder of a Gradescope assignment for LESSON."""
    from course_utils.grading.outgoing.autograder import Settings, autograder_zip

    settings = Settings(_lesson(lesson), unsafe)
    with told():
        content = autograder_zip(ROOT, PACKAGE, settings)
    _replace(out, content)
    say(f"{out}: grades {settings.lesson}. Upload it as the autograder of a programming assignment.")


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
        say(note)
    say(f"{filled.cells} scores written to {out}")


def _replace(out: Path, content: bytes) -> None:
    from course_utils.grading.outgoing.export import replace_file

    try:
        replace_file(out, content)
    except OSError as error:
        raise click.ClickException(f"{out}: cannot be written: {error.strerror}") from error
