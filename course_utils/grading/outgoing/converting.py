"""Trying Markdown of somebody else in a process that ends where it takes long: a converter itself has no limit."""

from __future__ import annotations

import contextlib
import os
import resource
import signal
import subprocess
import sys
from collections.abc import Sequence
from types import TracebackType

import msgspec

from course_utils.grading.outgoing.inert import MAX_MARKDOWN, converts, inert
from course_utils.place import PACKAGE

SECONDS = 5.0  # of computing, for all Markdown of a notebook
WALL = 12  # times as many of the clock, on a machine that others use
MEMORY = 1_000_000_000  # bytes, beside what the converter itself has
_PROGRAM = "course_utils.grading.outgoing.converting"
_END = b"end\n"
_TEXTS = msgspec.json.Decoder(list[str])
_TEXT = msgspec.json.Decoder(str | None)


class Converter:
    """A process that tries Markdown. It starts with the first text, and forks a child for each notebook's."""

    def __init__(self, seconds: float = SECONDS) -> None:
        self._seconds = seconds
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Converter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def converted(self, texts: Sequence[str]) -> list[str | None]:
        """Return each text as `inert`, and None where nbconvert makes no HTML of it.

        What comes behind a text that took too long has not been tried, and is None, too.
        """
        if not texts:
            return []
        order = msgspec.json.encode(list(texts)) + b"\n"
        try:
            lines = self._said(order)
            if lines is None:  # the process was ended from outside
                lines = self._said(order) or []
        except BaseException:
            self.close()
            raise
        found: list[str | None] = []
        with contextlib.suppress(msgspec.DecodeError):  # it was ended within a line
            found += map(_TEXT.decode, lines)
        return [*found, *[None] * len(texts)][: len(texts)]

    def close(self) -> None:
        """End the process. A later text starts another one."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait()
            for stream in (process.stdin, process.stdout):
                if stream is not None:
                    with contextlib.suppress(OSError):  # what was written, and is read by nobody
                        stream.close()

    def _said(self, order: bytes) -> list[bytes] | None:
        """Return the lines on an order; None where the process is gone."""
        if self._process is None:
            self._process = _started(self._seconds)
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        lines: list[bytes] = []
        try:
            self._process.stdin.write(order)
            self._process.stdin.flush()
            while (line := self._process.stdout.readline()) != _END:
                if not line:
                    raise EOFError
                lines += [line] if line.strip() else []
        except (OSError, EOFError):
            self.close()
            return None
        return lines


def _started(seconds: float) -> subprocess.Popen[bytes]:
    paths = [str(PACKAGE.parent), *(path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path)]
    return subprocess.Popen(
        [sys.executable, "-P", "-m", _PROGRAM, str(seconds)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
        cwd="/",
        start_new_session=True,  # Ctrl-C is for who grades
    )


def main(seconds: float) -> None:
    """Read lines of texts, and write a line on each text and one at the end, until nobody is there."""
    from nbconvert.filters import markdown2html

    answers = os.dup(1)
    os.dup2(2, 1)  # what the converter prints is no answer
    markdown2html("# A title")  # what it needs is loaded here, at no notebook's cost
    with os.fdopen(answers, "wb", buffering=0) as out:
        for order in sys.stdin.buffer:
            child = os.fork()
            if child == 0:
                _child(order, out.fileno(), seconds)
            os.waitpid(child, 0)
            out.write(b"\n" + _END)


def _child(order: bytes, out: int, seconds: float) -> None:
    try:
        signal.setitimer(signal.ITIMER_PROF, seconds)  # these end it, wherever it is
        signal.setitimer(signal.ITIMER_REAL, WALL * seconds)
        if sys.platform == "linux":
            _, hard = resource.getrlimit(resource.RLIMIT_AS)
            most = _address_space() + MEMORY
            resource.setrlimit(resource.RLIMIT_AS, (most if hard == resource.RLIM_INFINITY else min(most, hard), hard))
        with os.fdopen(out, "wb", closefd=False) as lines:
            for text in _TEXTS.decode(order):
                lines.write(msgspec.json.encode(tried(text)) + b"\n")
                lines.flush()
    finally:
        os._exit(0)


def tried(text: str) -> str | None:
    """Return Markdown as `inert`; None where nbconvert makes no HTML of it, or it is too long to try."""
    if len(text) > MAX_MARKDOWN:  # before anything looks at it
        return None
    harmless = inert(text)
    return harmless if converts(harmless) else None


def _address_space() -> int:
    with open("/proc/self/statm", "rb") as file:  # noqa: PTH123 as short as it can be
        return int(file.read().split()[0]) * resource.getpagesize()


if __name__ == "__main__":
    main(float(sys.argv[1]))
