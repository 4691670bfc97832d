"""Entries as they stand in notebooks, and the form that each of the course's has."""

import re
from pathlib import Path
from urllib.parse import unquote

import nbformat
import pytest

from course_utils.ask.entries import Entry, EntryError, entries, entries_of, first_sentence
from course_utils.audit.rules import RULES
from course_utils.explain.sections import codes
from course_utils.inline import anchor
from tests.test_index import headings

ROOT = Path(__file__).parents[2]
KNOWN = entries(ROOT)


def written(folder, *cells):
    """Write a notebook of texts and, from "code:" on, code."""
    made = [
        nbformat.v4.new_code_cell(text.removeprefix("code:"))
        if text.startswith("code:")
        else nbformat.v4.new_markdown_cell(text)
        for text in cells
    ]
    path = folder / "step.ipynb"
    nbformat.write(nbformat.v4.new_notebook(cells=made), path)
    return path


def test_an_entry_is_a_heading_an_answer_a_run_and_why(tmp_path):
    path = written(
        tmp_path,
        "# The step",
        "## Does `step()` clear .grad?\n\nNo, e.g. it is only read. More follows.",
        "code:print(1)",
        "Because.\n\n**Fix.** Clear it.\n\n**Also asked as:** is grad reset; who\nclears grad.\n\n"
        "**Said by:** `no-zero-grad`",
        "## And Adam?\n\nThe same.",
        "code:print(2)",
        "Why.",
    )
    first, second = entries_of(path)
    assert first.question == "Does `step()` clear .grad?"
    assert first.answer == "No, e.g. it is only read."
    assert first.also == ("is grad reset", "who clears grad")
    assert first.codes == ("no-zero-grad",)
    assert first.run == "print(1)"
    assert first.link == "notebooks/questions/step.ipynb#Does-step%28%29-clear-.grad%3F"
    assert (second.question, second.also, second.why) == ("And Adam?", (), "Why.")


@pytest.mark.parametrize(
    ("cells", "missing"),
    [
        (("## Why?", "code:1", "Because."), "an answer under its heading"),
        (("## Why?\n\nSo.", "Because."), "a run"),
        (("## Why?\n\nSo.", "code:1"), "a text after its run"),
    ],
)
def test_an_entry_that_lacks_a_part_is_named(tmp_path, cells, missing):
    with pytest.raises(EntryError, match=rf"step.ipynb: 'Why\?' lacks {missing}"):
        entries_of(written(tmp_path, *cells))


def test_a_first_sentence_does_not_end_inside_a_name():
    assert first_sentence("`x.grad` is None until 2.0 is there. Then not.") == "`x.grad` is None until 2.0 is there."


def test_no_question_is_asked_twice():
    questions = [entry.question.lower() for entry in KNOWN]
    assert len(questions) == len(set(questions))
    assert KNOWN


@pytest.mark.parametrize("entry", KNOWN, ids=lambda entry: f"{entry.notebook}: {entry.question}")
def test_the_form_of_an_entry(entry: Entry):
    lines = [line for line in entry.run.splitlines() if line.strip()]
    assert len(lines) <= 14, "a run of about twelve lines"
    assert re.search(r"^(import|from) torch", entry.run, re.MULTILINE), "it can be pasted anywhere"
    assert "course_utils" not in entry.run
    plain = re.sub(r"`[^`]*`", "", entry.question)
    assert "__" not in plain, "without backticks two underscores become bold type, and the site finds no such heading"
    assert entry.also, "the other words in which people ask it"
    assert "**Fix.**" in entry.why
    assert re.search(r"\*\*Lesson:\*\* \[", entry.why)
    reason = entry.why.partition("**Fix.**")[0]
    assert 1 <= len(re.findall(r"[.?:](?=\s|$)", reason)) <= 8, "two to six sentences of why"
    assert set(entry.codes) <= {*codes(), *RULES}


@pytest.mark.parametrize("notebook", sorted({entry.notebook for entry in KNOWN}))
def test_links_of_entries_lead_somewhere(notebook):
    folder = ROOT / "notebooks" / "questions"
    for entry in KNOWN:
        if entry.notebook == notebook:
            for target, place in re.findall(r"\]\(([^)#]+\.ipynb)(?:#([^)]+))?\)", entry.why):
                assert (folder / target).exists(), f"{entry.question}: {target}"
                assert not place or unquote(place) in headings(folder / target), f"{entry.question}: #{place}"


@pytest.mark.parametrize("notebook", sorted({entry.notebook for entry in KNOWN}))
def test_the_section_that_an_entry_names_stands_in_the_lesson(notebook):
    """`**Lesson:** [deeper 07, Heading](address)`: that page has a heading with these words, in any case."""
    folder = ROOT / "notebooks" / "questions"
    for entry in KNOWN:
        if entry.notebook == notebook:
            for named, target in re.findall(r"\*\*Lesson:\*\* \[(?:deeper )?\d+, ([^\]]+)\]\(([^)#]+)", entry.why):
                wanted = anchor(named.removeprefix("deeper, ")).lower()
                assert any(wanted in heading.lower() for heading in headings(folder / target)), f"{target}: {named}"
