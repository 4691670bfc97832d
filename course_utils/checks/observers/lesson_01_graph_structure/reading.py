"""Lists of nodes and leaves as plain data."""

from __future__ import annotations

from collections.abc import Callable, Sequence, Set

from course_utils.checks.data import Value, plain


def items(result: object, place: Callable[[object], Value]) -> Value:
    """Describe each item of a returned sequence or set; anything else as plain data that is no list."""
    if isinstance(result, Sequence | Set) and not isinstance(result, str | bytes | bytearray):
        return [place(item) for item in result]
    return plain(result)
