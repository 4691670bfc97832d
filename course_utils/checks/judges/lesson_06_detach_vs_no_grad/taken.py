"""What is told of a result whose gradient is not there."""

from __future__ import annotations

from course_utils.checks.data import Observation

NO_GRADIENT = (
    "No gradient could be taken of what you returned: it is no single number, a pass has gone through its graph, or a "
    "tensor that its graph needs was written to."
)


def alone(seen: Observation) -> bool:
    """Say whether what was returned is one thing. Of several in a list or a dict nobody knows which has a graph."""
    return not isinstance(seen["returned"], list | dict)
