"""The programs of `find_the_cut`: shown as they are run, and cut from w alone."""

from pathlib import Path

import pytest

from course_utils import notebooks
from course_utils.checks.judges.lesson_06_detach_vs_no_grad.find_the_cut import PROGRAMS, reaches

MASTER = Path(__file__).parents[3] / "solutions" / "06_detach_vs_no_grad.ipynb"


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_task_shows_the_program_that_is_run(name):
    (task,) = [cell.source for cell in notebooks.read(MASTER).cells if "`find_the_cut`" in cell.source]
    assert f"`{name}`\n\n```text\n{PROGRAMS[name].numbered()}\n```" in task


@pytest.mark.parametrize("name", PROGRAMS)
def test_no_program_raises_and_b_always_learns(name):
    assert reaches(PROGRAMS[name].run(), "b")
