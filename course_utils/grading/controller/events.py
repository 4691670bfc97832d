"""The controller's end of the line of events, which a child writes as its observers see things."""

from __future__ import annotations

import contextlib
import fcntl
import os
import socket
from collections import Counter
from collections.abc import Mapping

ROOM = 1 << 20  # bytes, which hold 20,000 events of one case; a right answer has hundreds
MOST = ROOM // 36  # lines; none is shorter, with its token, its number and a name
MAX_NAME = 40  # characters of what was seen
MAX_KINDS = 20
FORGED = "what no observer tells"


class Events:
    """The events of one child, as numbers of each kind for a case. To be closed."""

    def __init__(self, line: socket.socket) -> None:
        """Make the line, and send its other end to the child before any request. Raises OSError."""
        self._read, write = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        try:
            with contextlib.suppress(OSError):  # a user may have so many large ones only; a small one does, too
                fcntl.fcntl(write, fcntl.F_SETPIPE_SZ, ROOM)
            socket.send_fds(line, [b"e"], [write])
        except BaseException:
            self.close()
            raise
        finally:
            os.close(write)

    def of_case(self, token: bytes) -> Mapping[str, int]:
        """Return how often what was told since the last call, which was in the case of this token.

        An event of another token, a number that is missing or comes twice, and a kind beyond MAX_KINDS count as FORGED.
        So do all of them where they are more than fit: none is looked at then, as a look takes time of all submissions.
        """
        numbers: set[int] = set()
        told: Counter[str] = Counter()
        data = self._told()
        if (lines := data.count(b"\n")) > MOST:
            return {FORGED: lines}
        for line in data.decode("ascii", "replace").removesuffix("\n").split("\n") if data else ():
            parts = line.split(" ", 2)
            number = int(parts[1]) if len(parts) == 3 and parts[1].isdecimal() and len(parts[1]) < 9 else 0
            if not number or parts[0] != token.hex() or number in numbers or not _named(parts[2], told):
                told[FORGED] += 1
            else:
                told[parts[2]] += 1
                numbers.add(number)
        if numbers and max(numbers) != len(numbers):
            told[FORGED] += 1
        return dict(told)

    def close(self) -> None:
        """Let go of the line."""
        os.close(self._read)

    def _told(self) -> bytearray:
        data = bytearray()
        while len(data) < ROOM:
            try:
                part = os.read(self._read, ROOM)
            except BlockingIOError:
                break
            if not part:
                break
            data += part
        return data


def _named(what: str, told: Mapping[str, int]) -> bool:
    """Say whether a name may be an observer's: it is shown to teachers."""
    return 0 < len(what) <= MAX_NAME and what.isprintable() and (what in told or len(told) < MAX_KINDS)
