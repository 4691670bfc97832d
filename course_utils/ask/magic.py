"""`%ask`: the entries that answer a question, in a notebook."""

from __future__ import annotations

from typing import Any

from IPython.display import Markdown, display

from course_utils.ask.entries import Entry
from course_utils.ask.kept import index
from course_utils.ask.search import best
from course_utils.place import ROOT


def register(ipython: Any) -> None:
    """Give an IPython shell the magic `%ask`."""

    def ask(line: str) -> None:
        """%ask why is my grad None: the three questions that fit best, each with its answer and its run."""
        known, damaged = index(ROOT)
        shown = [_shown(entry) for entry in best(line, known)] or ["No entry has a word of that."]
        display(Markdown("\n\n".join([*damaged, *shown])))

    ipython.register_magic_function(ask, "line", "ask")


def unregister(ipython: Any) -> None:
    """Take `%ask` away again."""
    ipython.magics_manager.magics["line"].pop("ask", None)


def _shown(entry: Entry) -> str:
    return (
        f"**{entry.question}** {entry.answer}\n\n"
        f"<details><summary>A run, and why</summary>\n\n```python\n{entry.run}\n```\n\n{entry.why}\n\n</details>"
    )
