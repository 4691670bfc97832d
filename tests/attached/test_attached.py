"""What a task's picture shows is what its judge runs."""

import base64
import re
from pathlib import Path

import pytest

from course_utils import notebooks
from course_utils.checks.registry import exercises
from course_utils.checks.scenes.lesson_02_how_backward_works.missing_numbers import missing, passed
from course_utils.notebooks.plots import alike
from tests.attached import PICTURES, passes, png

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


@pytest.mark.parametrize("folder", ["solutions", "exercises"])
def test_the_words_for_the_pass_stand_in_its_task(folder):
    cells = notebooks.read(ROOT / folder / "02_how_backward_works.ipynb").cells
    (task,) = [cell for cell in cells if f"![{passes.ALT}](attachment:missing_numbers.png)" in cell.source]
    assert task.attachments["missing_numbers.png"]["image/png"]


def shown(text):
    """Return the whole numbers and single letters that stand in a text by themselves."""
    return set(re.findall(r"(?<![\w.-])-?\d+(?!\w|\.\d)|(?<!\w)[A-D](?!\w)", text))


def test_neither_picture_nor_words_tell_what_is_missing():
    hidden = missing(passed())
    drawn = shown(" ".join(re.findall(r">([^<]+)</text>", passes.svg())))
    for told in (drawn, shown(passes.ALT)):
        assert set(hidden) <= told
        assert not told & {f"{number:g}" for number in hidden.values()}


def test_the_words_for_the_pass_give_the_numbers_that_ran():
    recording = passed()
    received = [event.received[0].values for event in recording.events]
    assert received == [1, 2, 24, -24, 34, 136]
    drawn = shown(" ".join(re.findall(r">([^<]+)</text>", passes.svg().partition('class="legend"')[0])))
    assert drawn - shown(passes.ALT) == set()
