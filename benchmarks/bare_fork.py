"""The same cells and observations in a bare forked child: no sandbox, no controller, no verdict. Run by grading.py.

Reads a submission's cells and the encoded cases of its exercises from a file, as MessagePack. Then each line of input
is answered by the seconds that one more child took, from before the fork until its observations had arrived.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import msgspec

from course_utils.checks.data import Case, decode, encode
from course_utils.checks.examine import observe
from course_utils.checks.registry import exercises, observer_for
from course_utils.grading.sandbox import learner
from course_utils.grading.sandbox.threads import ThreadLimit
from course_utils.grading.sandbox.warm import Warmth
from course_utils.grading.wire import Run

SECONDS = 5.0


class Order(msgspec.Struct, frozen=True):
    """The sources of a submission's cells, and for each exercise its cases: their names and what is given, encoded."""

    sources: tuple[str, ...]
    posed: tuple[tuple[str, tuple[tuple[str, bytes], ...]], ...]


def main(path: str) -> None:
    """Answer each line of input by the seconds of one child."""
    order = msgspec.msgpack.decode(Path(path).read_bytes(), type=Order)
    observers = {name: observer_for(exercises()[name]) for name, _ in order.posed}
    warmth = Warmth()
    warmth.whole()
    print("warm", flush=True)
    for _ in sys.stdin:
        start = time.perf_counter()
        out, into = os.pipe()
        if os.fork() == 0:
            code = 1  # until all is observed
            try:
                learner._run(warmth.shell, Run(b"", order.sources, SECONDS), ThreadLimit())
                for name, cases in order.posed:
                    answer = warmth.shell.user_ns.get(name, ...)
                    for case, given in cases:
                        seen, _ = observe(observers[name], answer, Case(case, decode(given)), 1, SECONDS)
                        message = encode(seen)
                        os.write(into, len(message).to_bytes(4, "big"))
                        os.write(into, message)
                code = 0
            finally:
                os._exit(code)
        os.close(into)
        while os.read(out, 1 << 20):
            pass
        os.close(out)
        _, status = os.wait()
        if status:
            raise SystemExit("the bare child did not come to its end: what it does differs from the grader's by now")
        print(time.perf_counter() - start, flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
