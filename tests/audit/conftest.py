"""Prints how many faults were found, and how many right loops were left in peace."""

import pytest


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    counts = dict.fromkeys(("faults", "found", "planted", "planted_found", "right", "false"), 0)
    for reports in terminalreporter.stats.values():
        for report in reports:
            if getattr(report, "when", None) == "call":
                for name, value in report.user_properties:
                    if name.startswith("audit_"):
                        counts[name.removeprefix("audit_")] += value
    if counts["faults"]:
        terminalreporter.write_line(
            f"audit: {counts['found']} of {counts['faults']} faulty loops found at cause and line, "
            f"{counts['planted_found']} of {counts['planted']} planted faults; "
            f"{counts['false']} of {counts['right']} right loops raised an alarm"
        )
