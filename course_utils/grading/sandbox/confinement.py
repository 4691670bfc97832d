"""Confinement: before it runs learner code, a forked process gives up all but its memory and a little time."""

from __future__ import annotations

import os
import resource
import signal
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from course_utils.grading.sandbox import kernel, landlock, seccomp
from course_utils.grading.wire import Limits, Mode

NOBODY = 65534
FIRST_USER = 1_900_000_000  # and 16 million more: no system gives these ids to anybody
DISK_BYTES = 64_000_000
FILES = 128
THREADS = 512
# Where the kernel counts all submissions and the session together: so many that whoever starts threads without end is
# seen and ended by its watcher before the others have none.
SHARED_THREADS = 8192


def probe(mode: Mode) -> None:
    """Enter the sandbox in a fork, and exit with 0 where that worked and the code inside can reach nothing."""
    limits = Limits(mode, 10, 100_000_000)
    separate(limits)
    child = os.fork()
    if child == 0:
        try:
            enter(limits, ())
            os._exit(3 if _readable("/etc/passwd") else 0)
        except BaseException as error:
            os.write(2, f"{error!r}\n".encode())
            os._exit(4)
    sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))


def separate(limits: Limits) -> None:
    """Give the processes that this one forks from now on namespaces of their own. It must have one thread.

    Raises OSError where the mode does not work here.
    """
    if limits.mode in ("landlock", "none"):
        return
    flags = kernel.CLONE_NEWNS | kernel.CLONE_NEWPID | kernel.CLONE_NEWNET | kernel.CLONE_NEWIPC | kernel.CLONE_NEWUTS
    if limits.mode == "namespaces":
        kernel.unshare(flags)
        return
    user, group = os.geteuid(), os.getegid()
    kernel.unshare(flags | kernel.CLONE_NEWUSER)
    _write("/proc/self/setgroups", "deny")
    _write("/proc/self/uid_map", f"{NOBODY} {user} 1")
    _write("/proc/self/gid_map", f"{NOBODY} {group} 1")


def can_import(limits: Limits) -> bool:
    """Say whether a process that has entered can read the libraries, and so import what it does not have yet.

    With Landlock the folders stay where they are, and root's process becomes a stranger: it cannot read Python where
    that lies in a folder for root alone, as with pyenv or uv in /root.
    """
    if limits.mode != "landlock" or os.geteuid() != 0:
        return True
    folders = {folder for path in map(Path, limits.readable) for folder in (path, *path.parents)}
    return all(folder.stat().st_mode & 0o001 for folder in folders)


def enter(limits: Limits, keep: Iterable[int]) -> None:
    """Give up everything, in a process forked after `separate`. Of the open files only those in `keep` stay.

    In place of standard streams that go stands a /dev/null of this process's own. What its parent had, all its
    siblings have: who fills a pipe there stops whoever writes next, and a flag or a lock that one sets, others see.

    Raises OSError where the mode does not work here; then nothing of a learner's may run in this process.
    """
    nothing = os.open("/dev/null", os.O_RDWR)  # an empty root has none
    space = _address_space() + limits.memory + limits.memory // 2
    if limits.mode in ("namespaces", "user namespaces"):
        _empty_root(limits)
    _close_all_but(keep, nothing)
    stranger = limits.mode == "namespaces" or (limits.mode == "landlock" and os.geteuid() == 0)
    if stranger:
        _become_a_stranger()
    kernel.prctl(kernel.PR_SET_PDEATHSIG, signal.SIGKILL)
    own = stranger or limits.mode == "user namespaces"
    _limit(limits, space, THREADS if own else SHARED_THREADS)
    if limits.mode == "none":
        return
    kernel.drop_capabilities()
    kernel.prctl(kernel.PR_SET_NO_NEW_PRIVS, 1)
    if limits.mode == "landlock":
        hidden = [Path(path) for path in limits.hidden]
        parts = [part for path in limits.readable for part in _without(Path(path), hidden)]
        around = [path for path in limits.readable if path not in parts and not _is_package(Path(path))]
        landlock.restrict(parts, around)
    seccomp.install()


