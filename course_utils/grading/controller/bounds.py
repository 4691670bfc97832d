"""What an observation may be made of, looked at before it is decoded: decoding is one call in C that nothing can stop.

The numbers of an int collide in a dict as its author wants: a map of 2.7 MB kept a decoder busy for half a minute.
Texts do not, as Python hashes them with a secret. So texts alone may be keys.
"""

from __future__ import annotations

from typing import Literal

MAX_VALUES = 300_000  # a list of as many numbers is looked at in 0.1 s
MAX_DEPTH = 64  # three times as deep as answers cross
TIMED_OUT = 4  # the code of the extension in which `TimedOut` crosses

_Kind = Literal["plain", "text", "list", "map"]


class Unbounded(ValueError):
    """A message holds what no observation does. The message says what."""


class TooMany(ValueError):
    """A message holds more values than are judged."""


def look(message: bytes) -> None:
    """Look at the heads of all values in a message of MessagePack, without building any.

    What is in an extension is of a fixed type, and not looked at. A message that ends too early passes: decoding tells.

    Raises Unbounded for a key that is no text and for values within values beyond MAX_DEPTH, and TooMany for more than
    MAX_VALUES.
    """
    position = values = 0
    left = [1]  # values that each open list or map still holds, the outermost first
    keyed = [False]
    while left:
        if not left[-1]:
            left.pop()
            keyed.pop()
            continue
        if position >= len(message):
            return
        kind, width, size = _HEADS[message[position]]
        if keyed[-1] and left[-1] % 2 == 0 and kind != "text":
            raise Unbounded("a key that is no text")
        left[-1] -= 1
        values += 1
        if values > MAX_VALUES:
            raise TooMany(f"more than {MAX_VALUES:,} values")
        position += 1
        if width:
            size += int.from_bytes(message[position : position + width], "big")
            position += width
        if kind in ("plain", "text"):
            position += size
            continue
        if len(left) > MAX_DEPTH:
            raise Unbounded(f"values within values, deeper than {MAX_DEPTH}")
        left.append(2 * size if kind == "map" else size)
        keyed.append(kind == "map")


def tells_of_time(message: bytes | None) -> bool:
    """Say whether a message claims, by its first bytes, that the code ran out of time. The judge decodes it."""
    if not message:
        return False
    _, width, _ = _HEADS[message[0]]
    is_extension = 0xC7 <= message[0] <= 0xC9 or 0xD4 <= message[0] <= 0xD8
    return is_extension and message[1 + width : 2 + width] == bytes([TIMED_OUT])


def _head(first: int) -> tuple[_Kind, int, int]:
    """Return what a first byte begins, how many bytes say its size, and the size without those.

    The table is that of https://github.com/msgpack/msgpack/blob/master/spec.md, "Formats".
    """
    if 0x80 <= first <= 0x8F:
        return "map", 0, first & 0x0F
    if 0x90 <= first <= 0x9F:
        return "list", 0, first & 0x0F
    if 0xA0 <= first <= 0xBF:
        return "text", 0, first & 0x1F
    if first in (0xDC, 0xDD):
        return "list", 2 << (first - 0xDC), 0
    if first in (0xDE, 0xDF):
        return "map", 2 << (first - 0xDE), 0
    if 0xD9 <= first <= 0xDB:
        return "text", 1 << (first - 0xD9), 0
    if 0xC4 <= first <= 0xC6:  # bytes
        return "plain", 1 << (first - 0xC4), 0
    if 0xC7 <= first <= 0xC9:  # an extension: its code, after the size
        return "plain", 1 << (first - 0xC7), 1
    if 0xD4 <= first <= 0xD8:  # an extension of fixed size
        return "plain", 0, 1 + (1 << (first - 0xD4))
    numbers = {0xCA: 4, 0xCB: 8, 0xCC: 1, 0xCD: 2, 0xCE: 4, 0xCF: 8, 0xD0: 1, 0xD1: 2, 0xD2: 4, 0xD3: 8}
    return "plain", 0, numbers.get(first, 0)


_HEADS = tuple(_head(first) for first in range(256))
