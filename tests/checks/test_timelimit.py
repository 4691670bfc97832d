"""Stopping code that never ends."""

import builtins
import contextlib
import importlib
import os
import signal
import subprocess
import sys
import threading
import time

import pytest
from torch.utils._python_dispatch import _get_current_dispatch_mode

from course_utils.checks import stopwatch, timelimit
from course_utils.checks.data import Case, TimedOut
from course_utils.checks.examine import observe
from course_utils.checks.timelimit import TimeUp, time_limit
from course_utils.graph.alive import PeakMemory


def spin() -> None:
    while True:
        pass


def sleep() -> None:
    time.sleep(60)


def wait_for_a_lock() -> None:
    lock = threading.Lock()
    with lock:
        lock.acquire()


def wait_for_an_event() -> None:
    threading.Event().wait()


def read() -> None:
    os.read(os.pipe()[0], 1)


def sleep_often() -> None:
    while True:
        time.sleep(0.001)


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


LOOPS = [spin, swallow, swallow_everything, retry, keep_on]
WAITS = [sleep, sleep_often, wait_for_a_lock, wait_for_an_event, read]


@pytest.mark.parametrize("endless", [*LOOPS, *WAITS])
def test_endless_code_is_stopped(endless):
    with pytest.raises(TimeUp), time_limit(0.05):
        endless()
    assert sys.gettrace() is None
    assert sys.exc_info()[1] is None  # every traceback that follows would begin with it


def test_a_with_of_the_stopped_code_is_left():
    left = []

    def endless() -> None:
        with contextlib.ExitStack() as stack:
            stack.callback(left.append, "with")
            spin()

    with pytest.raises(TimeUp), time_limit(0.05):
        endless()
    assert left == ["with"]


def in_another_thread(run):
    """Run it under another thread's limit, and return what it returned, or raise what it raised."""
    ended = []

    def work():
        try:
            ended.append(run())
        except BaseException as error:
            ended.append(error)

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join(60)
    assert ended, "it still runs"
    if isinstance(ended[0], BaseException):
        raise ended[0]
    return ended[0]


def here(run):
    return run()


@pytest.mark.parametrize("endless", [spin, swallow, sleep_often])
def test_endless_code_is_stopped_in_another_thread(endless):
    def run():
        with time_limit(0.05):
            endless()

    with pytest.raises(TimeUp):
        in_another_thread(run)


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


def test_a_trace_function_of_the_session_is_put_back():
    def tracing(frame, event, argument):
        return None

    before = sys.gettrace()
    sys.settrace(tracing)
    try:
        with contextlib.suppress(TimeUp), time_limit(0.05):
            spin()
        assert sys.gettrace() is tracing
    finally:
        sys.settrace(before)


def test_the_users_interrupt_goes_through():
    # What a shell starts in the background ignores the signal: here it means what it does in a terminal.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt), time_limit(5):
            signal.raise_signal(signal.SIGINT)
    finally:
        signal.signal(signal.SIGINT, before)


def test_a_limit_inside_a_limit():
    def run():
        for _ in range(2):
            with contextlib.suppress(TimeUp), time_limit(0.05):
                spin()
        spin()

    with pytest.raises(TimeUp), time_limit(0.3):
        run()


def test_a_busy_machine_takes_nothing():
    hogs = [
        subprocess.Popen([sys.executable, "-c", "while True: pass"], start_new_session=True)
        for _ in range(3 * (os.cpu_count() or 1))
    ]
    try:
        with time_limit(0.5):
            compute(0.15)
    finally:
        for hog in hogs:
            hog.kill()
            hog.wait()


STOPPING = """
import os, signal, sys, time
process = int(sys.argv[1])
os.kill(process, signal.SIGSTOP)
time.sleep(2)
os.kill(process, signal.SIGCONT)
"""


def test_a_machine_that_sleeps_takes_nothing():
    with time_limit(1.5):
        subprocess.run([sys.executable, "-S", "-c", STOPPING, str(os.getpid())], check=True)