def _without(path: Path, hidden: Sequence[Path]) -> Iterator[str]:
    """Yield what may be read of a folder where Landlock cannot take a part of it away: all, or single entries.

    A package with something hidden inside is left out as a whole. Of a folder of libraries, in which the course was
    installed, all others stay.
    """
    if not any(other.is_relative_to(path) for other in hidden):
        yield str(path)
    elif os.access(path, os.R_OK) and not _is_package(path):
        for entry in path.iterdir():
            yield from _without(entry, hidden)


def _is_package(path: Path) -> bool:
    return os.access(path / "__init__.py", os.F_OK)


def _become_a_stranger() -> None:
    """Take a user id that no other process has: threads are counted by user, and neighbours would share the limit."""
    own = FIRST_USER + int.from_bytes(os.urandom(3), "big")
    os.setgroups([])
    for user in (own, NOBODY):  # some containers know the usual ids only
        try:
            os.setresgid(user, user, user)
            os.setresuid(user, user, user)
        except OSError:
            if user == NOBODY:
                raise
        else:
            return


def _empty_root(limits: Limits) -> None:
    """Make an empty file system in memory the root, with `readable` in it, read-only, and /tmp to write into."""
    kernel.mount("", "/", flags=kernel.MS_REC | kernel.MS_PRIVATE)
    sources = {path: os.open(path, os.O_PATH | os.O_CLOEXEC) for path in limits.readable}
    root = "/proc"  # any folder that surely exists; what is below is hidden, but the open sources stay
    numbers = os.open("/proc/self/fd", os.O_PATH | os.O_CLOEXEC)
    options = f"size={DISK_BYTES},nr_inodes=5000,mode=755"
    kernel.mount("tmpfs", root, "tmpfs", kernel.MS_NOSUID | kernel.MS_NODEV, options)
    for path, source in sources.items():
        target = root + path
        Path(target).mkdir(parents=True, exist_ok=True)
        os.fchdir(numbers)
        kernel.mount(str(source), target, flags=kernel.MS_BIND | kernel.MS_REC)
        kernel.make_read_only(target)
    for path in limits.hidden:
        if Path(root + path).is_dir():
            kernel.mount("tmpfs", root + path, "tmpfs", kernel.MS_NOSUID | kernel.MS_NODEV, "size=4096,mode=000")
    scratch = Path(root, "tmp")
    scratch.mkdir(exist_ok=True)
    scratch.chmod(0o1777)
    os.chdir(root)
    kernel.call("pivot_root", b".", b".")
    kernel.unmount(".")
    os.chdir("/tmp")


def _close_all_but(keep: Iterable[int], nothing: int) -> None:
    for standard in {0, 1, 2} - set(keep):
        os.dup2(nothing, standard)
    last = 2
    for number in sorted(set(keep) - {0, 1, 2}):
        os.closerange(last + 1, number)
        last = number
    os.closerange(last + 1, 65536 if last < 65536 else last + 1)


def _limit(limits: Limits, space: int, threads: int) -> None:
    seconds = int(limits.seconds) + 2
    # Backstops: `watch` stops a submission at its limits before these do.
    _at_most(resource.RLIMIT_CPU, 2 * seconds)
    _at_most(resource.RLIMIT_AS, space)
    _at_most(resource.RLIMIT_FSIZE, DISK_BYTES)
    _at_most(resource.RLIMIT_NOFILE, FILES)
    _at_most(resource.RLIMIT_NPROC, threads)
    _at_most(resource.RLIMIT_CORE, 0)
    _at_most(resource.RLIMIT_MEMLOCK, 0)


def _at_most(what: int, amount: int) -> None:
    _, hard = resource.getrlimit(what)
    amount = amount if hard == resource.RLIM_INFINITY else min(amount, hard)
    resource.setrlimit(what, (amount, amount))


def _address_space() -> int:
    try:
        return int(Path("/proc/self/statm").read_text().partition(" ")[0]) * resource.getpagesize()
    except OSError:
        return 16 << 30


def _readable(path: str) -> bool:
    try:
        os.close(os.open(path, os.O_RDONLY))
    except OSError:
        return False
    return True


def _write(path: str, text: str) -> None:
    with open(path, "w") as file:  # noqa: PTH123
        file.write(text)
