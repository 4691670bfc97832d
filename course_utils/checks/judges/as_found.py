"""Whether everything around an answer is as it was."""

from __future__ import annotations

from course_utils.checks.data import Observation
from course_utils.checks.exercise import Finding


def as_found(seen: Observation) -> Finding:
    """Judge what an answer must leave as it found it: modes, flags, hooks, settings."""
    left = seen["left"]
    named = f": {', '.join(map(str, left))}" if isinstance(left, list) and left else ""
    return Finding("left", left == [], f"After your function, something is not as it was before{named}.")
