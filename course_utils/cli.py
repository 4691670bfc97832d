"""The command `course`."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import click
from rich.console import Console

from course_utils.audit.script import audit
from course_utils.explain.script import run
from course_utils.grading import commands
from course_utils.grading.grade import grade

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
@click.argument("lesson")
@click.argument("name")
def new(lesson: str, name: str) -> None:
    """Write the skeleton of a new exercise: `course new 04 one_pass`.

    NAME is what the learner will define, LESSON a lesson or its number. The suite lists what is left to do in it, and
    fails until that is done.
    """
    from course_utils import skeleton

    try:
        written = skeleton.write(ROOT, lesson, name)
    except skeleton.SkeletonError as error:
        raise click.UsageError(str(error)) from error
    for path in written:
        click.echo(f"wrote: {path.relative_to(ROOT)}")
    click.echo(f"Next: pytest -q -k {name} says what is left to do.")


for command in (run, audit, grade, commands.report, commands.export, commands.gradescope):
    course.add_command(command)


def _has_screen() -> bool:
    return sys.platform in ("darwin", "win32") or bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))
