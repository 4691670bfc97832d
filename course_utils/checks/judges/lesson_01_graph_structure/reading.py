"""What judges of this lesson ask of lists of nodes and leaves, and say about them."""

from __future__ import annotations

from collections import Counter

from course_utils.checks.compare import counted, listed
from course_utils.checks.data import Observation, Value
from course_utils.checks.exercise import Finding, Misconception


def no_passes(seen: Observation) -> Finding:
    count = seen["passes"]
    ran = counted(count)
    return Finding("passes", not count, f"Your function ran {ran}. The graph can be read without running it.")


def set_of(items: list[Value]) -> set[int]:
    return {item for item in items if type(item) is int}


def tagged(item: Value, tag: str) -> bool:
    return isinstance(item, list) and len(item) == 2 and item[0] == tag


def abridged(names: list[str], most: int = 4) -> str:
    counts = [f"{count} {name}" if count > 1 else name for name, count in Counter(names).items()]
    return listed(counts if len(counts) <= most else [*counts[:most], f"{len(counts) - most} more"])


def recursion(what: str) -> Misconception:
    """Make the misconception of who walks by calls within calls; `what` is what their function does."""
    message = (
        f"Your {what} calls itself once for each node on the way. Python allows about a thousand calls inside each "
        "other, unless it is told otherwise, and this chain is longer. Keep a list of what is still to be looked at."
    )
    chain = ("a chain of 3,500 operations",)
    return Misconception("recursion", message, ended=("RecursionError",), ended_in=chain)


def edge_refused(what: str, where: str = "a tensor without a graph") -> Misconception:
    """Make the misconception of who asks a tensor without a graph for its edge; `what` is right there.

    Who cuts off every tensor asks everywhere, and not in the case `where` alone.
    """
    message = (
        "You ask a tensor for its edge or node where it has none: its requires_grad is False, and get_gradient_edge "
        f"raises. Return {what} there, before you ask."
    )
    return Misconception(
        "no edge", message, ended=("RuntimeError",), ended_in=(where,), ended_saying="get the gradient edge"
    )
