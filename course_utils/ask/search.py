"""Which entries answer a question, by SQLite's full-text search and a second look at the best of what it finds."""

from __future__ import annotations

import re
import sqlite3
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from itertools import pairwise
from math import log

from course_utils.ask.entries import Entry
from course_utils.ask.words import Names, split_all, telling, those_that_tell

# How much a word counts where it stands in the question, in another wording, in the answer, in the run, in the why.
_WEIGHTS = (8.0, 4.0, 3.0, 0.7, 0.7)

# How many of the best by words alone are looked at again; how much it counts there that one wording is like the
# question, and that the words of the question are in the entry at all; and how much a word that only the question has
# takes from the likeness, since titles of threads are long. Of the titles in benchmarks/questions from which entries
# were written, 96 in 100 find theirs among the first three; of those gathered without sight of the entries and tried
# before any was mended with them, 60 (third.tsv), 80 (fourth.tsv), 92 (sixth.tsv) and 70 (fourteenth.tsv).
_LOOKED_AT = 30
_ALIKE = 6.0
_COVERED = 4.0
_ONLY_ASKED = 0.25
_STEM = 6  # letters by which two words of a wording are taken for the same

# A word that no entry has, of so many letters or more, is taken for the known word that it is as much like as this
# (difflib's ratio; two letters exchanged in a word of six are 0.83). With two letters exchanged in one word of each of
# the titles from which entries were written, 96 in 100 find theirs, and 90 without this.
_LETTERS, _LIKE = 6, 0.83


def best(question: str, index: Index, count: int = 3) -> list[Entry]:
    """Return the entries that fit a question best, the best first: none where no word of it is known.

    A word counts the more, the fewer entries have it (bm25, https://sqlite.org/fts5.html#the_bm25_function), and
    several words side by side as in an error message count more than each alone. An entry one of whose wordings is
    like the question as a whole comes before one that has its words here and there. Names are searched by their
    parts: `BatchNorm`, `batch_norm` and "batchnorm" are the words batch and norm. A misspelt word is taken for the
    known word most like it.
    """
    words = list(dict.fromkeys(index.spelt(word) for word in telling(question, index.names)))
    if not words:
        return []
    pairs = [f'"{first} {second}"' for first, second in pairwise(words)]
    rows = index.database.execute(
        "select rowid, -bm25(entries, ?, ?, ?, ?, ?) as fit from entries where entries match ? "
        "order by fit desc, rowid limit ?",
        (*_WEIGHTS, " OR ".join([*(f'"{word}"' for word in words), *pairs]), _LOOKED_AT),
    ).fetchall()
    asked = {word[:_STEM] for word in words} & index.rarity.keys()
    ranked = sorted(rows, key=lambda row: -row[1] * index.second_look(asked, row[0] - 1))
    return [index.among[row[0] - 1] for row in ranked[:count]]


@dataclass(frozen=True)
class Index:
    """Entries, their words in a database, those of each wording, how rare a stem is, names with their parts, all words.

    `wordings` and `all_of` hold for each entry the words of its question and other wordings, and its stems.
    """

    among: Sequence[Entry]
    database: sqlite3.Connection
    wordings: Sequence[Sequence[str]]
    all_of: Sequence[frozenset[str]]
    rarity: dict[str, float]
    names: Names
    words: frozenset[str]

    def spelt(self, word: str) -> str:
        """Return a word as entries spell it: itself, or the known word that a long unknown one is like."""
        if word in self.words or len(word) < _LETTERS:
            return word
        likely = [known for known in self.words if known[0] == word[0]]  # slips are seldom in the first letter
        return next(iter(get_close_matches(word, likely, 1, _LIKE)), word)

    def second_look(self, asked: set[str], place: int) -> float:
        """Return by how much the fit of the entry at a place grows: 1 where it shares no word, in its wordings."""
        alike = max(self._alike(asked, _stems(wording)) for wording in self.wordings[place])
        covered = self._rare(asked & self.all_of[place]) / (self._rare(asked) or 1.0)
        return (1 + _ALIKE * alike) * (1 + _COVERED * covered)

    def _alike(self, asked: set[str], wording: frozenset[str]) -> float:
        """Return how much of a question and of a wording is the same, from 0 to 1 (Tversky's index)."""
        both = self._rare(asked & wording)
        return both / (both + _ONLY_ASKED * self._rare(asked - wording) + self._rare(wording - asked) or 1.0)

    def _rare(self, stems: set[str] | frozenset[str]) -> float:
        return sum(self.rarity[stem] for stem in stems)


def index_of(among: Sequence[Entry]) -> Index:
    """Return the index of entries."""
    texts = [(it.question, *it.also, it.answer, it.run, _prose(it.why)) for it in among]
    names, said, words = split_all(texts)
    database = sqlite3.connect(":memory:", check_same_thread=False)
    database.execute(
        "create virtual table entries using fts5(question, also, answer, run, why, tokenize = 'porter unicode61')"
    )
    database.executemany(
        "insert into entries values (?, ?, ?, ?, ?)", [(row[0], " ".join(row[1:-3]), *row[-3:]) for row in said]
    )
    database.commit()  # a backup of it would wait for ever
    all_of = tuple(_stems(" ".join(row[:-2])) for row in said)
    having = Counter(stem for stems in all_of for stem in stems)
    rarity = {stem: log(1 + len(among) / entries) for stem, entries in having.items()}
    return Index(among, database, [row[:-3] for row in said], all_of, rarity, names, words)


def _prose(why: str) -> str:
    """Return the reasons and the fix: not the other wordings, which have their own place, nor addresses of lessons."""
    return re.sub(r"\]\([^)]*\)", "]", why.partition("**Also asked as")[0])


def _stems(words: str) -> frozenset[str]:
    return frozenset([word[:_STEM] for word in those_that_tell(words.split())])
