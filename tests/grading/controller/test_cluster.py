"""Grading on a Dask cluster: the same rows as on one machine, also where a worker is killed in the middle."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner
from distributed import Client

from course_utils import cli
from course_utils.checks.registry import LESSONS
from course_utils.grading.controller import cluster
from course_utils.grading.controller.cluster import ClusterError, grade_on_cluster
from course_utils.grading.controller.pool import grade_all
from course_utils.grading.gradebook import Gradebook
from course_utils.grading.submission import Cell, Result, Submission
from tests.grading.submissions import RIGHT, needs_a_sandbox, total_of

ROOT = Path(__file__).parents[3]
pytestmark = needs_a_sandbox

WRONG = "first_gradient = 15\nslope = 3\n"
DEADLY = "first_gradient = 8\nimport os\nos._exit(1)\n"


def class_of(count: int) -> list[Submission]:
    """Students with right, wrong and deadly answers, and one whose file could not be read."""
    sources = (RIGHT, WRONG, RIGHT, DEADLY)
    every = [
        Submission(f"s{n:03}", LESSONS[0], f"{n}.ipynb", f"digest {n}", (Cell(1, sources[n % 4]),))
        for n in range(count)
    ]
    return [*every, Submission("unreadable", LESSONS[0], "x.ipynb", "d", unreadable="It is no notebook.")]


def rows(results: Iterator[Result]) -> dict[str, tuple[object, ...]]:
    """Return what does not depend on time, by student. A student twice is an error."""
    found: dict[str, tuple[object, ...]] = {}
    for one in results:
        assert one.student not in found
        exercises = [msgspec.structs.replace(exercise, seconds=0.0) for exercise in one.exercises]
        found[one.student] = (one.status, one.score, one.points, one.path, one.reason, exercises)
    return found


@contextmanager
def started(*command: str, ready: str) -> Iterator[str]:
    """Run a command of Dask's, and yield the line in which it says that it is ready."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}
    process = subprocess.Popen(
        [sys.executable, "-m", "distributed.cli.dask_" + command[0], *command[1:]],
        **{"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True, "env": environment, "cwd": ROOT},
    )
    try:
        assert process.stdout is not None
        yield next(line for line in process.stdout if ready in line)
    finally:
        process.kill()
        process.wait()


SCHEDULER = ("scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard")


@pytest.fixture(scope="module")
def scheduler() -> Iterator[str]:
    """A scheduler and two workers of one thread each, with no nanny that starts them again."""
    options = ("--nthreads", "1", "--no-nanny", "--no-dashboard")
    with ExitStack() as after:
        address = after.enter_context(started(*SCHEDULER, ready="Scheduler at:")).split()[-1]
        for _ in range(2):
            after.enter_context(started("worker", address, *options, ready="Registered to"))
        yield address


def test_the_same_rows_as_on_one_machine_and_none_lost_with_a_worker(scheduler: str) -> None:
    every = class_of(24)
    alone = rows(grade_all(every, timeout=30))
    assert {status for status, *_ in alone.values()} == {"graded", "crashed", "unreadable"}
    assert rows(grade_on_cluster(every, scheduler, 30, 10**9)) == alone

    with Client(scheduler, set_as_default=False) as client:
        pids = client.run(os.getpid)
    coming = grade_on_cluster(every, scheduler, 30, 10**9)
    first = [next(coming) for _ in range(5)]
    os.kill(next(iter(pids.values())), signal.SIGKILL)
    assert rows(iter([*first, *coming])) == alone


def test_a_submission_whose_workers_die_has_a_row_and_the_others_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES", "0")
    options = ("--nthreads", "1", "--no-nanny", "--no-dashboard")
    with ExitStack() as after:
        address = after.enter_context(started(*SCHEDULER, ready="Scheduler at:")).split()[-1]
        for _ in range(2):
            after.enter_context(started("worker", address, *options, ready="Registered to"))
        with Client(address, set_as_default=False) as client:
            pids = client.run(os.getpid)
        coming = grade_on_cluster(class_of(24), address, 30, 10**9)
        results = [next(coming) for _ in range(3)]
        os.kill(next(iter(pids.values())), signal.SIGKILL)
        results += coming
    assert {one.student for one in results} == {one.student for one in class_of(24)}
    lost = [one for one in results if one.reason.startswith("The workers that graded it died, one after the other.")]
    assert 1 <= len(lost) <= cluster.AHEAD + 2
    assert {(one.status, one.score, one.again) for one in lost} == {("crashed", 0.0, True)}
    assert sum(one.status == "graded" for one in results) >= 18 - len(lost)


def test_the_command_fills_the_same_gradebook(scheduler: str, tmp_path: Path) -> None:
    for name in ("ada", "bob"):
        (tmp_path / "in" / name).mkdir(parents=True)
        (tmp_path / "in" / name / f"{LESSONS[0]}.ipynb").write_bytes(
            (ROOT / "solutions" / f"{LESSONS[0]}.ipynb").read_bytes()
        )
    command = ["grade", str(tmp_path / "in"), "--db", str(tmp_path / "g.sqlite"), "--scheduler", scheduler]
    done = CliRunner().invoke(cli.course, command)
    assert done.exit_code == 0, done.output
    with Gradebook(tmp_path / "g.sqlite", create=False) as book:
        assert [(one.student, one.score) for one in book.results()] == [("ada", total_of()), ("bob", total_of())]
    again = CliRunner().invoke(cli.course, command)
    assert "0 graded, 2 known from before" in again.output


def test_a_worker_that_cannot_grade_says_why(scheduler: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "_version", lambda: "99")
    with pytest.raises(ClusterError, match=r"the worker at tcp://127.* has version \S+ of the course, and you have 99"):
        list(grade_on_cluster(class_of(1), scheduler, 30, 10**9))


def test_without_workers_or_scheduler_the_message_says_what_to_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "CONNECT_SECONDS", 3)
    with started(*SCHEDULER, ready="Scheduler at:") as line:
        address = line.split()[-1]
        with pytest.raises(ClusterError, match=f"no workers. Start some: dask worker {address}"):
            list(grade_on_cluster(class_of(1), address, 30, 10**9))
    with pytest.raises(ClusterError, match=r"no scheduler at tcp://127\.0\.0\.1:\d+ .*Start one, `dask scheduler`"):
        list(grade_on_cluster(class_of(1), address, 30, 10**9))


def test_without_dask_the_message_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(ClusterError, match=r"pip install 'autograd-course\[cluster\]'"):
        next(grade_on_cluster([], "tcp://127.0.0.1:1", 30, 10**9))