def compute(seconds: float) -> None:
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass


# A library that imports its parts when they are first used. Each takes several times the limit.
LIMIT = 0.1
LIBRARY = {
    "__init__": """
import time
made, ready = [], False
def compute(seconds):
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass
def use():
    from lazy import heavy
    return heavy.VALUE
def prepare():
    global ready
    compute(0.25)
    ready = True
def never():
    while True:
        pass
""",
    "heavy": "from lazy import compute, heavier\ncompute(0.15)\nVALUE = heavier.VALUE\n",
    "heavier": "import lazy\nlazy.compute(0.15)\nVALUE = 3\n",
    "waiting": "import time\ntime.sleep(0.3)\nVALUE = 3\n",
    "generated": "exec('import lazy\\nfor _ in range(10):\\n    lazy.compute(0.03)')\nVALUE = 3\n",
    "endless": "while True:\n    pass\n",
    "asking": "import lazy\nlazy.ask()\nVALUE = 3\n",
    "late": "import lazy\nlazy.ask()\nlazy.compute(0.3)\nVALUE = 3\n",
}


@pytest.fixture
def lazy(tmp_path, monkeypatch):
    folder = tmp_path / "site-packages" / "lazy"
    folder.mkdir(parents=True)
    for name, source in LIBRARY.items():
        (folder / f"{name}.py").write_text(source)
    own = tmp_path / "mine"
    own.mkdir()
    (own / "my_endless.py").write_text("while True:\n    pass\n")
    (own / "my_module.py").write_text("from lazy import heavy\nVALUE = heavy.VALUE\n")
    for path in (folder.parent, own):
        monkeypatch.syspath_prepend(path)
    yield importlib.import_module("lazy")
    for name in [name for name in sys.modules if name.partition(".")[0] in ("lazy", "my_module")]:
        del sys.modules[name]


@pytest.fixture
def impatient(monkeypatch):
    monkeypatch.setattr(timelimit, "PATIENCE_SECONDS", 0.1)


def by_a_library():
    import lazy

    return lazy.use()


def by_the_learner():
    import lazy.heavy

    return lazy.heavy.VALUE


def by_importlib():
    return importlib.import_module("lazy.heavy").VALUE


def by_a_module_of_the_learners():
    return importlib.import_module("my_module").VALUE


def of_what_waits():
    return importlib.import_module("lazy.waiting").VALUE


def of_what_runs_code_without_a_file():
    return importlib.import_module("lazy.generated").VALUE


def through_an_import_of_the_learners():
    before = builtins.__import__
    builtins.__import__ = lambda *given, **named: before(*given, **named)
    try:
        return by_a_library()
    finally:
        builtins.__import__ = before


def in_a_thread_of_the_learners():
    return in_another_thread(by_a_library)


IMPORTS = [by_a_library, by_the_learner, by_importlib, by_a_module_of_the_learners, of_what_waits]
IMPORTS += [of_what_runs_code_without_a_file, through_an_import_of_the_learners, in_a_thread_of_the_learners]


@pytest.mark.parametrize("thread", [here, in_another_thread])
@pytest.mark.parametrize("imported", IMPORTS)
def test_an_import_of_a_librarys_is_neither_counted_nor_cut(imported, thread, lazy):
    def run():
        with time_limit(LIMIT):
            return imported()

    assert thread(run) == 3
    assert thread(run) == 3


@pytest.mark.parametrize("thread", [here, in_another_thread])
def test_a_cut_waits_for_the_end_of_an_import(thread, lazy):
    """The time is over already when the import goes on: the learner's code that it calls has used it."""
    lazy.ask = lambda: compute(2 * LIMIT)

    def run():
        with time_limit(LIMIT):
            importlib.import_module("lazy.late")
            spin()

    with pytest.raises(TimeUp):
        thread(run)
    assert sys.modules["lazy.late"].VALUE == 3


