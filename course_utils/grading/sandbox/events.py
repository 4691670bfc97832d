"""The child's end of the line of events: what an observer sees goes out as it happens, and cannot be taken back."""

from __future__ import annotations

import contextlib
import itertools
import os
import socket
from collections.abc import Iterator


class Teller:
    """Writes an event for each thing seen: the case's token, a number that counts them from 1, and what it was."""

    def __init__(self, line: socket.socket) -> None:
        """Receive the line of events over the line of requests, where the controller sends it first."""
        _, (self._line,), _, _ = socket.recv_fds(line, 1, 1)
        self._token = ""
        self._numbers: Iterator[int] = itertools.count(1)
        self._write = os.write

    def begin(self, token: bytes) -> None:
        """Begin a case."""
        self._token, self._numbers = token.hex(), itertools.count(1)

    def tell(self, what: str) -> None:
        """Write an event. One that the line has no room for is lost, and its number is missed."""
        number = next(self._numbers)
        with contextlib.suppress(OSError):
            self._write(self._line, f"{self._token} {number} {what}\n".encode())
