"""A process that judges as ever, but does what a cell, or a warning beside an answer, says: judges gone wrong."""

import os
import signal
import sys
import time
from collections.abc import Sequence

from course_utils.grading.controller import judging, judging_child, orders
from course_utils.grading.controller.posing import Question

LONG = 10**12

DEEDS = {
    "compute in C": lambda: sum(range(LONG)),
    "wait": lambda: time.sleep(60),
    "fill": lambda: bytearray(10**12),
    "fill a little": lambda: bytearray(200_000_000),
    "leave": lambda: os._exit(3),
    "break": lambda: os.kill(os.getpid(), signal.SIGSEGV),
    "be killed": lambda: os.kill(os.getpid(), signal.SIGKILL),
    "write": lambda: open("/tmp/written-by-a-judge", "w").write("x" * 10_000),  # noqa: PTH123, SIM115
}


def judge(order: orders.Judge) -> orders.Verdict | orders.Failed:
    try:
        for deed in order.warnings:
            DEEDS[deed]()
    except MemoryError:
        return orders.Failed("memory", "to judge what was observed takes too much memory.")
    except OSError as error:
        return orders.Failed("crashed", f"{error.strerror}.")
    return real(order)


def flags_of(cells: Sequence[tuple[int, str]], exercises: Sequence[Question]) -> dict[str, tuple[str, ...]]:
    for _, source in cells:
        DEEDS[source]()
    return {}


if __name__ == "__main__":
    real = judging.judge
    judging.judge = judge
    judging_child.flags_of = flags_of
    judging_child.main(int(sys.argv[1]))
