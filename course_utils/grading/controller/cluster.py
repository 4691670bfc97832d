"""Grading on several machines: Dask hands submissions to workers, each a controller with warm parents of its own.

Workers are trusted, as the machine is that grades alone: they hold cases, judge and answer. Submissions and results
cross as MessagePack of the types in submission.py, so nothing that a student wrote is ever unpickled.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from importlib.metadata import version
from itertools import islice
from typing import TYPE_CHECKING, Any

import msgspec

from course_utils.grading.errors import GradingError
from course_utils.grading.submission import Result, Submission

if TYPE_CHECKING:
    from course_utils.grading.controller.pool import Grader
    from course_utils.grading.wire import Limits

CONNECT_SECONDS = 20
# Submissions that wait at each worker's thread: enough that none is idle, few enough that a class needs little memory.
AHEAD = 4
_DISTRIBUTION = "autograd-course"
_LOST = (
    "The workers that graded it died, one after the other. Their logs may say of what: of too little memory, say. The "
    "same command tries it again."
)


class ClusterError(GradingError):
    """A cluster cannot be used. The message says why, and what to try."""


def grade_on_cluster(
    submissions: Iterable[Submission], address: str, timeout: float, memory: int, unsafe: bool = False
) -> Iterator[Result]:
    """Grade submissions on the workers of a Dask scheduler, and yield each result as it is there, in no order.

    `timeout` is wall seconds and `memory` bytes, of one submission. As many run at a time as the workers have threads.
    What a lost worker had under way, another one does again; workers may join at any time.

    One whose workers die again and again has a result that says so, and the others go on.

    Raises ClusterError where there is no scheduler or no worker at `address`, and where a worker cannot grade (no
    sandbox, another version of the course).
    """
    try:
        import distributed
        from distributed.scheduler import KilledWorker
    except ImportError as error:
        raise ClusterError("--scheduler needs Dask: pip install 'autograd-course[cluster]'") from error

    waiting = iter(submissions)
    dask: Any = distributed
    with _client(dask.Client, address) as client:
        threads = sum(client.nthreads().values())
        if not threads:
            raise ClusterError(f"the scheduler at {address} has no workers. Start some: dask worker {address}")

        sent: dict[str, Submission] = {}

        def send(count: int) -> list[Any]:
            futures = []
            for one in islice(waiting, count):
                order, options = msgspec.msgpack.encode(one), {"pure": False, "version": _version()}
                future = client.submit(grade_order, order, timeout, memory, unsafe, **options)
                sent[future.key] = msgspec.structs.replace(one, cells=())
                futures.append(future)
            return futures

        running = dask.as_completed(send(AHEAD * threads), loop=client.loop)
        for future in running:
            one = sent.pop(future.key)
            try:
                answer = future.result()
            except KilledWorker:
                answer = msgspec.msgpack.encode(_lost(one))
            for following in send(1):
                running.add(following)
            if isinstance(answer, str):
                raise ClusterError(answer)
            yield msgspec.msgpack.decode(answer, type=Result)


def grade_order(order: bytes, timeout: float, memory: int, unsafe: bool, version: str) -> bytes | str:
    """Grade one encoded submission, on a worker. Return the encoded result, or why this worker cannot grade."""
    from distributed import get_worker

    own = _version()
    if own != version:
        return f"the worker at {get_worker().address} has version {own} of the course, and you have {version}."
    try:
        limits = _limits(timeout, memory, unsafe)
    except GradingError as error:
        return f"the worker at {get_worker().address} cannot grade: {error}"
    submission = msgspec.msgpack.decode(order, type=Submission)
    return msgspec.msgpack.encode(_grader().grade(submission, limits))


def _lost(one: Submission) -> Result:
    """Return the result of a submission whose workers died. They may have died of another that they had."""
    return Result(
        student=one.student,
        assignment=one.assignment,
        path=one.path,
        status="crashed",
        score=0.0,
        points=0.0,
        seconds=0.0,
        exercises=(),
        reason=_LOST,
        number=one.number,
        detail=one.detail,
        again=True,
    )


@contextmanager
def _client(kind: Any, address: str) -> Iterator[Any]:
    try:
        client = kind(address, timeout=CONNECT_SECONDS, set_as_default=False)
    except (OSError, ValueError) as error:
        raise ClusterError(
            f"there is no scheduler at {address} ({error or type(error).__name__}). Start one, `dask scheduler`, and "
            "name the address that it prints, as in --scheduler tcp://10.0.0.5:8786"
        ) from error
    with client:
        yield client


def _version() -> str:
    return version(_DISTRIBUTION)


@cache
def _limits(timeout: float, memory: int, unsafe: bool) -> Limits:
    from course_utils.grading.controller.pool import limits_of

    return limits_of(timeout, memory, unsafe)


@cache
def _grader() -> Grader:
    """Return the grader of this worker process, with its warm parents. They end when it does."""
    from course_utils.grading.controller.pool import Grader

    return Grader()
