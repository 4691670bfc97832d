"""The warm parent: it has PyTorch imported, knows no answers, and forks a sandboxed child for each submission."""

from __future__ import annotations

import os
import select
import signal
import socket
import sys
import sysconfig
import time
from pathlib import Path
from typing import Any

import msgspec

from course_utils.grading import wire
from course_utils.grading.sandbox import confinement, kernel, pages
from course_utils.grading.sandbox.warm import Warmth

WATCH_SECONDS = 0.01
SETTLED = 6  # children, after which a class is at work: what enlarging pages costs, 30 more give back
_ZOMBIE = b"State:\tZ (zombie)"
_OWN = (b"RssAnon:", b"RssShmem:", b"VmSwap:")  # what a process holds, in kB; RssFile is the page cache's


def main(descriptor: int) -> None:
    """Serve the controller at the other end of a socket until it hangs up."""
    control = socket.socket(fileno=descriptor)
    warmth = Warmth()
    readable, hidden = _folders()
    served = 0
    while True:
        packet, descriptors, _, _ = socket.recv_fds(control, 65536, 1)
        if not packet:
            return
        if packet == wire.STOP:  # for a child that had already ended
            continue
        start = msgspec.msgpack.decode(packet, type=wire.Start)
        limits = msgspec.structs.replace(start.limits, readable=readable, hidden=hidden)
        if served or not confinement.can_import(limits):
            warmth.whole()
        warmth.lesson(start.lesson)
        if served == SETTLED:
            pages.enlarge()
        served += 1
        control.send(_packed(wire.Started()))
        watcher = os.fork()
        if watcher == 0:
            try:
                _watch(control, descriptors[0], limits, warmth)
            finally:
                os._exit(1)
        os.close(descriptors[0])
        if os.waitstatus_to_exitcode(os.waitpid(watcher, 0)[1]) != 0:
            control.send(_packed(wire.Ended("died", "the process that watched over it died")))


def _watch(control: socket.socket, descriptor: int, limits: wire.Limits, warmth: Warmth) -> None:
    """Fork the child, stop it at its limits or when the controller says so, and tell how it ended."""
    kernel.prctl(kernel.PR_SET_PDEATHSIG, signal.SIGKILL)
    try:
        confinement.separate(limits)
    except OSError as error:
        control.send(_packed(wire.Ended("refused", str(error))))
        os._exit(0)
    processes = os.open("/proc", os.O_PATH)  # the child's root becomes this process's root, too, and has none
    entering, unable = os.pipe()
    child = os.fork()
    if child == 0:
        _child(control, descriptor, unable, limits, warmth)
    os.close(descriptor)
    os.close(unable)
    end = time.monotonic() + limits.seconds
    before = _private(_status(processes, os.getpid()))
    how, most, abandoned = "died", 0, False
    ended = os.pidfd_open(child)
    while True:
        ready, _, _ = select.select([control.fileno(), ended], [], [], WATCH_SECONDS)
        if ended in ready:
            break
        if control.fileno() in ready:
            control.recv(16)  # wire.STOP; or nothing, and the controller is gone
            how = "stopped"
            break
        status = _status(processes, child)
        if _ZOMBIE in status:  # its first thread has ended, and nothing tells any more what the others hold
            abandoned = True
            break
        most = max(most, _private(status) - before)
        if most > limits.memory:
            how = "memory"
            break
        if _threads(processes, child) > 4 * wire.MAX_THREADS:
            how = "threads"
            break
        if time.monotonic() > end:
            how = "timeout"
            break
    os.kill(child, signal.SIGKILL)
    _, ending, used = os.wait4(child, 0)
    code = os.waitstatus_to_exitcode(ending)
    cpu = used.ru_utime + used.ru_stime
    detail = ""
    if how == "died":
        refused = os.read(entering, 1000).decode(errors="replace")
        left = abandoned and code == -signal.SIGKILL
        cause = "its first thread ended, and others went on" if left else _cause(code)
        how, detail = ("refused", f"the sandbox could not be entered: {refused}") if refused else (how, cause)
    control.send(_packed(wire.Ended(how, detail, cpu, most)))
    os._exit(0)


def _child(control: socket.socket, descriptor: int, unable: int, limits: wire.Limits, warmth: Warmth) -> None:
    """Enter the sandbox and serve. Why that cannot be entered is told on `unable`, which no learner code finds open."""
    from course_utils.grading.sandbox import learner

    try:
        try:
            control.detach()
            confinement.enter(limits, (descriptor, unable))
        except BaseException as error:
            os.write(unable, f"{type(error).__name__}: {error}"[:250].encode(errors="replace"))
            os._exit(1)
        os.close(unable)
        learner.reseed()
        learner.serve(socket.socket(fileno=descriptor), warmth.shell, warmth.original, warmth.observers)
    finally:
        os._exit(0)


def _cause(code: int) -> str:
    if code < 0:
        return f"it was ended by {signal.Signals(-code).name}"
    return f"it ended itself with code {code}"


def _status(processes: int, process: int) -> list[bytes]:
    """Return the lines that the kernel gives on a process; none where they cannot be read."""
    try:
        file = os.open(f"{process}/status", os.O_RDONLY, dir_fd=processes)
        try:
            return os.read(file, 8192).splitlines()
        finally:
            os.close(file)
    except OSError:
        return []


def _private(status: list[bytes]) -> int:
    """Return the bytes that a process has for itself, in memory or swapped out; 0 where its status has none.

    Files are not among them. Shared memory that belongs to no file is: `statm` counts it with them. A sandboxed
    submission is one process. What it shares with the process that it was forked from is counted for both.
    """
    return sum(int(line.split()[1]) * 1024 for line in status if line.startswith(_OWN))


def _threads(processes: int, process: int) -> int:
    """Return how many threads a process has, which its folder has for links beside two; 0 where it cannot be read."""
    try:
        return os.stat(f"{process}/task", dir_fd=processes).st_nlink - 2
    except OSError:
        return 0


def _folders() -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the folders that children may read (the libraries and the course), and those inside that they may not."""
    course = Path(__file__).parents[2]
    names = ("stdlib", "platstdlib", "purelib", "platlib")
    libraries = {Path(sysconfig.get_path(name)) for name in names if sysconfig.get_path(name)}
    readable = sorted({path for path in (*libraries, course) if path.is_dir()})
    outer = [path for path in readable if not any(path != other and path.is_relative_to(other) for other in readable)]
    return tuple(map(str, outer)), (str(course / "checks" / "judges"), str(course / "grading"))


def _packed(message: Any) -> bytes:
    return bytes(msgspec.msgpack.encode(message))


if __name__ == "__main__":
    main(int(sys.argv[1]))
