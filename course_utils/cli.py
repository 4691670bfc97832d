"""The command `course`."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import click

from course_utils.place import ROOT

FIRST_LESSON = "notebooks/00_start_here.ipynb"
# Commands with modules of their own, which are imported only where one is asked for: together they take longer than an
# answer of `course ask`.
_ELSEWHERE = {
    "ask": "course_utils.ask.command",
    "audit": "course_utils.audit.script",
    "export": "course_utils.grading.commands",
    "grade": "course_utils.grading.grade",
    "gradescope": "course_utils.grading.commands",
    "report": "course_utils.grading.commands",
    "run": "course_utils.explain.script",
}


class _Course(click.Group):
    """The commands of this module, and those of `_ELSEWHERE`."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted([*super().list_commands(ctx), *_ELSEWHERE])

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _ELSEWHERE:
            return super().get_command(ctx, cmd_name)
        found = getattr(import_module(_ELSEWHERE[cmd_name]), cmd_name)
        assert isinstance(found, click.Command)
        return found


@click.group(cls=_Course, context_settings={"help_option_names": ["-h", "--help"]})
def course() -> None:
    """Open the course, build its notebooks, or grade a class."""


@course.command(short_help="Open your own copy of the course in JupyterLab.", epilog="Example: course lab --fresh 03")
@click.option("--port", type=int, help="Port of the server; a free one by default.")
@click.option("--ip", metavar="ADDRESS", help="Address to serve on: 0.0.0.0 in a container. This machine by default.")
@click.option("--fresh", metavar="NN", help="Start the notebooks of lesson NN again first; the old ones are kept.")
def lab(port: int | None, ip: str | None, fresh: str | None) -> None:
    """Open JupyterLab on your own copy of the course, where you stopped.

    The copy is the folder my-course (in the clone, or else where you are), or $COURSE_COPY, made on the first start.
    When the course changes, what you have not changed is renewed; nothing of yours is lost. Without a screen it serves
    and prints the address.
    """
    from course_utils import copies
    from course_utils.notebooks import NotebookError

    if not (ROOT / FIRST_LESSON).exists():
        raise click.ClickException(
            f"{ROOT / FIRST_LESSON} is missing: run `course lab` from a copy of the whole course"
        )
    own = copies.place()
    try:
        written = copies.renew(ROOT, own) + (copies.start_again(ROOT, own, fresh) if fresh else [])
    except (NotebookError, OSError) as error:
        raise click.ClickException(str(error)) from error
    if all(one.change == "made" for one in written):
        click.echo(f"your copy of the course: {own} ({len(written)} new notebooks)" if written else f"your copy: {own}")
    else:
        click.echo("\n".join(map(str, written)))
    command = [sys.executable, "-m", "jupyterlab", "--ServerApp.root_dir=.", "--LabApp.news_url="]
    start = copies.where_they_stopped(own, FIRST_LESSON)
    command.append(f"--LabApp.default_url=/lab/workspaces/{copies.WORKSPACE}/tree/{start}")
    command.append(f"--LabApp.workspaces_dir={own / copies.WORKSPACES}")
    if port is not None:
        command += [f"--port={port}", "--ServerApp.port_retries=0"]
    if ip is not None:
        command.append(f"--ServerApp.ip={ip}")
    if ip is not None or not _has_screen():
        command.append("--no-browser")
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        command.append("--allow-root")
    paths = (str(own / ".lab"), os.environ.get("JUPYTER_CONFIG_PATH", ""))
    os.environ["JUPYTER_CONFIG_PATH"] = os.pathsep.join(filter(None, paths))
    os.chdir(own)
    if sys.platform != "win32":
        os.execv(sys.executable, command)  # this process becomes the server: what ends it ends its kernels, too
    try:
        raise SystemExit(subprocess.run(command, check=False).returncode)
    except KeyboardInterrupt:
        raise SystemExit(0) from None


@course.command(
    short_help="Run lessons and masters, and release the exercises.", epilog="Example: course build 01 --check"
)
@click.argument("names", nargs=-1)
@click.option("--check", is_flag=True, help="Write nothing; fail if a notebook is not as it would be built.")
def build(names: tuple[str, ...], check: bool) -> None:
    """Execute lessons and masters, put them into normal form, and release the exercises.

    NAMES limits this to notebooks whose file name begins so.
    """
    from rich.console import Console

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


@course.command(short_help="Write the skeleton of a new exercise.", epilog="Example: course new 04 one_pass")
@click.argument("lesson")
@click.argument("name")
def new(lesson: str, name: str) -> None:
    """Write the skeleton of a new exercise.

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


@course.command(short_help="Copy what students get of a lesson.", epilog="Example: course release 03 --to students")
@click.argument("lesson")
@click.option(
    "--to",
    "folder",
    type=click.Path(file_okay=False, path_type=Path),
    required=True,
    help="The folder; made if missing.",
)
@click.option("--without-deeper", is_flag=True, help="Leave out the pages that go deeper.")
def release(lesson: str, folder: Path, without_deeper: bool) -> None:
    """Copy what students get of LESSON into a folder: the lesson, its exercises and its deeper pages.

    Outputs are left out, and what settles a prediction is folded, as in a learner's own copy. LESSON is a number.
    """
    from course_utils import copies
    from course_utils.notebooks import NotebookError

    try:
        written = copies.hand_out(ROOT, folder, lesson, deeper=not without_deeper)
    except (NotebookError, OSError) as error:
        raise click.ClickException(str(error)) from error
    for path in written:
        click.echo(f"wrote: {path}")


@course.command(short_help="Say what this machine lacks for the course.", epilog="Example: course doctor")
def doctor() -> None:
    """Look at what the course needs here, and say how to mend what is missing or odd.

    Python, PyTorch's build, packages, the kernel, lessons, your copy, the sandbox and a browser. The exit code is 1
    where something is missing that lessons cannot do without.
    """
    from course_utils.doctor import report as looked

    if not looked(click.echo):
        raise SystemExit(1)


def _has_screen() -> bool:
    return sys.platform in ("darwin", "win32") or bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))


if __name__ == "__main__":
    course()
