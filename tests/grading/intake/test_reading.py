"""Notebooks that may be anything: what is read, and that nothing raises."""

import copy
import json
import random
import time
from pathlib import Path

import pytest

from course_utils.grading.intake import reading
from course_utils.grading.intake.reading import content_of
from course_utils.grading.submission import Cell

ROOT = Path(__file__).parents[3]
EXERCISES = sorted((ROOT / "exercises").glob("*.ipynb"))


def notebook(*cells: dict, **more: object) -> bytes:
    return json.dumps({"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": list(cells), **more}).encode()


def code(source: object, **nbgrader: object) -> dict:
    metadata = {"nbgrader": nbgrader} if nbgrader else {}
    return {"cell_type": "code", "source": source, "metadata": metadata, "outputs": [], "execution_count": None}


CHECK = code('check("walk", walk)', locked=True, grade=True, solution=False, grade_id="check_walk")


@pytest.mark.parametrize("path", EXERCISES, ids=lambda path: path.stem)
def test_released_notebooks_keep_all_but_the_checks(path):
    content = content_of(path.read_bytes())
    cells = json.loads(path.read_text())["cells"]
    own = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    own = [source for source in own if not source.startswith("check(")]
    assert [cell.source for cell in content.cells] == own
    assert content.exercises
    assert not content.unreadable


def test_numbers_count_all_cells():
    text = {"cell_type": "markdown", "source": "# Title", "metadata": {}}
    content = content_of(notebook(text, code("x = 1"), text, code(["y = 2\n", "z = 3"])))
    assert content.cells == (Cell(2, "x = 1"), Cell(4, "y = 2\nz = 3"))


@pytest.mark.parametrize(
    "checks",
    [
        [],
        [CHECK],
        [CHECK, CHECK],
        [code("check('walk' ,  other );  # mine")],
        [code("# checked\n\n  check('walk', walk,) # twice\ncheck( \"walk\",walk )\n")],
        [code("\r\n# checked\r\ncheck('walk', walk)\r\n")],
        [code("#\rcheck('walk', walk)")],
        [code("raise SystemExit", locked=True, grade_id="check_walk")],
    ],
)
def test_check_cells_change_nothing(checks):
    assert content_of(notebook(code("walk = 1"), *checks)).cells == (Cell(1, "walk = 1"),)


@pytest.mark.parametrize("source", ["walk = 2\ncheck('walk', walk)", "check('walk', walk := 3)", "# only a remark"])
def test_code_beside_a_check_is_the_learners(source):
    assert content_of(notebook(code(source))).cells == (Cell(1, source),)


@pytest.mark.parametrize(
    "source",
    [
        " " * 900_000 + "x",
        "check('a', b" + " " * 900_000 + "x",
        "check('" + "a" * 900_000,
        "check( " * 100_000,
        "#" * 900_000,
    ],
    ids=lambda source: source.strip()[:8],
)
def test_no_source_makes_reading_slow(source):
    start = time.monotonic()
    assert content_of(notebook(code(source), code("check('walk', walk)"))).cells == (Cell(1, source),)
    assert time.monotonic() - start < 20, "seconds that no slow machine needs"


def test_solution_cells_are_the_learners_even_if_locked():
    assert content_of(notebook(code("walk = 2", locked=True, solution=True))).cells


@pytest.mark.parametrize("marks", ["text", 3, None, {"locked": "yes"}, {"locked": None, "grade_id": []}])
def test_damaged_marks_count_as_none(marks):
    assert content_of(notebook({"cell_type": "code", "source": "x = 1", "metadata": {"nbgrader": marks}})).cells
    assert content_of(notebook({"cell_type": "code", "source": "x = 1", "metadata": marks})).cells


def test_exercises_are_named_by_checks_and_marks():
    solution = code("walk = 1", grade_id="walk", solution=True)
    assert content_of(notebook(solution, CHECK)).exercises == ("walk", "walk")


DEEP = b"[" * 100_000


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "is empty"),
        (b" \n", "is empty"),
        (b"\x00\xff\xfe binary", "no notebook, or was cut off"),
        (b"\x89PNG\r\n\x1a\n" + bytes(range(256)), "no notebook, or was cut off"),
        (notebook(code("x = 1"))[:-20], "cut off"),
        (b"[]", "no notebook"),
        (b"3", "no notebook"),
        (b"null", "no notebook"),
        (b"{}", "no notebook format"),
        (b'{"nbformat": 4}', "no list of cells"),
        (b'{"nbformat": 3, "worksheets": []}', "notebook format 3; format 4 is graded"),
        (b'{"nbformat": 4, "cells": {}}', "no notebook: it holds something that Jupyter does not write"),
        (b'{"nbformat": "4", "cells": []}', "no notebook: it holds something"),
        (b'{"nbformat": ' + b"9" * 5000 + b"}", "no notebook"),
        (b'{"nbformat": 4, "cells": [3]}', "no notebook: it holds something"),
        (b'{"nbformat": 4, "cells": [{}]}', "no notebook: it holds something"),
        (b'{"nbformat": 4, "cells": [{"cell_type": "code", "source": {"a": 1}}]}', "no notebook: it holds something"),
        (DEEP, "no notebook"),
        (b'{"nbformat": 4, "cells": ' + DEEP, "no notebook"),
        (b'{"nbformat": 4, "metadata": ' + DEEP, "nested too deeply"),
        (b'{"nbformat": 4, "cells": [{"cell_type": "code", "metadata": ' + DEEP, "nested too deeply"),
        (b'{"a": ' * 100_000, "nested too deeply"),
        (notebook(code("x = 1"), metadata=json.loads("[" * 900 + "]" * 900)), ""),
        (b"[" * 21_000_000, "larger than 20 MB"),
        (notebook(code("x" * 1_000_001)), "1,000,001 characters"),
        (notebook(*[code("x")] * 5_001), "5,001 cells"),
    ],
    ids=lambda value: str(value)[:24],
)
def test_unreadable_files_are_told_in_a_sentence(data, words):
    content = content_of(data)
    assert words in content.unreadable
    assert bool(content.unreadable) == bool(words)
    assert bool(content.cells) != bool(words)
    assert len(content.unreadable) < 300
    assert content.unreadable.endswith(".") or not words


