"""The page that leads from a question or an error message to the section that answers it."""

import ast
import re
from collections import Counter
from functools import cache
from pathlib import Path
from urllib.parse import unquote

import pytest

from course_utils import notebooks
from course_utils.audit.rules import RULES
from course_utils.checks.registry import LESSONS, exercises
from course_utils.explain.sections import codes, section
from course_utils.inline import anchor

FOLDER = Path(__file__).parents[1] / "notebooks"
INDEX = (FOLDER / "README.md").read_text(encoding="utf-8")
LINKS = re.findall(r"\[([^\]]+)\]\(([^)#]+\.ipynb)(?:#([^)]+))?\)", INDEX)
ROWS = [row.split(" | ", 1) for row in re.findall(r"^\| (.+) \|$", INDEX, re.MULTILINE) if ".ipynb#" in row]


@cache
def headings(path: Path) -> frozenset[str]:
    """Return the headings of a notebook as Jupyter makes anchors of them: without markup, spaces as dashes."""
    text = "\n".join(cell.source for cell in notebooks.read(path).cells if cell.cell_type == "markdown")
    text = re.sub(r"```.*?```", "", text, flags=re.DOTALL)
    found = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return frozenset(map(anchor, found))


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
    assert {name for _, name, anchor in LINKS if anchor} >= {
        path.relative_to(FOLDER).as_posix()
        for path in notebooks.lessons(FOLDER.parent)
        if not path.name.startswith("00")
    }


MESSAGES = [(row, target) for row, target in ROWS if re.fullmatch(r"`[^`]+`", row)]


@pytest.mark.parametrize(("message", "target"), MESSAGES, ids=[message for message, _ in MESSAGES])
def test_every_message_stands_in_each_lesson_that_explains_it(message, target):
    for _, name, _ in re.findall(r"\[([^\]]+)\]\(([^)#]+)#([^)]+)\)", target):
        text = everything(FOLDER / name)
        for part in message.strip("`").split(" ... "):
            assert part in text, f"{name} does not have {part!r}"


# Codes of audits and of cards. Each row has an anchor, "audit-CODE" or "explain-CODE", and leads to the code's section.

FAMILIES = FOLDER.parent / "course_utils" / "explain" / "families"


def said_by(family: Path) -> set[str]:
    """Return the codes of cards that a family's module names."""
    tree = ast.parse(family.read_text(encoding="utf-8"))
    return {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and node.value in codes()}


def families() -> dict[str, set[str]]:
    """Return the families of cards, and the codes of each."""
    return {path.stem: said_by(path) for path in sorted(FAMILIES.glob("*.py")) if path.stem != "__init__"}


SECTIONS = {f"audit-{code}": rule.section for code, rule in RULES.items()}
SECTIONS |= {f"explain-{code}": section(code) for code in sorted(set().union(*families().values()))}


def test_there_are_codes_to_look_for():
    assert len(RULES) >= 40
    assert len(families()) >= 17
    assert all(families().values())
    assert len(SECTIONS) >= 150


@pytest.mark.parametrize("anchor", SECTIONS)
def test_every_code_is_in_the_index_and_leads_to_its_section(anchor):
    notebook, _, heading = SECTIONS[anchor].partition("#")
    assert heading in headings(FOLDER / f"{notebook}.ipynb"), "its section is no heading of the course"
    (row,) = re.findall(rf'<a id="{anchor}"></a>(.*?)(?:<br>|\n)', INDEX) or ["no row has this anchor"]
    targets = re.findall(r"\]\(([^)]+)\)", row)
    assert [unquote(target) for target in targets] == [f"{notebook}.ipynb#{heading}"], row


def test_the_index_has_no_code_that_nobody_says():
    anchors = re.findall(r'<a id="([^"]+)"></a>', INDEX)
    assert sorted(anchors) == sorted([*SECTIONS, *(f"explain-{family}" for family in families())])


def test_the_readme_lists_every_lesson_with_its_exercises():
    text = (FOLDER.parent / "README.md").read_text(encoding="utf-8")
    listed = re.findall(r"\(notebooks/(\d\d_\w+)\.ipynb\) \| [^|]+ \| \[(\d+)\]\(exercises/(\d\d_\w+)\.ipynb\)", text)
    counted = Counter(exercise.lesson for exercise in exercises().values())
    assert listed == [(lesson, str(counted[lesson]), lesson) for lesson in LESSONS]
    assert sum(counted.values()) >= 55
    assert min(counted[lesson] for lesson in LESSONS[1:]) >= 5


def test_the_glossary_is_sorted_and_each_word_leads_to_a_lesson():
    entries = re.findall(r"^- \*\*(.+?)\*\*: (.+)$", INDEX.partition("## Glossary")[2], re.MULTILINE)
    words = [word.lower() for word, _ in entries]
    assert len(words) >= 30
    assert words == sorted(set(words))
    assert all(re.search(r"\]\((deeper/)?\d\d_\w+\.ipynb", text) for _, text in entries)
    searched = ("tape", "grad_outputs", "retain_variables", "volatile", "grad_output")
    assert all(f"{name}" in " ".join(text for _, text in entries) for name in searched)
