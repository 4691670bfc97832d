"""The index of all questions, made once and then read from the user's cache: `course ask` is to answer at once."""

from __future__ import annotations

import json
import os
import sqlite3
import tempfile
from contextlib import closing, suppress
from hashlib import sha256
from pathlib import Path

from platformdirs import user_cache_path

from course_utils.ask.entries import Entry, notebooks, readable
from course_utils.ask.search import Index, index_of


def index(root: Path) -> tuple[Index, list[str]]:
    """Return the index of all questions under `root`, and a sentence on each notebook that cannot be read.

    It is kept until a notebook changes, or a module of this package; with a damaged notebook it is made each time,
    and so it is where the cache cannot be written or read.
    """
    file = user_cache_path("autograd-course") / f"questions-{sha256(str(root).encode()).hexdigest()[:16]}.sqlite"
    made_from = _state(root)
    if kept := _read(file, made_from):
        return kept, []
    known, damaged = readable(root)
    made = index_of(known)
    if known and not damaged:
        with suppress(OSError, sqlite3.Error):
            _write(file, made, made_from)
    return made, damaged


def _state(root: Path) -> str:
    """Return what a kept index depends on: each notebook and each module of this package, as its file stands."""
    files = [*notebooks(root), *sorted(Path(__file__).parent.glob("*.py"))]
    states = [(file.name, file.stat()) for file in files]
    return json.dumps([[name, state.st_mtime_ns, state.st_size] for name, state in states])


def _read(file: Path, made_from: str) -> Index | None:
    if not file.is_file():
        return None
    try:
        database = sqlite3.connect(f"{file.as_uri()}?mode=ro", uri=True, check_same_thread=False)
        parts = {name: json.loads(value) for name, value in database.execute("select name, value from parts")}
        if parts["made_from"] != json.loads(made_from):
            database.close()
            return None
        among = [Entry(**it | {"also": tuple(it["also"]), "codes": tuple(it["codes"])}) for it in parts["among"]]
    except (sqlite3.Error, ValueError, KeyError, TypeError):  # cut short, or another program's
        return None
    return Index(
        among,
        database,
        parts["wordings"],
        [frozenset(stems) for stems in parts["all_of"]],
        parts["rarity"],
        parts["names"],
        frozenset(parts["words"]),
    )


def _write(file: Path, made: Index, made_from: str) -> None:
    """Write an index beside its place, then exchange: another process reads a whole one, old or new."""
    file.parent.mkdir(parents=True, exist_ok=True)
    parts = {
        "among": [vars(entry) for entry in made.among],
        "wordings": made.wordings,
        "all_of": [sorted(stems) for stems in made.all_of],
        "rarity": made.rarity,
        "names": made.names,
        "words": sorted(made.words),
        "made_from": json.loads(made_from),
    }
    number, beside = tempfile.mkstemp(dir=file.parent, suffix=".part")
    os.close(number)
    try:
        with closing(sqlite3.connect(beside)) as copy:
            made.database.backup(copy)
            copy.execute("create table parts (name text, value text)")
            copy.executemany("insert into parts values (?, ?)", [(name, json.dumps(it)) for name, it in parts.items()])
            copy.commit()
        Path(beside).replace(file)
    finally:
        Path(beside).unlink(missing_ok=True)
