"""`first_gradient`: the lines of its task, run, hold what the check takes for right, and wrong ideas what it says."""

import re
from pathlib import Path

import pytest

from course_utils import notebooks
from tests.answers import MISCONCEIVED

MASTER = notebooks.read(Path(__file__).parents[3] / "solutions" / "00_start_here.ipynb")
CLEAR = "optimizer.zero_grad()\n"
STEP = "optimizer.step()\n"


def after(old: str = "", new: str = "") -> float:
    """Run the lines, with one part in place of another, and return what x.grad holds."""
    (task,) = (cell.source for cell in MASTER.cells if cell.source.startswith("## 1. Predict a gradient"))
    names: dict = {}
    exec("import torch\n" + re.search(r"```python\n(.*?)```", task, re.DOTALL)[1].replace(old, new, 1), names)
    return names["x"].grad.item()


def test_the_lines_hold_what_is_right() -> None:
    assert after() == 8


@pytest.mark.parametrize(
    ("idea", "old", "new"),
    [
        ("one term only", " + 2 * x", ""),
        ("the step moved it", CLEAR + STEP, STEP + CLEAR),
        ("never cleared", CLEAR + STEP, ""),
    ],
)
def test_a_wrong_idea_is_what_other_lines_would_hold(idea: str, old: str, new: str) -> None:
    assert after(old, new) == pytest.approx(MISCONCEIVED["first_gradient", idea])
