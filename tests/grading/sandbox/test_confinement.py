"""The sandbox: what code inside each mode cannot do, as root and as an ordinary user, and limits that hold."""

import errno
import fcntl
import os
import resource
import signal
import struct
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

from course_utils.grading import wire
from course_utils.grading.sandbox import confinement, kernel, landlock, seccomp

MODES = [mode for mode in wire.MODES if mode != "none"]
USER = 1000


def inside(mode: str, action: Callable[[], object], ordinary: bool = False, **limits: object) -> int:
    """Run an action in the sandbox. Return 0 where it succeeds, the errno where it raises OSError, or 200 and more."""
    watcher = os.fork()
    if watcher == 0:
        try:
            if ordinary and os.geteuid() == 0:
                os.setgroups([])
                os.setresgid(USER, USER, USER)
                os.setresuid(USER, USER, USER)
                kernel.prctl(4, 1)  # as after the start of a program: its files in /proc are its own
            settings = wire.Limits(mode, 20, 200_000_000, **limits)  # type: ignore[arg-type]
            confinement.separate(settings)
            child = os.fork()
            if child == 0:
                confinement.enter(settings, ())
                os._exit(_code(action))
            code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
            os._exit(code if code >= 0 else 200 - code)
        except BaseException:
            os._exit(255)
    code = os.waitstatus_to_exitcode(os.waitpid(watcher, 0)[1])
    if code == 255:
        pytest.skip(f"{mode} does not work here")
    return code


def _code(action: Callable[[], object]) -> int:
    try:
        action()
    except OSError as error:
        return error.errno or 199
    except BaseException:
        return 198
    return 0


def _opened(path: str) -> int:
    return os.open(path, os.O_RDONLY)


def _connect() -> None:
    import socket

    socket.socket()


FORBIDDEN = {
    "read a file": lambda: Path("/etc/passwd").read_text(),
    "list the root of the machine": lambda: Path("/etc").iterdir().__next__(),
    "write a file": lambda: Path("/var/tmp/evil").write_text("x"),
    "fork": os.fork,
    "run a program": lambda: os.execv("/bin/true", ["true"]),
    "open a socket": _connect,
    "be root": lambda: os.setuid(0),
    "unshare": lambda: kernel.unshare(kernel.CLONE_NEWUSER),
    "mount": lambda: kernel.mount("x", "/tmp", "tmpfs"),
    "signal the parent": lambda: os.kill(os.getppid() or -1, 0),
    "signal everybody": lambda: os.kill(-1, 0),
    "lift a limit": lambda: resource.setrlimit(resource.RLIMIT_AS, (-1, -1)),
    "outlive its parent": lambda: kernel.prctl(kernel.PR_SET_PDEATHSIG, 0),
    "make memory files": lambda: os.memfd_create("x"),
    "change the priority": lambda: os.nice(-1),
    "own a pipe's signals": lambda: fcntl.fcntl(0, 8, 1),
    "lock a file": lambda: fcntl.flock(0, fcntl.LOCK_SH | fcntl.LOCK_NB),
    "lock a part of a file": lambda: fcntl.lockf(1, fcntl.LOCK_EX | fcntl.LOCK_NB),
    "lock a part of a file once opened": lambda: fcntl.fcntl(0, 37, struct.pack("hhqqi4x", 0, 0, 0, 0, 0)),
    "be told of changes in a folder": lambda: fcntl.fcntl(_opened("/"), 1026, 1),
    "leave a hint on a file": lambda: fcntl.fcntl(0, 1036, struct.pack("Q", 2)),
}


# Namespaces without a user namespace are for root alone.
@pytest.mark.parametrize(
    ("mode", "ordinary"), [(mode, who) for mode in MODES for who in (False, True) if (mode, who) != (MODES[0], True)]
)
@pytest.mark.parametrize("what", FORBIDDEN)
def test_nobody_inside_can(what: str, mode: str, ordinary: bool) -> None:
    assert inside(mode, FORBIDDEN[what], ordinary) not in (0, 255)


LOCKS = ["lock a file", "lock a part of a file", "lock a part of a file once opened"]


@pytest.mark.parametrize("what", ["read a file", "fork", "open a socket", "make memory files", *LOCKS])
def test_outside_anybody_can(what: str) -> None:
    def action() -> None:
        if FORBIDDEN[what]() == 0:
            os._exit(0)

    assert inside("none", action) == 0


@pytest.mark.parametrize("mode", wire.MODES)
def test_nobody_inside_has_a_stream_of_the_process_that_it_was_forked_from(mode: str) -> None:
    """Else who fills a pipe there stops whoever writes next, and siblings see what is done to it."""

    def action() -> None:
        for stream in range(3):
            assert os.fstat(stream).st_rdev == os.makedev(1, 3), "it is no /dev/null"
            fcntl.fcntl(stream, fcntl.F_SETFL, os.O_NONBLOCK)

    kept = [os.dup(stream) for stream in range(3)]
    read, write = os.pipe()
    nothing = os.open(os.devnull, os.O_RDWR)
    try:
        for stream, given in enumerate((nothing, nothing, write)):
            os.dup2(given, stream)
        code = inside(mode, action)
        flags = [fcntl.fcntl(stream, fcntl.F_GETFL) & os.O_NONBLOCK for stream in range(3)]
    finally:
        for stream, before in enumerate(kept):
            os.dup2(before, stream)
        for descriptor in (*kept, read, write, nothing):
            os.close(descriptor)
    assert code == 0
    assert flags == [0, 0, 0], "they are the child's own"


