"""What judges of this lesson ask of lists of nodes and leaves, and say about them."""

from __future__ import annotations

from collections import Counter

from course_utils.checks.compare import listed
from course_utils.checks.data import Observation, Value
from course_utils.checks.exercise import Finding


def no_passes(seen: Observation) -> Finding:
    count = seen["passes"]
    passes = f"{count} backward pass{'es' if count != 1 else ''}"
    return Finding("passes", not count, f"Your function ran {passes}. The graph can be read without running it.")


def set_of(items: list[Value]) -> set[int]:
    return {item for item in items if type(item) is int}


def tagged(item: Value, tag: str) -> bool:
    return isinstance(item, list) and len(item) == 2 and item[0] == tag


def abridged(names: list[str], most: int = 4) -> str:
    counts = [f"{count} {name}" if count > 1 else name for name, count in Counter(names).items()]
    return listed(counts if len(counts) <= most else [*counts[:most], f"{len(counts) - most} more"])
