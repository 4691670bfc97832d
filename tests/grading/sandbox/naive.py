"""Graders as they are usually written: the learner's cells run in the process that judges.

Each takes an attack's cell and returns the points that it gives, of 1. The cells of `FORGING` must win here:
so what they fail at in ours is our defence, and not a mistake of theirs. Run as a program, this prints who won what.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import pickle
import re
import resource
import select
import signal
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import torch
from IPython.core.interactiveshell import InteractiveShell
from traitlets.config import Config

from course_utils.checks import examine, registry
from course_utils.checks.timelimit import time_limit
from tests.grading.sandbox import attacks
from tests.grading.sandbox.forging import FORGING
from tests.grading.submissions import RIGHT, WRONG

FIRST = "import torch\nfrom course_utils import check\n"
REFERENCE = "def slope(x):\n    found = 3 * x.detach() ** 2\n    return found\n"
SHOWING = """
import reference
x = torch.tensor([1.0, 2.0, 3.0])
right = reference.slope(x)
got = slope(x.clone())
float(isinstance(got, torch.Tensor) and got.shape == right.shape and bool((got == right).all()))
"""
SECONDS, SECONDS_TO_HANG = 20.0, 2.5


def beside(cell: str) -> float:
    """The judge is called where the cells ran, and its verdict is read."""

    def judge(into: int) -> None:
        shell = _shell(cell)
        exercise = registry.exercise_called("slope")
        verdict = examine.examine(exercise, registry.observer_for(exercise), shell.user_ns.get("slope", ...))
        os.write(into, b"%d" % verdict.score)

    return float(_forked(judge) or 0)


def displayed(cell: str) -> float:
    """As nbgrader does: points are what a cell of tests displays; none where it fails, all where it shows nothing."""
    text = _forked(lambda into: _in_a_notebook(into, cell, SHOWING)).decode(errors="replace")
    shown = re.findall(r"^Out\[\d+\]: (\S+)$", text, re.MULTILINE)
    if "Error" in text:
        return 0.0
    return float(shown[-1]) if shown else 1.0


def told(cell: str) -> float:
    """The learner's own cell with `check` runs once more, and must not show that it failed."""
    text = _forked(lambda into: _in_a_notebook(into, cell, "check('slope', slope)")).decode(errors="replace")
    return float("CheckFailed" not in text and "Error" not in text)


def sent(cell: str) -> float:
    """The process of the learner judges, and sends its result as a pickle through a pipe."""

    def judge(into: int) -> None:
        message = pickle.loads(_forked(lambda line: _send_result(line, cell)))
        os.write(into, b"%d" % int(message["points"]))

    return float(_forked(judge) or 0)


GRADERS: dict[str, Callable[[str], float]] = {item.__name__: item for item in (beside, displayed, told, sent)}


def survives(cell: str) -> bool:
    """Say whether a process that runs a cell, with a time limit of its own, can tell about it afterwards.

    Memory and time are limited from outside, for this machine's sake.
    """

    def run(into: int) -> None:
        before = _most_memory()
        resource.setrlimit(resource.RLIMIT_AS, (before + 100_000_000,) * 2)
        try:
            with time_limit(1.0):
                _shell(cell)
        finally:
            threading._shutdown()  # type: ignore[attr-defined]
            os.write(into, b"1" if _most_memory() - before < 70_000_000 else b"full")

    return _forked(run, SECONDS_TO_HANG) == b"1"


def _most_memory() -> int:
    """Return the most bytes of addresses that this process ever had."""
    (line,) = re.findall(r"VmPeak:\s*(\d+) kB", Path("/proc/self/status").read_text())
    return int(line) * 1024


def _send_result(line: int, cell: str) -> None:
    os.closerange(3, line)  # those of the judge
    shell = _shell(cell)
    points, got = 0.0, None
    with contextlib.suppress(Exception):
        import reference  # type: ignore[import-not-found]

        x = torch.tensor([1.0, 2.0, 3.0])
        got = shell.user_ns["slope"](x)
        points = float(torch.allclose(got, reference.slope(x)))
    os.write(line, pickle.dumps({"points": points, "returned": got}))


def _in_a_notebook(into: int, cell: str, test: str) -> None:
    os.dup2(into, 1)
    os.dup2(into, 2)
    sys.stdout = sys.stderr = os.fdopen(1, "w", buffering=1, closefd=False)
    _shell(cell).run_cell(test)
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    sys.stdout.flush()


def _shell(*cells: str) -> InteractiveShell:
    shell = InteractiveShell.instance()
    for cell in (FIRST, *cells):
        shell.run_cell(cell, store_history=True)
    return shell


def _forked(run: Callable[[int], None], seconds: float = SECONDS) -> bytes:
    """Return what `run` writes in a process of its own, until that ends; it is ended after some seconds."""
    out, into = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.close(out)
            run(into)
        finally:
            os._exit(0)
    os.close(into)
    parts, end = [], time.monotonic() + seconds
    while select.select([out], [], [], max(end - time.monotonic(), 0))[0] and (part := os.read(out, 65536)):
        parts.append(part)
    os.close(out)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return b"".join(parts)


def main() -> None:
    """Print, as JSON, the points of each forging attack, of an honest and a wrong answer, and who survives what."""
    folder = sys.argv[1]
    Path(folder, "reference.py").write_text(REFERENCE)
    os.chdir(folder)
    sys.path.append(folder)
    torch.set_num_threads(1)
    config = Config()
    config.HistoryManager.enabled = False
    config.InteractiveShell.colors = "nocolor"
    InteractiveShell.instance(config=config).run_cell("1 / 0")  # loads what shows errors, before the forks
    exercise = registry.exercise_called("slope")
    examine.examine(exercise, registry.observer_for(exercise), lambda x: x)
    points = {
        "honest": {name: grader(RIGHT) for name, grader in GRADERS.items()},
        "wrong": {name: grader(WRONG) for name, grader in GRADERS.items()},
        "attacks": {name: GRADERS[attack.beats](attack.cell) for name, attack in FORGING.items()},
        "survives": {name: survives(attacks.ENDING[name][0]) for name in attacks.DEADLY},
        "survives honest": survives(RIGHT),
    }
    print(json.dumps(points))


if __name__ == "__main__":
    main()
