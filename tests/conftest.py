"""Settings for the whole suite."""

import os
import tempfile
from pathlib import Path

import pytest

# No test and no notebook under test writes into the developer's own progress.
os.environ["COURSE_PROGRESS"] = str(Path(tempfile.mkdtemp(prefix="course-tests-")) / "progress.sqlite")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the mutation score of the checks."""
    tried = survived = 0
    for reports in terminalreporter.stats.values():
        for report in reports:
            properties = dict(getattr(report, "user_properties", ()))
            if getattr(report, "when", None) == "call":
                tried += int(properties.get("mutants", 0))
                survived += int(properties.get("survivors", 0))
    if tried:
        terminalreporter.write_line(
            f"mutation score of the checks: {100 * (tried - survived) / tried:.1f} % "
            f"({tried - survived} of {tried} wrong answers caught)"
        )
