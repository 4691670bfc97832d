"""Whether inputs are as they were."""

from __future__ import annotations

from collections.abc import Iterator

from course_utils.checks.compare import listed
from course_utils.checks.data import Observation
from course_utils.checks.exercise import Finding


def left_alone(seen: Observation) -> Iterator[Finding]:
    """Find whether the inputs have the shape, numbers, gradients and flag that they were given with."""
    names = seen["other"]
    yield Finding("input", not names, f"Your function changed the shape or the dtype of {listed(names)}.")
    names = seen["changed"]
    yield Finding("input", not names, f"Your function changed the numbers in {listed(names)}.")
    names = seen["graded"]
    yield Finding("grad", not names, f"Your function changed .grad of {listed(names)}.")
    names = seen["switched on"]
    they = "it" if len(names) == 1 else "they"
    message = f"Your function left {listed(names)} requiring grad; before, {they} did not."
    yield Finding("requires_grad", not names, message)
    names = seen["switched off"]
    they = "it" if len(names) == 1 else "they"
    message = f"Your function left {listed(names)} without requires_grad; before, {they} required grad."
    yield Finding("requires_grad", not names, message)
