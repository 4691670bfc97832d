"""Cells that start threads without end: that costs the cell, or the submission, and nobody else."""

import _thread
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from course_utils.grading.controller import machine
from course_utils.grading.controller.pool import Grader
from course_utils.grading.sandbox import landlock
from course_utils.grading.sandbox.threads import ThreadLimit, TooManyThreads
from course_utils.grading.submission import Result
from course_utils.grading.wire import MAX_THREADS, Limits, Mode
from tests.grading.submissions import RIGHT, needs_a_sandbox, submission, total_of

ROOT = Path(__file__).parents[3]
START = "import threading, time\nthreading.stack_size(32768)\n"
SLEEPING = START + "for n in range(500): threading.Thread(target=time.sleep, args=(99,), daemon=True).start()\n"
CAUGHT = START + "try:\n    while True: threading.Thread(target=time.sleep, args=(99,), daemon=True).start()\n"
CAUGHT += "except RuntimeError: pass\n"
SPINNING = START + "def spin():\n    while True: pass\n"
SPINNING += "for n in range(500): threading.Thread(target=spin, daemon=True).start()\n"
# 40 in each of two cells are no cell's too many.
FEW = START + "for n in range(40): threading.Thread(target=time.sleep, args=(99,), daemon=True).start()\n"
AROUND = """
import ctypes
library, attributes = ctypes.CDLL(None), ctypes.create_string_buffer(256)
library.pthread_attr_init(attributes)
library.pthread_attr_setstacksize(attributes, ctypes.c_size_t(32768))
for n in range(50_000):
    library.pthread_create(ctypes.byref(ctypes.c_ulong()), attributes, library.sleep, ctypes.c_void_p(99))
"""
# While it runs, some of these start a thread at any moment.
NEIGHBOUR = """
import threading, time
failed = 0
for n in range(300):
    try:
        thread = threading.Thread(target=time.sleep, args=(0.001,))
        thread.start()
        thread.join()
    except RuntimeError:
        failed += 1
    time.sleep(0.002)
first_gradient = 8 if not failed else 15
"""


@pytest.fixture(scope="module")
def grader() -> Iterator[Grader]:
    found = Grader()
    yield found
    found.close()


def graded(grader: Grader, *cells: str, mode: Mode | None = None) -> Result:
    return grader.grade(submission("s", *cells), Limits(mode or machine.available(), 30, 500_000_000))


@needs_a_sandbox
@pytest.mark.parametrize("cell", [SLEEPING, CAUGHT])
def test_a_cell_that_starts_hundreds_costs_itself(cell: str, grader: Grader) -> None:
    result = graded(grader, "x = 1", cell, RIGHT)
    assert result.reason == f"Cell 2 started more threads than it may have ({MAX_THREADS}), and they were ended."
    assert (result.status, result.score, result.again) == ("memory", total_of(), False)


@needs_a_sandbox
def test_threads_that_compute_are_ended_with_their_cell(grader: Grader) -> None:
    result = graded(grader, SPINNING, RIGHT)
    assert result.status in ("memory", "timeout")
    assert result.reason.startswith("Cell 1 ")
    assert result.score == total_of()


@needs_a_sandbox
def test_what_earlier_cells_left_running_is_not_the_next_ones(grader: Grader) -> None:
    result = graded(grader, FEW, FEW, RIGHT)
    assert (result.status, result.reason, result.score) == ("graded", "", total_of())


@needs_a_sandbox
def test_who_reaches_around_the_limit_is_stopped_from_outside(grader: Grader) -> None:
    result = graded(grader, RIGHT, AROUND)
    assert (result.status, result.reason) == (
        "memory",
        f"It started more than {4 * MAX_THREADS} threads and was stopped.",
    )
    assert not result.again


# As a user other than root, who still may read what root's folders hold: there Python and the course may lie.
AS_NOBODY = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"]
AS_NOBODY += ["--inh-caps", "-all,+dac_read_search", "--ambient-caps", "-all,+dac_read_search"]
TOGETHER = """
import sys
from concurrent.futures import ThreadPoolExecutor
from course_utils.grading.controller.pool import Grader
from course_utils.grading.wire import Limits
from tests.grading.submissions import submission
from tests.grading.sandbox.test_threads import AROUND, NEIGHBOUR
grader, limits = Grader(), Limits("landlock", 30, 500_000_000)
grader.grade(submission("first", "x = 1"), limits)
with ThreadPoolExecutor(2) as threads:
    calm = threads.submit(grader.grade, submission("calm", NEIGHBOUR), limits)
    greedy = [grader.grade(submission("greedy", AROUND), limits) for _ in range(3)]
    result = calm.result()
grader.close()
print([one.reason for one in greedy], result.exercises[0].outcome, result.reason)
"""


@pytest.mark.skipif(not landlock.version() or os.geteuid() != 0, reason="it takes Landlock, and root to become another")
def test_with_landlock_alone_and_one_user_for_all_the_neighbours_have_threads() -> None:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "HOME": "/tmp", "PYTHONDONTWRITEBYTECODE": "1"}
    command = [*AS_NOBODY, sys.executable, "-c", TOGETHER]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, env=environment, cwd="/tmp", timeout=300
    )
    assert not done.returncode, done.stderr
    assert done.stdout.count("It started more than") == 3, done.stdout
    assert "correct" in done.stdout
    assert "incorrect" not in done.stdout


def a_thread() -> threading.Thread:
    return threading.Thread(target=lambda: [time.sleep(0.001) for _ in iter(int, 1)], daemon=True)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_limit_counts_from_where_it_is_told_to_and_ends_what_runs() -> None:
    before = _thread.start_new_thread, threading._start_new_thread, _thread.start_new
    done = threading.Event()  # of somebody else's, as the test runner has some, too
    other = threading.Thread(target=lambda: [time.sleep(0.001) for _ in iter(done.is_set, True)], daemon=True)
    other.start()
    try:
        limit = ThreadLimit()
        limit.begin()
        started = []
        for _ in range(MAX_THREADS):
            started.append(a_thread())
            started[-1].start()
        assert not limit.reached
        with pytest.raises(TooManyThreads, match=f"a cell may start {MAX_THREADS} threads, and this one has"):
            a_thread().start()
        assert limit.reached
        limit.end()
        for thread in started:
            thread.join(20)
        assert not any(thread.is_alive() for thread in started)
        time.sleep(0.05)
        assert other.is_alive()
        limit.begin()
        assert not limit.reached
    finally:
        done.set()
        _thread.start_new_thread, threading._start_new_thread, _thread.start_new = before
