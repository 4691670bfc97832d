"""What a child finds as its parent has it, although it may read nothing of the machine: the first one, too."""

import subprocess
import sys

import pytest

from course_utils.grading import wire
from course_utils.grading.controller.machine import child_environment
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
