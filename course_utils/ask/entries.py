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
    """An entry lacks a part, or a notebook its cells. The message names the notebook and the question."""


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
    """Return all entries under `root`, notebook by notebook.

    Raises EntryError for one without answer, run or why, and for a notebook without cells.
    """
    return [entry for path in sorted((root / FOLDER).glob("*.ipynb")) for entry in entries_of(path)]


def entries_of(path: Path) -> list[Entry]:
    """Return the entries of one notebook, in order."""
    cells = _cells(path)
    starts = [index for index, cell in enumerate(cells) if _heading(cell)]
    return [_entry(path, cells[start:end]) for start, end in zip(starts, [*starts[1:], len(cells)], strict=True)]


def theme(path: Path) -> str:
    """Return the title of a notebook of entries."""
    return _text(_cells(path)[0]).partition("\n")[0].removeprefix("# ")


def _cells(path: Path) -> list[dict[str, Any]]:
    notebook = json.loads(path.read_text(encoding="utf-8"))
    cells: list[dict[str, Any]] = notebook.get("cells", []) if isinstance(notebook, dict) else []
    if not cells or not all({"cell_type", "source"} <= set(cell) for cell in cells):
        raise EntryError(f"{path.name} is no notebook of questions: it has no cells, or one without type or source")
    return cells


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
