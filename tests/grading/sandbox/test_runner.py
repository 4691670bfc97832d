"""What a warm parent sees of the child that it watches over."""

import mmap
import os
import subprocess
import sys

import pytest

from course_utils.grading.sandbox import runner
from tests.grading.submissions import needs_a_sandbox

SIZE = 64_000_000
pytestmark = needs_a_sandbox


@pytest.mark.parametrize("flags", [mmap.MAP_PRIVATE, mmap.MAP_SHARED], ids=["private", "shared"])
def test_memory_that_belongs_to_no_file_is_counted(flags: int) -> None:
    processes = os.open("/proc", os.O_PATH)
    before = runner._private(runner._status(processes, os.getpid()))
    with mmap.mmap(-1, SIZE, flags | mmap.MAP_ANONYMOUS) as held:
        held.write(bytes(SIZE))
        grown = runner._private(runner._status(processes, os.getpid())) - before
        assert 0.95 * SIZE <= grown < 2.5 * SIZE, (
            "the zeros that are written may be there, too; the process may give up pages"
        )
    os.close(processes)


# In a process with one thread, as warm parents are. It holds 64 MB and forks; then the child holds 64 MB of its own.
_FORK = """
import os, sys
from course_utils.grading.sandbox import runner
size = int(sys.argv[1])
held = b"x" * size
ready, go = os.pipe(), os.pipe()
child = os.fork()
if child == 0:
    os.write(ready[1], b"1"), os.read(go[0], 1)
    own = b"y" * size
    os.write(ready[1], b"2"), os.read(go[0], 1)
    os._exit(0)
processes = os.open("/proc", os.O_PATH)
for _ in range(2):
    os.read(ready[0], 1)
    own, ours = (runner._private(runner._status(processes, it)) for it in (child, os.getpid()))
    print(own - ours)
    os.write(go[1], b"x")
os.waitpid(child, 0)
"""


def test_what_a_fork_shares_with_its_parent_is_not_its_own() -> None:
    done = subprocess.run([sys.executable, "-c", _FORK, str(SIZE)], capture_output=True, text=True, check=True)
    first, then = map(int, done.stdout.split())
    assert first < SIZE / 4
    assert 0.95 * SIZE <= then < 1.5 * SIZE, "each side has some pages that the other has not"


def test_a_process_that_is_gone_holds_nothing() -> None:
    processes = os.open("/proc", os.O_PATH)
    process = subprocess.Popen(["/bin/true"])
    process.wait()
    assert runner._status(processes, process.pid) == []
    assert runner._private([]) == 0
    os.close(processes)
