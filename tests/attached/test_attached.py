"""What a task's picture shows is what its judge runs."""

import base64
from pathlib import Path

import pytest

from course_utils import notebooks
from course_utils.checks.registry import exercises
from course_utils.notebooks.plots import alike
from tests.attached import PICTURES, png

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("folder", ["solutions", "exercises"])
@pytest.mark.parametrize("name", PICTURES)
def test_the_attached_picture_is_drawn_from_what_the_judge_runs(name, folder):
    cells = notebooks.read(ROOT / folder / f"{exercises()[name].lesson}.ipynb").cells
    (task,) = [cell for cell in cells if f"(attachment:{name}.png)" in cell.source]
    stored = task.attachments[f"{name}.png"]["image/png"]
    assert alike("".join(stored), png(name)), "run `python -m tests.attached`, then `course build`"


@pytest.mark.parametrize("name", PICTURES)
def test_an_attached_picture_is_small(name):
    assert len(base64.b64decode(png(name))) < 60_000
