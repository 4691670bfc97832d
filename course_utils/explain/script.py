"""`course run SCRIPT.py`: a script as Python runs it, with a card after the traceback."""

from __future__ import annotations

import sys
import types
from collections.abc import Sequence
from pathlib import Path

import click


@click.command(
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
    short_help="Run a script, and explain the error that it meets.",
    epilog="Example: course run train.py --epochs 3",
)
@click.argument("script", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def run(script: Path, arguments: tuple[str, ...]) -> None:
    """Run SCRIPT as Python does, and explain the error or warning of PyTorch's that it meets.

    The card goes to stderr, after the traceback. What the script prints, and its exit code, stay the script's.
    """
    from course_utils.explain import passes
    from course_utils.explain.explanation import Explanation
    from course_utils.explain.warned import warnings_explained

    def tell(found: Explanation) -> None:
        print(f"\n{found}", file=sys.stderr)

    passes.remember()
    with warnings_explained(tell, _failed):
        error = run_script(script, arguments)
    if error is None:
        return
    sys.excepthook(type(error), error, error.__traceback__)
    try:
        from course_utils.explain.explaining import explained

        found = explained(error)
        if found is not None:
            tell(found)
    except Exception as own:
        _failed(own)
    raise SystemExit(1)


def run_script(script: Path, arguments: Sequence[str]) -> BaseException | None:
    """Run a script as `__main__`, with its own arguments and folder, and return what it raised.

    The traceback begins with the script's own lines. SystemExit and KeyboardInterrupt come through. A script that
    cannot be compiled gives its SyntaxError.
    """
    main = types.ModuleType("__main__")
    main.__file__ = str(script)
    main.__dict__["__builtins__"] = __builtins__
    sys.argv = [str(script), *arguments]
    sys.path.insert(0, str(script.resolve().parent))
    sys.modules["__main__"] = main
    try:
        exec(compile(script.read_bytes(), str(script), "exec"), main.__dict__)
    except Exception as error:
        step = error.__traceback__
        return error.with_traceback(step.tb_next if step is not None else None)
    return None


def _failed(error: Exception) -> None:
    print(f"course_utils could not explain this: its own code failed with {type(error).__name__}.", file=sys.stderr)
