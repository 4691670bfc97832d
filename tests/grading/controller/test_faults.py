"""Why an answer is not there, told from how the cells ended."""

import time

import pytest

from course_utils.checks.registry import exercise_called
from course_utils.grading import wire
from course_utils.grading.controller.faults import fault
from course_utils.grading.submission import Cell

SLOPE = exercise_called("slope")
STAGE = exercise_called("create_graph")  # of lesson 11: its answer is `engine`


def ran(*raised: tuple[int, str], **others: tuple[int, ...]) -> wire.Ran:
    return wire.Ran(b"", raised=raised, **others)


@pytest.mark.parametrize(
    "source",
    [
        "def slope(x):\n    return y",
        "import numpy\n\nasync def slope(x): pass",
        "class slope:\n    pass",
        "    slope = ...",
        "slope: object = 3",
        "slope = ...\n\ndef slope(x:\n  return",
    ],
)
def test_the_cell_that_binds_the_name_is_the_answers(source: str) -> None:
    cells = (Cell(2, "import torch"), Cell(5, source))
    assert fault(SLOPE, False, cells, ran((1, "NameError: no"))) == (
        "Cell 5, where the answer stands, raised an error: NameError: no"
    )


@pytest.mark.parametrize("source", ["slope(3)", "slope == 3", "out = slope", "def slopes(x): pass", "my.slope = 1"])
def test_no_other_cell_is(source: str) -> None:
    assert fault(SLOPE, False, (Cell(1, source),), ran((0, "NameError: no"))) == ""


def test_nbgraders_mark_tells_a_cell_whatever_stands_in_it() -> None:
    cells = (Cell(3, "engine = make()"), Cell(9, "add(engine)", "create_graph"))
    told = "Cell 9, where the answer stands, raised an error: NameError: add"
    assert fault(STAGE, False, cells, ran((0, "NameError: make"), (1, "NameError: add"))) == told
    assert fault(STAGE, True, cells, ran((1, "NameError: add"))) == told
    assert fault(STAGE, False, cells, ran((0, "NameError: make"))).startswith("Cell 3, ")
    assert fault(STAGE, True, cells, ran((0, "NameError: make"))) == ""  # `engine` is there: the stage is not


@pytest.mark.parametrize(
    "error",
    [
        "FileNotFoundError: [Errno 2] No such file or directory",
        "PermissionError: [Errno 1] Operation not permitted",
        "BlockingIOError: [Errno 11] Resource temporarily unavailable",
        "ConnectionRefusedError: [Errno 111] Connection refused",
        "URLError: <urlopen error [Errno 1] Operation not permitted>",
        "OSError: [Errno 38] Function not implemented",
        "gaierror: [Errno -3] Temporary failure in name resolution",
    ],
)
def test_where_the_sandbox_refuses_something_the_message_says_what_there_is_not(error: str) -> None:
    told = fault(SLOPE, False, (Cell(2, "slope = 1"),), ran((0, error)))
    assert told == (
        f"Cell 2, where the answer stands, raised an error: {error}. The grader runs a notebook as one process, "
        "without your disk, other programs or a network: an answer needs none of them. A DataLoader gets num_workers=0."
    )


def test_what_was_stopped_is_a_fault_too() -> None:
    cells = (Cell(4, "slope = 1"),)
    assert fault(SLOPE, False, cells, ran(stopped=(0,))) == (
        "Cell 4, where the answer stands, was still running at its time limit and was stopped."
    )
    assert fault(SLOPE, False, cells, ran(starved=(0,))) == (
        "Cell 4, where the answer stands, asked for more memory than it may have."
    )
    assert fault(SLOPE, False, cells, ran()) == ""
    assert fault(SLOPE, False, cells, ran((7, "ValueError"))) == ""  # no such cell


def test_what_a_process_says_is_one_line_that_prints() -> None:
    told = fault(SLOPE, False, (Cell(1, "slope = 1"),), ran((0, "E: \x1b[2J\n\u202eall points\x00")))
    assert told.isprintable()
    assert told.endswith("E:  [2J  all points")


def test_no_source_is_slow() -> None:
    start = time.process_time()
    for source in (" " * 900_000, "slope" * 180_000, "slope:" * 150_000, "slope " * 150_000, "async " * 150_000):
        assert fault(SLOPE, False, (Cell(1, source),), ran((0, "E"))) == ""
    assert time.process_time() - start < 2
