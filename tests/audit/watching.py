"""Running a loop of the zoos under a watch."""

import contextlib
import io
import warnings

import torch

from course_utils.audit.report import Report
from course_utils.audit.watch import audit


def watched(function, **options) -> Report:
    """Run a loop, seeded and silent, and return what the watch says of it."""
    torch.manual_seed(0)
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()), audit(**options) as report:
        warnings.simplefilter("ignore")
        function()
    return report


def alarms(report: Report) -> list[str]:
    """Return the codes that are of level error or likely."""
    return [finding.code for finding in report.findings if finding.level != "note"]


def failures(report: Report) -> dict[str, str]:
    """Return the checks that failed by themselves."""
    return {code: why for code, why in report.watched.not_checked.items() if "failed" in why}