def test_an_import_is_not_cut_when_the_time_has_long_been_over(lazy, impatient):
    """What a library has begun was cut already, and then an import begins."""

    def run():
        with contextlib.ExitStack() as after:
            after.callback(importlib.import_module, "lazy.heavy")
            after.callback(lazy.prepare)

    with pytest.raises(TimeUp), time_limit(LIMIT):
        run()
    assert not lazy.ready
    assert sys.modules["lazy.heavy"].VALUE == 3


@pytest.mark.parametrize("thread", [here, in_another_thread])
def test_an_import_inside_an_inner_limit_is_not_counted_in_the_outer_one(thread, lazy):
    def run():
        with time_limit(LIMIT):
            with time_limit(5):
                lazy.use()
            return compute(LIMIT / 4)

    assert thread(run) is None


@pytest.mark.parametrize("thread", [here, in_another_thread])
def test_a_module_of_the_learners_counts(thread, lazy):
    def run():
        with time_limit(LIMIT):
            importlib.import_module("my_endless")

    with pytest.raises(TimeUp):
        thread(run)


@pytest.mark.parametrize("thread", [here, in_another_thread])
def test_the_learners_code_counts_inside_an_import_and_beside_it(thread, lazy, impatient):
    lazy.ask = spin

    def inside():
        with time_limit(LIMIT):
            importlib.import_module("lazy.asking")

    def beside():
        importing = threading.Thread(target=importlib.import_module, args=("lazy.waiting",))
        importing.start()
        try:
            with time_limit(LIMIT):
                spin()
        finally:
            importing.join()

    for run in (inside, beside):
        with pytest.raises(TimeUp):
            thread(run)


@pytest.mark.parametrize("thread", [here, in_another_thread])
def test_an_import_that_never_ends_is_stopped(thread, lazy, impatient, monkeypatch):
    monkeypatch.setattr(stopwatch, "IMPORT_SECONDS", 0.2)

    def run():
        with time_limit(LIMIT):
            importlib.import_module("lazy.endless")

    with pytest.raises(TimeUp):
        thread(run)


def test_imports_without_end_are_stopped_between_two(lazy, monkeypatch):
    monkeypatch.setattr(stopwatch, "IMPORT_SECONDS", 0.5)
    heavier = importlib.import_module("lazy.heavier")

    def run():
        while True:
            heavier.VALUE = 0
            importlib.reload(heavier)

    with pytest.raises(TimeUp), time_limit(LIMIT):
        run()
    assert heavier.VALUE == 3


def test_a_cut_waits_a_little_for_a_library_to_return(lazy):
    """What is no import may fill a table at its first use, too, and say before that it is filled."""

    def run():
        lazy.prepare()
        spin()

    with pytest.raises(TimeUp), time_limit(LIMIT):
        run()
    assert lazy.ready


@pytest.mark.parametrize("thread", [here, in_another_thread])
def test_a_library_that_never_returns_is_stopped(thread, lazy, impatient):
    def run():
        with time_limit(LIMIT):
            lazy.never()

    with pytest.raises(TimeUp):
        thread(run)


OBSERVER = """
class Slow(PeakMemory):
    def __exit__(self, *error):
        until = time.thread_time() + 0.3
        while time.thread_time() < until:
            pass
        super().__exit__(*error)

def observer(answer, case):
    with Slow():
        answer()
"""


def test_what_the_course_puts_back_is_not_interrupted(impatient):
    """A mode that an observer entered is left again, however slowly that goes."""
    space = {"PeakMemory": PeakMemory, "time": time}
    exec(compile(OBSERVER, observe.__code__.co_filename, "exec"), space)  # as if it were the course's own code
    seen, _ = observe(space["observer"], retry, Case(""), seed=1, seconds=0.1)
    assert seen == TimedOut(0.1)
    assert _get_current_dispatch_mode() is None
