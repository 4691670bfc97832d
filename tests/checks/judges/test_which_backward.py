"""The Functions of `which_backward` are shown as they are run."""

from pathlib import Path

import pytest

from course_utils import notebooks
from course_utils.checks.judges.lesson_10_custom_functions.which_backward import FUNCTIONS

MASTER = Path(__file__).parents[3] / "solutions" / "10_custom_functions.ipynb"


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_task_shows_the_function_that_is_run(name):
    (task,) = [cell.source for cell in notebooks.read(MASTER).cells if ". Which test finds it out?\n" in cell.source]
    forward, backward = FUNCTIONS[name]
    assert f"| `{name}` | `{forward}` | `{backward}` |" in task
