"""Stopping code that never ends."""

import contextlib
import signal
import subprocess
import sys
import threading
import time

import pytest
from torch.utils._python_dispatch import _get_current_dispatch_mode

from course_utils.checks.data import Case, TimedOut
from course_utils.checks.examine import observe
from course_utils.checks.timelimit import TimeUp, time_limit
from course_utils.graph.alive import PeakMemory


def spin() -> None:
    while True:
        pass


def sleep() -> None:
    time.sleep(60)


def swallow() -> None:
    while True:
        try:
            while True:
                pass
        except Exception:
            pass


def swallow_everything() -> None:
    stops = 0
    while stops < 3:
        try:
            while True:
                pass
        except BaseException:
            stops += 1
    while True:
        pass


def retry() -> None:
    while True:
        with contextlib.suppress(BaseException):
            time.sleep(1)


def keep_on() -> None:
    while True:
        try:
            while True:
                pass
        except BaseException:
            continue
        finally:
            print("again", end="")


@pytest.mark.parametrize("endless", [spin, sleep, swallow, swallow_everything, retry, keep_on])
def test_endless_code_is_stopped(endless):
    with pytest.raises(TimeUp), time_limit(0.05):
        endless()
    assert sys.gettrace() is None


@pytest.mark.parametrize("endless", [spin, swallow])
def test_endless_code_is_stopped_in_another_thread(endless):
    stopped = []

    def work():
        try:
            with time_limit(0.05):
                endless()
        except TimeUp:
            stopped.append(True)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join(10)
    assert stopped == [True]


@pytest.mark.parametrize("body", ["pass", "while True: pass"])
def test_a_thread_is_left_as_it_was(body):
    """Where CPython 3.11 still expects an exception in a thread, a profiler makes it look for ever."""
    code = f"""
import cProfile, threading
from course_utils.checks.timelimit import TimeUp, time_limit
def work():
    try:
        with time_limit(0.2):
            {body}
    except TimeUp:
        pass
thread = threading.Thread(target=work)
thread.start()
thread.join()
with cProfile.Profile():
    (lambda: None)()
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_code_that_ends_is_left_alone():
    with time_limit(0.05):
        pass
    time.sleep(0.15)  # nothing is raised later


def test_a_timer_of_the_session_is_put_back():
    rings = []
    before = signal.signal(signal.SIGALRM, lambda *_: rings.append(1))
    timer = signal.setitimer(signal.ITIMER_REAL, 0.2)
    try:
        with time_limit(5):
            time.sleep(0.05)
        assert 0 < signal.getitimer(signal.ITIMER_REAL)[0] <= 0.15
        time.sleep(0.3)
        assert rings == [1]
    finally:
        signal.signal(signal.SIGALRM, before)
        signal.setitimer(signal.ITIMER_REAL, *timer)  # pytest-timeout's


OBSERVER = """
class Slow(PeakMemory):
    def __exit__(self, *error):
        until = time.monotonic() + 0.3
        while time.monotonic() < until:
            pass
        super().__exit__(*error)

def observer(answer, case):
    with Slow():
        answer()
"""


def test_what_the_course_puts_back_is_not_interrupted():
    """A mode that an observer entered is left again, however slowly that goes."""
    space = {"PeakMemory": PeakMemory, "time": time}
    exec(compile(OBSERVER, observe.__code__.co_filename, "exec"), space)  # as if it were the course's own code
    seen, _ = observe(space["observer"], retry, Case(""), seed=1, seconds=0.1)
    assert seen == TimedOut(0.1)
    assert _get_current_dispatch_mode() is None