CHANGES = {
    "who may open it": lambda path: path.chmod(0o600),
    "who may open it, by a descriptor": lambda path: os.fchmod(_opened(str(path)), 0o600),
    "when it was written": lambda path: os.utime(path, (1, 1)),
    "its length": lambda path: os.truncate(path, 0),
    "what memory holds of it": lambda path: os.posix_fadvise(_opened(str(path)), 0, 0, os.POSIX_FADV_DONTNEED),
}


@pytest.mark.parametrize("mode", ["user namespaces", "landlock"])
@pytest.mark.parametrize("what", CHANGES)
def test_nobody_changes_a_file_of_their_own_user(what: str, mode: str) -> None:
    """Whose submissions run as that user, as the teacher's do without root."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "library.py")
        file.write_text("x")
        for path, allowed in ((Path(folder), 0o755), (file, 0o644)):
            path.chmod(allowed)
            if os.geteuid() == 0:
                os.chown(path, USER, USER)
        before = file.stat()
        assert inside(mode, lambda: CHANGES[what](file), ordinary=True, readable=(folder,)) == errno.EPERM
        assert file.stat() == before
        assert inside("none", lambda: CHANGES[what](file), ordinary=True) == 0


def _threads() -> None:
    import threading

    thread = threading.Thread(target=lambda: None)
    thread.start()
    thread.join()


ALLOWED = {"start a thread": _threads, "ask for random bytes": lambda: os.urandom(8), "have pipes": os.pipe}
ALLOWED["raise a signal of its own"] = lambda: signal.raise_signal(signal.SIGCHLD)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("what", ALLOWED)
def test_everybody_inside_can(what: str, mode: str) -> None:
    assert inside(mode, ALLOWED[what]) == 0


@pytest.mark.parametrize("mode", [mode for mode in MODES if mode != "landlock"])
def test_readable_folders_can_be_read_but_not_written_and_hidden_ones_not_even_read(mode: str, tmp_path: Path) -> None:
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret" / "answer").write_text("8")
    (tmp_path / "open").write_text("x")
    for path in (tmp_path, *tmp_path.iterdir(), tmp_path / "secret" / "answer"):
        path.chmod(0o777)
    seen = {"readable": (str(tmp_path),), "hidden": (str(tmp_path / "secret"),)}
    assert inside(mode, (tmp_path / "open").read_text, **seen) == 0
    assert inside(mode, lambda: (tmp_path / "open").write_text("y"), **seen) != 0
    assert inside(mode, (tmp_path / "secret" / "answer").read_text, **seen) != 0
    assert inside(mode, lambda: Path("/tmp/mine").write_text("x"), **seen) == 0


def test_landlock_leaves_out_a_course_among_libraries_and_nothing_else() -> None:
    with tempfile.TemporaryDirectory() as folder:  # pytest's own can be reached by its user alone
        libraries = Path(folder, "lib")
        course = libraries / "site-packages" / "course"
        for path in (course / "__init__.py", course / "secret" / "answer", libraries / "site-packages" / "other.py"):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("8")
        for path in (Path(folder), libraries, *libraries.rglob("*")):
            path.chmod(0o755)
        seen = {"readable": (str(libraries),), "hidden": (str(course / "secret"),)}
        assert inside("landlock", (libraries / "site-packages" / "other.py").read_text, **seen) == 0
        assert inside("landlock", lambda: list((libraries / "site-packages").iterdir()), **seen) == 0
        assert inside("landlock", (course / "secret" / "answer").read_text, **seen) == errno.EACCES
        assert inside("landlock", (course / "__init__.py").read_text, **seen) == errno.EACCES


@pytest.mark.parametrize("mode", MODES)
def test_memory_and_files_are_limited(mode: str) -> None:
    assert inside(mode, lambda: bytearray(10**9)) == 198
    assert inside(mode, lambda: [os.dup(0) for _ in range(1000)]) != 0


def test_the_filter_is_for_this_process_and_fits_its_jumps() -> None:
    for machine in ("x86_64", "aarch64"):
        code = seccomp.program(machine, 7)
        instructions = list(struct.iter_unpack("HBBI", code))
        assert len(instructions) < 4096
        for place, (_, yes, no, _) in enumerate(instructions):
            assert place + 1 + max(yes, no) < len(instructions) or not max(yes, no)
        assert instructions[-1][3] == 0x00050001
    with pytest.raises(KeyError):
        seccomp.program("vax", 7)


def test_a_foreign_system_call_gets_its_own_reason() -> None:
    with pytest.raises(OSError, match="landlock_add_rule"):
        kernel.call("landlock_add_rule", -1, 1, b"", 0)
    assert landlock.version() >= 0
