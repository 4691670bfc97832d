"""What the course costs a learner and a grader: the import, a question, and each check."""

from __future__ import annotations

import contextlib
import io
import statistics
import subprocess
import sys
from collections.abc import Iterator

from benchmarks.timing import Row, medians, seconds
from course_utils.checks.examine import examine
from course_utils.checks.registry import exercises, observer_for
from tests.answers import RIGHT

_IMPORT = "import time, torch\nstart = time.perf_counter()\nimport course_utils\n{}\nprint(time.perf_counter() - start)"


def rows() -> Iterator[Row]:
    bare = _import_seconds("")
    yield Row("`import course_utils` after `import torch`", f"{bare * 1e3:.1f} ms", "under 60 ms", bare < 0.06)
    used = _import_seconds("course_utils.check, course_utils.trace, course_utils.saved")
    yield Row("the same, with `check`, `trace` and `saved` loaded", f"{used * 1e3:.1f} ms", "", True)
    asked = _asking_seconds()
    yield Row("`course ask`, from the command to its end", f"{asked:.2f} s", "under 0.3 s", asked < 0.3)
    times = verdict_seconds()
    typical = statistics.median(times.values())
    slowest = max(times, key=times.__getitem__)
    what = f"a verdict in a warm kernel, median of {len(times)} exercises"
    yield Row(what, f"{typical * 1e3:.1f} ms", "under 30 ms", typical < 0.03)
    worst = times[slowest]
    yield Row(f"the slowest verdict, `{slowest}`", f"{worst * 1e3:.0f} ms", "under 500 ms", worst < 0.5)


def verdict_seconds() -> dict[str, float]:
    """Return for each exercise the median time from a right answer to its verdict."""
    calls = {}
    for name, exercise in exercises().items():
        observer, answer = observer_for(exercise), RIGHT[name][0]
        calls[name] = lambda exercise=exercise, observer=observer, answer=answer: examine(exercise, observer, answer)
    with contextlib.redirect_stdout(io.StringIO()):
        return medians(calls, rounds=15)


def _import_seconds(then: str) -> float:
    """Return the median over fresh processes."""
    command = [sys.executable, "-c", _IMPORT.format(then)]
    runs = [subprocess.run(command, capture_output=True, text=True, check=True) for _ in range(5)]
    return statistics.median(float(run.stdout) for run in runs)


def _asking_seconds() -> float:
    """Return the median over fresh processes."""
    command = [sys.executable, "-m", "course_utils", "ask", "why is my grad None"]
    return statistics.median(
        seconds(lambda: subprocess.run(command, capture_output=True, check=True)) for _ in range(9)
    )
