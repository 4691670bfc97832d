"""The page that leads from a question or an error message to the section that answers it."""

import re
from collections import Counter
from pathlib import Path
from urllib.parse import unquote

import pytest

from course_utils import notebooks
from course_utils.checks.registry import LESSONS, exercises

FOLDER = Path(__file__).parents[1] / "notebooks"
INDEX = (FOLDER / "README.md").read_text(encoding="utf-8")
LINKS = re.findall(r"\[([^\]]+)\]\(([^)#]+\.ipynb)(?:#([^)]+))?\)", INDEX)
ROWS = [row.split(" | ", 1) for row in re.findall(r"^\| (.+) \|$", INDEX, re.MULTILINE) if ".ipynb#" in row]


def headings(path: Path) -> set[str]:
    """Return the headings of a notebook as Jupyter makes anchors of them: without markup, spaces as dashes."""
    text = "\n".join(cell.source for cell in notebooks.read(path).cells if cell.cell_type == "markdown")
    text = re.sub(r"```.*?```", "", text, flags=re.DOTALL)
    return {
        heading.replace("`", "").strip().replace(" ", "-") for heading in re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    }


def everything(path: Path) -> str:
    """Return a notebook's text, code and printed outputs, with runs of white space as one space."""
    cells = notebooks.read(path).cells
    outputs = [str(output) for cell in cells for output in cell.get("outputs", [])]
    return re.sub(r"(\s|\\n)+", " ", " ".join([cell.source for cell in cells] + outputs)).replace("\\'", "'")


@pytest.mark.parametrize(("text", "name", "anchor"), LINKS, ids=[f"{name[:2]} {text}" for text, name, _ in LINKS])
def test_every_link_lands_on_a_heading(text, name, anchor):
    assert (FOLDER / name).exists()
    assert not anchor or unquote(anchor) in headings(FOLDER / name)


def test_the_index_is_long_enough_to_be_one():
    assert len(ROWS) >= 60
    assert {name for _, name, anchor in LINKS if anchor} == {
        path.name for path in FOLDER.glob("*.ipynb") if not path.name.startswith("00")
    }


MESSAGES = [(row, target) for row, target in ROWS if re.fullmatch(r"`[^`]+`", row)]


@pytest.mark.parametrize(("message", "target"), MESSAGES, ids=[message for message, _ in MESSAGES])
def test_every_message_stands_in_each_lesson_that_explains_it(message, target):
    for _, name, _ in re.findall(r"\[([^\]]+)\]\(([^)#]+)#([^)]+)\)", target):
        text = everything(FOLDER / name)
        for part in message.strip("`").split(" ... "):
            assert part in text, f"{name} does not have {part!r}"


def test_the_readme_lists_every_lesson_with_its_exercises():
    text = (FOLDER.parent / "README.md").read_text(encoding="utf-8")
    listed = re.findall(r"\(notebooks/(\d\d_\w+)\.ipynb\) \| [^|]+ \| \[(\d+)\]\(exercises/(\d\d_\w+)\.ipynb\)", text)
    counted = Counter(exercise.lesson for exercise in exercises().values())
    assert listed == [(lesson, str(counted[lesson]), lesson) for lesson in LESSONS]
    assert sum(counted.values()) >= 55
    assert min(counted[lesson] for lesson in LESSONS[1:]) >= 5
