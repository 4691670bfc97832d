"""Large pages: which memory may be moved, and that what lies in it stays and a fork shares it."""

import subprocess
import sys

import pytest

from course_utils.grading.controller.machine import child_environment
from course_utils.grading.sandbox import pages
from tests.portable import ROOT

MAPS = """\
00400000-00600000 r-xp 00000000 fe:00 131  /usr/bin/python3
01000000-01100000 rw-p 00000000 00:00 0
01ff0000-02500000 rw-p 00000000 00:00 0  [heap]
10000000-10400000 rw-p 00000000 00:00 0
20000000-20400000 rw-p 00000000 fe:00 132  /usr/lib/a library.so
30000000-30400000 rw-s 00000000 00:01 133  /dev/zero (deleted)
40000000-40400000 rw-p 00000000 00:00 0  [stack]
50000000-50400000 r--p 00000000 00:00 0
"""

# Holds 40 MB, moves it, lets a child write into its copy, and prints how much lies in large pages, in kB, and whether
# all is as it was.
_MOVED = """
import os
from course_utils.grading.sandbox import pages
held = [bytearray(str(n), "ascii") * 500 for n in range(20_000)]
before = hash(b"".join(held))
pages.enlarge()
if os.fork() == 0:
    held[7][:] = b"changed"
    os._exit(0)
os.wait()
lines = open("/proc/self/smaps_rollup").read().splitlines()
large = next(int(line.split()[1]) for line in lines if line.startswith("AnonHugePages:"))
print(large, hash(b"".join(held)) == before)
"""


def test_whole_large_pages_of_a_process_s_own_memory_may_be_moved() -> None:
    assert list(pages._areas(MAPS)) == [(0x2000000, 0x400000), (0x10000000, 0x400000)]


def test_what_is_moved_stays_as_it_was() -> None:
    command = [sys.executable, "-c", _MOVED]
    done = subprocess.run(command, cwd=ROOT, env=child_environment(), capture_output=True, text=True, check=True)
    large, same = done.stdout.split()
    assert same == "True"
    if large == "0":
        pytest.skip("this kernel moves no memory into large pages")
    assert int(large) > 20_000
