"""What a child finds as its parent has it, although it may read nothing of the machine: the first one, too."""

import os
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from course_utils.grading import wire
from course_utils.grading.controller.machine import child_environment
from course_utils.grading.controller.pool import Grader
from course_utils.grading.sandbox import confinement, landlock
from tests.grading.submissions import RIGHT, submission
from tests.portable import ROOT

# Enters the sandbox before anything else has been computed, as the child of a run's first submission does.
FIRST = """
import os
import sys
import torch
from course_utils.grading import wire
from course_utils.grading.sandbox import confinement
from course_utils.grading.sandbox.warm import Warmth
Warmth()
limits = wire.Limits(sys.argv[1], 20, 500_000_000)
receives, sends = os.pipe()
if os.fork() == 0:
    confinement.separate(limits)
    if os.fork() == 0:
        confinement.enter(limits, (sends,))
        os.write(sends, torch.backends.cpu.get_cpu_capability().encode())
        os._exit(0)
    os.wait()  # it ends with its watcher
    os._exit(0)
os.close(sends)
inside = os.read(receives, 100).decode()
print(inside or "refused", torch.backends.cpu.get_cpu_capability())
"""


@pytest.mark.parametrize("mode", wire.MODES)
def test_the_first_child_computes_with_the_instructions_that_its_judge_has(mode: str) -> None:
    """Without vector instructions sums and products are rounded otherwise: right answers differ in their last bits."""
    command = [sys.executable, "-c", FIRST, mode]
    done = subprocess.run(
        command, cwd=ROOT, env=child_environment(), capture_output=True, text=True, check=True, timeout=120
    )
    inside, outside = done.stdout.split()
    if inside == "refused":
        pytest.skip(f"{mode} does not work here")
    assert inside == outside


def test_who_becomes_a_stranger_can_import_only_from_folders_that_are_open_to_all(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def can(mode: wire.Mode, user: int) -> bool:
        monkeypatch.setattr(os, "geteuid", lambda: user)
        return confinement.can_import(wire.Limits(mode, 1, 1, readable=("/usr", str(library))))

    with TemporaryDirectory(dir="/tmp") as private:  # not tmp_path, which lies in folders that are private, too
        library = Path(private, "lib")
        library.mkdir()
        library.chmod(0o755)
        assert not can("landlock", 0)
        assert can("landlock", 1000)
        assert can("namespaces", 0)
        Path(private).chmod(0o711)
        assert can("landlock", 0)


OPTIMIZES = """
import torch
import numpy
def slope(x):  # PyTorch and NumPy import more when these are first used
    numpy.random.rand()
    torch.optim.SGD([torch.ones(1, requires_grad=True)], lr=0.1).zero_grad()
    return 3 * x.detach() ** 2
"""


@pytest.mark.skipif(not landlock.version() or os.geteuid() != 0, reason="it takes Landlock, and root to become another")
def test_with_landlock_alone_the_first_child_lacks_nothing_that_it_would_import() -> None:
    """Where Python lies in a folder for root alone, such as /root, it could not."""
    grader = Grader()
    try:
        result = grader.grade(submission("first", RIGHT, OPTIMIZES), wire.Limits("landlock", 60, 1_000_000_000))
    finally:
        grader.close()
    assert {row.messages for row in result.exercises} == {()}
    assert result.score == result.points