def test_what_python_writes_is_read():
    output = {"output_type": "display_data", "data": {"application/json": float("nan")}, "metadata": {}}
    cell = {**code("x = '\ud800'"), "outputs": [output]}
    assert content_of(b"\xef\xbb\xbf" + notebook(cell)).cells == (Cell(1, "x = '?'"),)


def test_repair_is_kept_to_small_files(monkeypatch):
    monkeypatch.setattr(reading, "MAX_REPAIRED", 10)
    assert "no strict JSON" in content_of(notebook(code("x = 1"), other=float("nan"))).unreadable


def test_a_thousand_corrupted_notebooks():
    """Bytes flipped, cut, doubled, and values swapped for others: each is read or told, quickly."""
    rng = random.Random(5)
    originals = [path.read_bytes() for path in EXERCISES]
    start = time.monotonic()
    unreadable = 0
    for number in range(1_000):
        data = corrupted(rng, originals[number % len(originals)])
        content = content_of(data)
        assert not (content.unreadable and content.cells)
        for cell in content.cells:
            cell.source.encode()
        unreadable += bool(content.unreadable)
    assert 200 < unreadable < 900
    assert time.monotonic() - start < 30


VALUES = (None, True, -1, 1e300, 2**70, "", "\ud800", [], {}, [[]], {"a": 1}, "x" * 10_000, float("nan"))


def corrupted(rng: random.Random, data: bytes) -> bytes:
    kind = rng.randrange(6)
    at, to = sorted(rng.randrange(len(data)) for _ in range(2))
    if kind == 0:
        return data[:at]
    if kind == 1:
        changed = bytearray(data)
        for _ in range(rng.randrange(1, 20)):
            changed[rng.randrange(len(data))] = rng.randrange(256)
        return bytes(changed)
    if kind == 2:
        return data[:at] + data[to:]
    if kind == 3:
        return data[:to] + data[at:]
    tree = json.loads(data)
    for _ in range(rng.randrange(1, 4)):
        swap(rng, tree)
    return json.dumps(tree).encode()


def swap(rng: random.Random, tree: object) -> None:
    """Put another value at a random place of a tree."""
    while True:
        keys = list(tree) if isinstance(tree, dict) else list(range(len(tree)))
        if not keys:
            return
        key = rng.choice(keys)
        if isinstance(tree[key], dict | list) and rng.random() < 0.8:
            tree = tree[key]
            continue
        tree[key] = copy.deepcopy(rng.choice(VALUES))  # its own: the next swap may write into it
        return


@pytest.mark.parametrize(
    ("data", "detail"),
    [
        (b'{"nbformat": 4, "cells": [{}]}', "Object missing required field `cell_type` - at `$.cells[0]`"),
        (b'{"nbformat": 4', "Expecting ',' delimiter: line 1 column 15 (char 14)"),
        (b"", ""),
    ],
)
def test_what_a_decoder_says_stands_apart_from_the_sentence_for_teachers(data, detail):
    content = content_of(data)
    assert content.detail == detail
    assert not any(word in content.unreadable for word in ("JSON", "$", "`", "byte"))


def test_whatever_goes_wrong_while_a_file_is_read_is_said_of_that_file(monkeypatch):
    monkeypatch.setattr(reading, "_marks", lambda metadata: [][0])
    content = content_of(notebook(code("x = 1")))
    assert content.unreadable == reading.FAILED
    assert content.detail == "IndexError: list index out of range"


@pytest.mark.parametrize(
    ("lines", "more", "seconds"),
    [("\n" * 9_900_000, {}, 0.6), ("\n" * 9_900_000, {"locked": True}, 0.6), ("\n" * 999_000, {}, 0.15)],
    ids=["too many", "too many, locked", "as many as are graded"],
)
def test_a_sea_of_lines_is_not_looked_at_one_by_one(lines: str, more: dict[str, bool], seconds: float):
    data = notebook(code("check('walk', walk)" + lines, **more))
    before = time.thread_time()
    content = content_of(data)
    assert time.thread_time() - before < seconds, "a match for each line takes several times as long"
    assert bool(content.unreadable) == (len(lines) > reading.MAX_SOURCE)
    assert content.cells == ()
