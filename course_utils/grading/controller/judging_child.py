"""The processes that judge: a parent that has the judges loaded and forks, and children that decode and judge.

They are the course's own code at work on bytes that nobody trusts. So a child has nothing of the session's: no file or
socket but its line, no submission beside the one that it is asked about. It may write no file, has limits of memory and
computing, and can be killed at any time: it holds nothing that would be lost.
"""

from __future__ import annotations

import ctypes
import math
import os
import resource
import signal
import socket
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

import msgspec
import torch

from course_utils.checks import examine
from course_utils.checks.registry import exercises_of
from course_utils.grading import wire
from course_utils.grading.controller import judging, making, orders
from course_utils.grading.controller.flags import flags_of

MEMORY = 500_000_000  # bytes of a child's address space, beside what it shares with its parent
SPENT = MEMORY // 4
GRACE_SECONDS = 2  # of computing, for a judge that ends only when a call in C returns
FILES = 64

_PR_SET_PDEATHSIG, _PR_SET_NO_NEW_PRIVS = 1, 38


class Threads(Exception):
    """This process has started threads. It must not fork: what they hold would be held in the child for ever."""


def main(descriptor: int) -> None:
    """Serve the controller at the other end of a socket until it hangs up."""
    control = socket.socket(fileno=descriptor)
    torch.set_num_threads(1)  # as in the children that are graded: with more, sums are rounded otherwise
    tempfile.gettempdir()  # found by writing there, which a child may not
    served = False
    while True:
        packet, descriptors, _, _ = socket.recv_fds(control, 65536, 1)
        if not packet:
            return
        order = msgspec.msgpack.decode(packet, type=orders.Begin | orders.End)
        if isinstance(order, orders.End):
            os.kill(order.process, signal.SIGKILL)  # it is nobody else's: only this process waits for it
            _, status = os.waitpid(order.process, 0)
            control.send(msgspec.msgpack.encode(orders.Ended(os.waitstatus_to_exitcode(status))))
            continue
        exercises_of(order.lesson)
        if served:  # somebody waits for the first child, which imports what it needs of this
            import_module("torch._dynamo")
            examine.warm_up()
        served = True
        threads = len(list(Path("/proc/self/task").iterdir()))
        if threads != 1:
            raise Threads(f"the judging parent has {threads} threads; a fork is safe with 1 only")
        child = os.fork()
        if child == 0:
            _child(control, descriptors[0])
        os.close(descriptors[0])
        control.send(msgspec.msgpack.encode(orders.Begun(child)))


def _child(control: socket.socket, descriptor: int) -> None:
    try:
        control.close()
        _quieten()
        serve(socket.socket(fileno=descriptor), limit())
    except wire.Closed:
        os._exit(0)
    finally:
        os._exit(1)


def _quieten() -> None:
    """Take the standard streams from this process, which all others like it have, too."""
    nothing = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1, 2):
        os.dup2(nothing, standard)
    os.close(nothing)


def limit() -> int:
    """Take from this process what judging does not need. Return its address space, in bytes."""
    library = ctypes.CDLL(None)
    library.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    library.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    space = _address_space("VmSize")
    for what, amount in (
        (resource.RLIMIT_AS, space + MEMORY),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_NOFILE, FILES),
    ):
        _, hard = resource.getrlimit(what)
        resource.setrlimit(what, (amount if hard == resource.RLIM_INFINITY else min(amount, hard),) * 2)
    return space


def serve(line: socket.socket, space: int) -> None:
    """Answer orders until the controller hangs up. `space` is the address space that this process began with."""
    while True:
        order: Any = wire.receive(line, orders.Pose | orders.Reach | orders.Judge, largest=orders.MAX_ORDER)
        if isinstance(order, orders.Pose):
            wire.send(line, orders.Made(making.pose(order.lesson, making.seeds(order.key))))
            continue
        if isinstance(order, orders.Reach):
            with _computing(order.seconds):
                flags = flags_of(order.cells, order.exercises)
            wire.send(line, orders.Flags(flags))
            continue
        exercises_of(order.item.exercise.lesson)  # loaded at nobody's cost
        before = _computed()
        with _computing(order.seconds):
            found = judging.judge(order)
        spent = _address_space("VmPeak") > space + SPENT
        wire.send(line, orders.Judged(found, _computed() - before, spent))


@contextmanager
def _computing(seconds: float) -> Iterator[None]:
    """Have the kernel end this process where the body computes longer, and some seconds more."""
    _, hard = resource.getrlimit(resource.RLIMIT_CPU)
    resource.setrlimit(resource.RLIMIT_CPU, (math.ceil(_computed() + seconds) + GRACE_SECONDS, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_CPU, (hard, hard))


def _computed() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def _address_space(which: str) -> int:
    """Return "VmSize", what it is now, or "VmPeak", what it was at most, in bytes."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(f"{which}:"):
            return int(line.split()[1]) * 1024
    raise LookupError(f"/proc/self/status has no {which}")


if __name__ == "__main__":
    main(int(sys.argv[1]))
