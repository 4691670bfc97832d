"""notebooks/questions/README.md: every question and its other wordings, in one page made from the entries."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from urllib.parse import quote

from course_utils.ask.entries import FOLDER, Entry, entries, theme

PAGE = f"{FOLDER}/README.md"


def page(root: Path) -> str:
    """Return the text of the page for the questions under `root`, theme by theme.

    Raises EntryError for an entry that lacks a part.
    """
    known = entries(root)
    lines = [
        "# Questions people ask",
        "",
        f'{len(known)} questions, each answered by a run. `course ask "why is my grad None"` finds one by its words, '
        "`%ask` does so in a notebook.",
        "`course build` makes this page from the notebooks beside it.",
    ]
    for notebook in dict.fromkeys(entry.notebook for entry in known):
        lines += ["", f"## {theme(root / FOLDER / notebook)}", ""]
        lines += _rows([entry for entry in known if entry.notebook == notebook])
    return "\n".join(lines) + "\n"


def _rows(known: Sequence[Entry]) -> list[str]:
    rows = []
    for entry in known:
        also = f"<br>{'; '.join(entry.also)}" if entry.also else ""
        rows.append(f"- [{entry.question}]({entry.notebook}#{quote(entry.anchor)}){also}")
    return rows
