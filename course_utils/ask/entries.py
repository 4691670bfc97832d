"""The entries of notebooks/questions: each a question, an answer in one sentence, a run, and why."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from course_utils.inline import anchor

FOLDER = "notebooks/questions"

_ALSO = re.compile(r"\*\*Also asked as:?\*\*:?(.*?)(?:\n\n|\Z)", re.DOTALL)
_CODES = re.compile(r"\*\*Said by:?\*\*:?(.*?)(?:\n\n|\Z)", re.DOTALL)


class EntryError(Exception):
    """An entry lacks a part, or a notebook is damaged. The message names the notebook, and the question."""


@dataclass(frozen=True)
class Entry:
    """One question: its notebook, its heading, the first sentence of its answer, other wordings, and the rest.

    `codes` are the codes of cards and audits that lead to it, `run` the code of its cells, `why` the text after them.
    """

    notebook: str
    question: str
    answer: str
    also: tuple[str, ...]
    codes: tuple[str, ...]
    run: str
    why: str

    @property
    def anchor(self) -> str:
        """The anchor of its heading."""
        return anchor(self.question)

    @property
    def link(self) -> str:
        """Where it stands, from the folder of the course."""
        return f"{FOLDER}/{self.notebook}#{quote(self.anchor)}"


def entries(root: Path) -> list[Entry]:
    """Return all entries under `root`, notebook by notebook. Raises EntryError, as `entries_of` does."""
    return [entry for path in notebooks(root) for entry in entries_of(path)]


def readable(root: Path) -> tuple[list[Entry], list[str]]:
    """Return the entries of all notebooks under `root` that can be read, and a sentence on each that cannot."""
    known: list[Entry] = []
    damaged: list[str] = []
    for path in notebooks(root):
        try:
            known += entries_of(path)
        except EntryError as error:
            damaged.append(f"left out, as it is damaged: {error}")
    return known, damaged


def notebooks(root: Path) -> list[Path]:
    """Return the notebooks of entries under `root`."""
    return sorted((root / FOLDER).glob("*.ipynb"))


def entries_of(path: Path) -> list[Entry]:
    """Return the entries of one notebook, in order.

    Raises EntryError for an entry without answer, run or why, and for a file that is no notebook or cannot be read.
    """
    cells = _cells(path)
    starts = [index for index, cell in enumerate(cells) if _heading(cell)]
    return [_entry(path, cells[start:end]) for start, end in zip(starts, [*starts[1:], len(cells)], strict=True)]


def theme(path: Path) -> str:
    """Return the title of a notebook of entries."""
    return _text(_cells(path)[0]).partition("\n")[0].removeprefix("# ")


def _cells(path: Path) -> list[dict[str, Any]]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise EntryError(f"{path}: cannot be read: {error}") from error
    cells = found.get("cells") if isinstance(found, dict) else None
    if not isinstance(cells, list) or not cells or not all(_is_cell(cell) for cell in cells):
        raise EntryError(f"{path}: this is no notebook in format 4 with cells: it has no list of cells with sources")
    return cells


def _is_cell(cell: object) -> bool:
    return isinstance(cell, dict) and "cell_type" in cell and isinstance(cell.get("source"), str | list)


def _entry(path: Path, cells: list[dict[str, Any]]) -> Entry:
    first, *rest = cells
    question = _heading(first)
    answer = _text(first).partition("\n")[2].strip()
    run = "\n".join(_text(cell) for cell in rest if cell["cell_type"] == "code")
    why = "\n\n".join(_text(cell) for cell in rest if cell["cell_type"] == "markdown")
    for part, name in ((answer, "an answer under its heading"), (run, "a run"), (why, "a text after its run")):
        if not part:
            raise EntryError(f"{path.name}: {question!r} lacks {name}")
    also = _ALSO.search(why)
    codes = _CODES.search(why)
    return Entry(
        path.name,
        question,
        first_sentence(answer),
        tuple(text.strip(" .") for text in also[1].replace("\n", " ").split(";") if text.strip(" .")) if also else (),
        tuple(re.findall(r"`([\w-]+)`", codes[1])) if codes else (),
        run,
        why,
    )


def first_sentence(text: str) -> str:
    """Return the first sentence of a text: up to a full stop, question mark or colon that white space follows."""
    text = " ".join(text.split())
    found = re.search(r"^.*?[^.][.?](?=\s+[^a-z\s]|\s*$)", text)
    return found[0] if found else text


def _heading(cell: dict[str, Any]) -> str:
    found = re.match(r"## (.+)", _text(cell)) if cell["cell_type"] == "markdown" else None
    return found[1].strip() if found and found[1].strip() != "Summary" else ""


def _text(cell: dict[str, Any]) -> str:
    source = cell["source"]
    return source if isinstance(source, str) else "".join(source)
