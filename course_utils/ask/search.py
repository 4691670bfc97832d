"""Which entries answer a question, by SQLite's full-text search."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from functools import lru_cache
from itertools import pairwise

from course_utils.ask.entries import Entry

# How much a word counts where it stands in the question, in another wording, in the answer, in the run, in the why.
_WEIGHTS = (6.0, 6.0, 2.0, 0.7, 0.7)

# Words that say nothing about what is asked.
_COMMON = re.compile(
    r"a|an|and|are|as|at|be|been|but|by|can|could|did|do|does|for|from|get|gets|getting|had|has|have|help"
    r"|how|i|if|in|into|is|it|its|me|my|of|on|or|our|please|problem|pytorch|question|should|so|some|that"
    r"|the|their|them|then|there|these|this|to|torch|use|using|vs|was|we|were|what|when|where|which|while"
    r"|who|why|will|with|would|you|your"
)


# Of how many entries the wordings are compared, and how much one alike counts. Of the titles in benchmarks/questions
# 93 in 100 find their entry within two looks, 91 by the ranking of words alone.
_LOOKED_AT = 30
_ALIKE = 2.0


def best(question: str, among: Sequence[Entry], count: int = 3) -> list[Entry]:
    """Return the entries that fit a question best, the best first: none where no word of it is known.

    A word counts the more, the fewer entries have it (bm25, https://sqlite.org/fts5.html#the_bm25_function), and
    several words side by side as in an error message count more than each alone. An entry one of whose wordings is
    like the question as a whole comes before one that has its words here and there.
    """
    words = _words(question)
    if not words:
        return []
    pairs = [f'"{first} {second}"' for first, second in pairwise(words)]
    with closing(_index(tuple(among)).cursor()) as cursor:
        rows = cursor.execute(
            "select rowid, -bm25(entries, ?, ?, ?, ?, ?) as fit from entries where entries match ? "
            "order by fit desc, rowid limit ?",
            (*_WEIGHTS, " OR ".join([*(f'"{word}"' for word in words), *pairs]), _LOOKED_AT),
        ).fetchall()
    stems = _stems(question)
    ranked = sorted(rows, key=lambda row: -row[1] * (1 + _ALIKE * _alike(stems, among[row[0] - 1])))
    return [among[row[0] - 1] for row in ranked[:count]]


def _alike(asked: set[str], entry: Entry) -> float:
    """Return how much of a question and of the wording of an entry that is nearest to it is the same, from 0 to 1."""
    wordings = [_stems(text) for text in (entry.question, *entry.also)]
    return max(len(asked & wording) / len(asked | wording) for wording in wordings)


def _stems(text: str) -> set[str]:
    return {word[:6] for word in _words(text)}


@lru_cache(maxsize=1)  # who asks once, asks again
def _index(among: tuple[Entry, ...]) -> sqlite3.Connection:
    database = sqlite3.connect(":memory:", check_same_thread=False)
    database.execute(
        "create virtual table entries using fts5(question, also, answer, run, why, tokenize = 'porter unicode61')"
    )
    rows = [(it.question, " ; ".join(it.also), it.answer, it.run, _prose(it.why)) for it in among]
    database.executemany("insert into entries values (?, ?, ?, ?, ?)", rows)
    return database


def _prose(why: str) -> str:
    """Return the reasons and the fix: not the other wordings, which have their own place, nor addresses of lessons."""
    return re.sub(r"\]\([^)]*\)", "]", why.partition("**Also asked as")[0])


def _words(question: str) -> list[str]:
    """Return the words of a question that tell, as the index splits them: without quotes, dots and dashes."""
    words = re.findall(r"[^\W_]+", question.lower())
    telling = [word for word in words if not _COMMON.fullmatch(word)]
    return list(dict.fromkeys(telling)) or list(dict.fromkeys(words))
