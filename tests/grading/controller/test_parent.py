"""Warm parents that do not do what they are told."""

import time

import pytest

from course_utils.grading.controller import parent
from course_utils.grading.controller.parent import ParentFailed, WarmParent
from course_utils.grading.wire import Limits

LIMITS = Limits("none", 60.0, 1_000_000)


@pytest.fixture
def dying(tmp_path, monkeypatch):
    """A program that dies at its start, as one that cannot import a library."""
    (tmp_path / "dying.py").write_text("import sys\nprint('loading', file=sys.stderr)\nimport no_such_library\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setattr(parent, "RUNNER", "dying")
    found = WarmParent()
    yield found
    found.close()


GONE = r"^the warm parent ended with code 1: ModuleNotFoundError: No module named 'no_such_library'$"


def test_of_one_that_dies_before_it_reads_its_orders_it_is_said_that_it_is_gone(dying):
    line = dying.begin("00_start_here", LIMITS)  # it has not started yet
    before = time.monotonic()
    with line, pytest.raises(ParentFailed, match=GONE):
        dying.started()
    assert time.monotonic() - before < parent.START_SECONDS / 2


def test_of_one_that_is_gone_when_it_is_told_its_last_line_is_told(dying):
    dying._process.wait()
    with pytest.raises(ParentFailed, match=GONE):
        dying.begin("00_start_here", LIMITS)


def test_of_one_that_is_silent_it_is_said_for_how_long(dying, monkeypatch, tmp_path):
    monkeypatch.setattr(parent, "START_SECONDS", 0.2)
    (tmp_path / "dying.py").write_text("import time\ntime.sleep(60)\n")
    silent = WarmParent()
    try:
        with silent.begin("00_start_here", LIMITS), pytest.raises(ParentFailed, match=r"said nothing for 0\.2 seconds"):
            silent.started()
    finally:
        silent.close()


def test_of_one_that_was_killed_there_is_no_last_line(dying, monkeypatch, tmp_path):
    (tmp_path / "dying.py").write_text("import time\ntime.sleep(60)\n")
    killed = WarmParent()
    killed.kill()
    try:
        killed._process.wait()
        with pytest.raises(ParentFailed, match=r"^the warm parent ended with code -9$"):
            killed.begin("00_start_here", LIMITS)
    finally:
        killed.close()


def test_one_that_says_much_is_not_stopped_by_that_nobody_listens(dying, monkeypatch, tmp_path):
    (tmp_path / "dying.py").write_text("import os, sys\nos.write(2, b'x' * 2_000_000 + b'\\n')\nsys.exit('the end')\n")
    loud = WarmParent()
    try:
        assert loud._process.wait(timeout=60) == 1
        with pytest.raises(ParentFailed, match=r"^the warm parent ended with code 1: the end$"):
            loud.begin("00_start_here", LIMITS)
    finally:
        loud.close()


UNABLE = """
import sys
from course_utils.grading.sandbox import confinement, runner
def enter(limits, keep):
    raise OSError("no room")
confinement.enter = enter
runner.main(int(sys.argv[1]))
"""


def test_of_a_sandbox_that_cannot_be_entered_the_reason_is_told(dying, tmp_path):
    (tmp_path / "dying.py").write_text(UNABLE)
    unable = WarmParent()
    try:
        with unable.begin("00_start_here", LIMITS):
            unable.started()
            unable.stop(hung_up=True)
            ended = unable.ended()
        assert (ended.how, ended.detail) == ("refused", "the sandbox could not be entered: OSError: no room")
    finally:
        unable.close()
