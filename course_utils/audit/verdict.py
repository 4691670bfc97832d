"""From what the checks found to what is said: one cause hides what follows from it."""

from __future__ import annotations

from collections.abc import Iterable

from course_utils.audit.check import Found
from course_utils.audit.finding import Finding
from course_utils.audit.rules import RULES


def without_consequences(found: Iterable[Found]) -> list[Finding]:
    """Return the findings that no other explains, each place once.

    A finding explains those that its rule names, where both are about the same things, or where one of them is
    about nothing in particular.
    """
    found = list(found)
    kept: dict[tuple[str, str, int], Finding] = {}
    for one in found:
        if not any(_explains(other, one) for other in found if other is not one):
            place = (one.finding.code, one.finding.file, one.finding.line)
            kept.setdefault(place, one.finding)
    return list(kept.values())


def _explains(cause: Found, effect: Found) -> bool:
    if effect.finding.code not in RULES[cause.finding.code].hides or cause.finding.level == "note":
        return False
    return not cause.about or not effect.about or bool(cause.about & effect.about)
