"""From the code of a card or a finding to the question that people ask about it."""

from __future__ import annotations

from functools import cache

from course_utils.ask.entries import FOLDER, Entry, EntryError, entries
from course_utils.place import ROOT


def asked(code: str) -> str:
    """Return a line that leads to the first entry that names a code; nothing where none does, or none are here."""
    entry = _by_code().get(code)
    return f'Asked as "{entry.question.replace("`", "")}" in {FOLDER}/{entry.notebook}.' if entry else ""


@cache
def _by_code() -> dict[str, Entry]:
    try:
        known = entries(ROOT)
    except (EntryError, OSError, ValueError, KeyError):  # a card is shown without it
        return {}
    found: dict[str, Entry] = {}
    for entry in known:
        for code in entry.codes:
            found.setdefault(code, entry)
    return found
