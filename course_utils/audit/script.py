"""`course audit SCRIPT.py`: run a script as it is, watched."""

from __future__ import annotations

import json
import linecache
import runpy
import sys
import traceback
from dataclasses import asdict, dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

import click

from course_utils.explain.explanation import Explanation, Place

_OURS = str(Path(__file__).parent)


@click.command(
    context_settings={"ignore_unknown_options": True, "help_option_names": ["-h", "--help"]},
    short_help="Watch a training script for silent mistakes.",
    epilog="Example: course audit train.py --json found.json",
)
@click.argument("script", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
@click.option("--json", "json_file", type=click.Path(dir_okay=False, path_type=Path), help="Write the results there.")
@click.option("--sarif", "sarif_file", type=click.Path(dir_okay=False, path_type=Path), help="The same, as SARIF.")
@click.option("--strict", is_flag=True, help="Fail on likely mistakes, too, and not only on certain ones.")
@click.option("--steps", type=click.IntRange(min=0), default=20, show_default=True, help="Steps to watch closely.")
def audit(
    script: Path,
    arguments: tuple[str, ...],
    json_file: Path | None,
    sarif_file: Path | None,
    strict: bool,
    steps: int,
) -> None:
    """Run SCRIPT with ARGUMENTS, watched for mistakes that raise no error. The script needs no change.

    What the script prints stays as it is; the report goes to standard error. Options of the same name as ours reach
    the script after `--`. Exit code 0: nothing of level error was found; 1: something was, or the script failed;
    2: misuse.
    """
    for file in filter(None, (json_file, sarif_file)):
        if not file.absolute().parent.is_dir():
            raise click.UsageError(f"cannot write {file}: there is no folder {file.absolute().parent}")
    from course_utils.audit.watch import audit as watching

    watched = watching(steps=steps)
    with watched as report:
        ending = _run(script, arguments)
        report.interrupted = ending.code != 0
    sys.stdout.flush()
    if ending.text:
        click.echo(ending.text, err=True, nl=False)
    if ending.card is not None:
        click.echo(str(ending.card), err=True)
    click.echo(f"\n{report}", err=True)
    if json_file is not None:
        results = {
            "findings": report.as_json()["findings"],
            "error": ending.as_json(),
            "watched": report.as_json()["watched"],
        }
        json_file.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    if sarif_file is not None:
        sarif_file.write_text(json.dumps(report.sarif(), indent=1) + "\n", encoding="utf-8")
    raise SystemExit(1 if ending.code or report.failing(strict) else 0)


@dataclass(frozen=True)
class _Ending:
    """How a script ended: its exit code, what Python would print, and what is known about the error."""

    code: int = 0
    text: str = ""
    error: Explanation | None = None
    card: Explanation | None = None  # the same, where more is known than its type and line

    def as_json(self) -> dict[str, Any] | None:
        return None if self.error is None else {**asdict(self.error), "exit_code": self.code}


def _run(script: Path, arguments: tuple[str, ...]) -> _Ending:
    """Run a script as `python SCRIPT ARGUMENTS` does, in this process."""
    argv, path = sys.argv, list(sys.path)
    sys.argv = [str(script), *arguments]
    sys.path.insert(0, str(script.absolute().parent))
    try:
        runpy.run_path(str(script.absolute()), run_name="__main__")
    except SystemExit as exit_:
        return _exited(exit_)
    except BaseException as error:
        return _raised(error)
    finally:
        sys.argv, sys.path[:] = argv, path
    return _Ending()


def _exited(exit_: SystemExit) -> _Ending:
    if exit_.code is None or exit_.code == 0:
        return _Ending()
    code = exit_.code if isinstance(exit_.code, int) else 1
    text = "" if isinstance(exit_.code, int) else f"{exit_.code}\n"
    where = _places(exit_.__traceback__)
    headline = f"the script ended itself with exit code {code}"
    return _Ending(code, text, Explanation("script-exit", headline, where, text.strip(), "", True, ""))


def _raised(error: BaseException) -> _Ending:
    own = _own_frames(error.__traceback__)
    text = "".join(traceback.format_exception(type(error), error, own))
    card = _explained(error)
    where = _places(error.__traceback__)
    plain = Explanation("raised", f"{type(error).__name__}: {error}", where, "", "", False, "")
    return _Ending(1, text, card or plain, card)


def _explained(error: BaseException) -> Explanation | None:
    """Return what `explain` knows about an error. A failure of ours is none of the script's."""
    try:
        from course_utils.explain.explaining import explain  # only now: it imports PyTorch

        return explain(error)
    except Exception:
        return None


def _own_frames(start: TracebackType | None) -> TracebackType | None:
    """Return a traceback without what ran the script, and without the watch that stands around PyTorch's functions."""
    frames = []
    while start is not None:
        file = start.tb_frame.f_code.co_filename
        if not file.startswith((_OURS, "<frozen runpy>")):
            frames.append(start)
        start = start.tb_next
    kept: TracebackType | None = None
    for frame in reversed(frames):
        kept = TracebackType(kept, frame.tb_frame, frame.tb_lasti, frame.tb_lineno)
    return kept


def _places(start: TracebackType | None) -> tuple[Place, ...]:
    from course_utils.audit.lines import is_learners

    found = []
    while start is not None:
        file = start.tb_frame.f_code.co_filename
        if is_learners(file):
            found.append(Place("raised here", file, start.tb_lineno, linecache.getline(file, start.tb_lineno).strip()))
        start = start.tb_next
    return tuple(found[-1:])
