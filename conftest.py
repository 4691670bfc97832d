"""Settings for the whole suite, notebooks included."""

import os
import tempfile
from pathlib import Path

import pytest

_SCRATCH = Path(tempfile.mkdtemp(prefix="course-tests-"))

# No test writes into the developer's own progress.
os.environ["COURSE_PROGRESS"] = str(_SCRATCH / "progress.sqlite")


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Let each notebook start without progress, as `course build` does."""
    if item.path.suffix == ".ipynb":
        os.environ["COURSE_PROGRESS"] = str(_SCRATCH / f"{item.path.parent.name}-{item.path.stem}.sqlite")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the mutation score of the checks."""
    tried = survived = 0
    for reports in terminalreporter.stats.values():
        for report in reports:
            if getattr(report, "when", None) == "call":
                properties = dict(report.user_properties)
                tried += properties.get("mutants", 0)
                survived += properties.get("survivors", 0)
    if tried:
        terminalreporter.write_line(
            f"mutation score of the checks: {100 * (tried - survived) / tried:.1f} % "
            f"({tried - survived} of {tried} wrong answers caught)"
        )
