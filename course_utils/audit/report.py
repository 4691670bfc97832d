"""The report of a watch: what it found, and how much it saw."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from course_utils.audit.finding import LEVELS, Finding
from course_utils.audit.sarif import as_sarif

# Fewer steps than these say little.
ENOUGH_STEPS = 3


@dataclass(frozen=True)
class Watched:
    """How much was seen: optimizer steps, backward passes, the codes looked for, and why others were not."""

    steps: int = 0
    backwards: int = 0
    checks: tuple[str, ...] = ()
    not_checked: Mapping[str, str] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        return {
            "steps": self.steps,
            "backwards": self.backwards,
            "checks": list(self.checks),
            "not_checked": [{"check": code, "why": why} for code, why in self.not_checked.items()],
        }


class AuditFailed(Exception):
    """A strict audit found something of level error or likely. `report` has all of it."""

    def __init__(self, report: Report) -> None:
        super().__init__(str(report))
        self.report = report


class Report:
    """What a watch found, the gravest first. Filled when the watch ends.

    `strict` says whether likely findings fail, `interrupted` whether the training did not come to its end: who catches
    its error below the watch sets it, since the watch cannot see it then.
    """

    def __init__(self) -> None:
        self.findings: tuple[Finding, ...] = ()
        self.watched = Watched()
        self.strict = False
        self.interrupted = False

    @property
    def codes(self) -> tuple[str, ...]:
        return tuple(finding.code for finding in self.findings)

    def failing(self, strict: bool | None = None) -> tuple[Finding, ...]:
        """Return the findings that count as failures: errors, and with `strict` (or the watch's own) likely ones."""
        levels = ("error", "likely") if (self.strict if strict is None else strict) else ("error",)
        return tuple(finding for finding in self.findings if finding.level in levels)

    def as_json(self) -> dict[str, Any]:
        """Return what `course audit --json` writes of it, without the script's error."""
        return {"findings": [finding.as_json() for finding in self.findings], "watched": self.watched.as_json()}

    def sarif(self) -> dict[str, Any]:
        """Return the findings in the Static Analysis Results Interchange Format, version 2.1.0."""
        return as_sarif(self.findings)

    def __str__(self) -> str:
        seen = self.watched
        steps = "1 step" if seen.steps == 1 else f"{seen.steps} steps"
        passes = "1 backward pass" if seen.backwards == 1 else f"{seen.backwards} backward passes"
        rows = [str(finding) for finding in self.findings] or ["nothing found"]
        end = f"watched {steps} and {passes}; {len(seen.checks)} checks ran"
        if seen.not_checked:
            end += f", {len(seen.not_checked)} could not: "
            end += "; ".join(f"{', '.join(codes)} ({why})" for why, codes in _by_reason(seen.not_checked).items())
        rows.append(end)
        if seen.steps < ENOUGH_STEPS:
            rows.append(f"fewer than {ENOUGH_STEPS} steps tell little: most checks compare several")
        return "\n\n".join(rows)

    def __repr__(self) -> str:
        counts = [(level, sum(finding.level == level for finding in self.findings)) for level in LEVELS]
        found = ", ".join(f"{count} {level}" for level, count in counts if count)
        return f"Report: {found or 'nothing found'} in {self.watched.steps} steps"

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(str(self))


def _by_reason(missed: Mapping[str, str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for code, why in missed.items():
        found.setdefault(why, []).append(code)
    return found
