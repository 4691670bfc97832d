"""Findings for editors and continuous integration."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from course_utils.audit.finding import Finding

_LEVELS = {"error": "error", "likely": "warning", "note": "note"}


def as_sarif(findings: Iterable[Finding]) -> dict[str, Any]:
    """Return findings in the Static Analysis Results Interchange Format, version 2.1.0 (OASIS)."""
    findings = list(findings)
    rules = {finding.code: finding.section for finding in findings}
    return {
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [
            {
                "tool": {
                    "driver": {
                        "name": "course audit",
                        "rules": [
                            {"id": code, "help": {"text": f"taught in {section}"}} for code, section in rules.items()
                        ],
                    }
                },
                "results": [_result(finding) for finding in findings],
            }
        ],
    }


def _result(finding: Finding) -> dict[str, Any]:
    result: dict[str, Any] = {
        "ruleId": finding.code,
        "level": _LEVELS[finding.level],
        "message": {"text": f"{finding.headline}. {finding.why}\nFix: {finding.fix}"},
        "occurrenceCount": finding.times,
    }
    if finding.file:
        result["locations"] = [{"physicalLocation": _at(finding.file, finding.line)}]
    if finding.where:
        result["relatedLocations"] = [
            {"physicalLocation": _at(place.file, place.line), "message": {"text": place.role}}
            for place in finding.where
        ]
    return result


def _at(file: str, line: int) -> dict[str, Any]:
    path = Path(file)
    uri = path.as_uri() if path.is_absolute() else path.as_posix()
    return {"artifactLocation": {"uri": uri}, "region": {"startLine": line}}
