"""Whether a result carries no graph, and everything is as it was."""

from __future__ import annotations

from collections.abc import Iterator

from course_utils.checks.compare import listed
from course_utils.checks.data import Observation
from course_utils.checks.exercise import Finding


def clean(seen: Observation, names: tuple[str, ...]) -> Iterator[Finding]:
    """Find whether the result carries no graph and the given tensors are as they were."""
    yield no_graph(seen)
    yield Finding("changed", not seen["changed"], f"Your function changed the numbers in {listed(seen['changed'])}.")
    yield Finding(
        "requiring",
        not seen["requiring"],
        f"Your function changed requires_grad of {listed(seen['requiring'])}. Work on a detached tensor of your own.",
    )
    yield Finding(
        "graded", not seen["graded"], f"Your function changed .grad of {listed(seen['graded'])}. Leave it as it was."
    )
    text = f"f has a parameter of its own, and your function changed {listed(seen['own parameter'])}."
    yield Finding("own parameter", seen["own parameter"] == [], text)
    yield untouched(seen)


def no_graph(seen: Observation) -> Finding:
    """Find whether no pass can begin at the result."""
    text = "What you returned requires a gradient. Nobody differentiates it again, and a graph behind it keeps memory."
    return Finding("recorded", not seen["recorded"], text)


def untouched(seen: Observation) -> Finding:
    """Find whether everything around the answer is as it was."""
    return Finding("left", not seen["left"], f"Your function left something changed: {listed(seen['left'])}.")
