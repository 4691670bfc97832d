"""From the code of a card or a finding to the question that people ask about it."""

from __future__ import annotations

from functools import cache
from textwrap import shorten

from course_utils.ask.entries import FOLDER, Entry, readable
from course_utils.place import ROOT

WIDTH = 105  # of a card's line, less the words around


def asked(code: str) -> str:
    """Return a line that leads to the first entry that names a code; nothing where none does, or none are here."""
    entry = _by_code().get(code)
    if entry is None:
        return ""
    place = f"in {FOLDER}/{entry.notebook}."
    question = shorten(entry.question.replace("`", ""), WIDTH - len(place), placeholder=" ...")
    quoted = question if question.startswith('"') else f'"{question}"'  # an error's text has its own quotes
    if quoted.count('"') % 2:  # and was shortened within them
        quoted += '"'
    return f"Asked as {quoted} {place}"


@cache
def _by_code() -> dict[str, Entry]:
    found: dict[str, Entry] = {}
    for entry in readable(ROOT)[0]:  # a card is shown without those that are damaged
        for code in entry.codes:
            found.setdefault(code, entry)
    return found
