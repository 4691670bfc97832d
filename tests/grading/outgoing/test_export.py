"""Results as JSON and CSV."""

import csv
import json
import os
import stat
from pathlib import Path

import msgspec
import pytest

from course_utils.grading.outgoing.export import ExportError, replace_file, write_csv, write_json
from course_utils.grading.submission import ExerciseResult, Result

RIGHT = ExerciseResult("walk", "correct", 2.0, 2.0, (), (), 0.01)
WRONG = ExerciseResult("step", "incorrect", 0.0, 3.0, ("twice", "no sum"), ("It is wrong.",), 0.02)
ADA = Result("ada", "01_graph_structure", "ada/nb.ipynb", "graded", 2.0, 5.0, 0.05, (RIGHT, WRONG))
BOB = Result("=cmd()", "01_graph_structure", "b", "timeout", 0.0, 5.0, 60.0, (), "-1 is \n no ; reason, \x85")


def test_json_has_the_schema_of_the_design(tmp_path):
    write_json(tmp_path / "out.json", [ADA, BOB], {"jobs": 2})
    found = json.loads((tmp_path / "out.json").read_text())
    assert found.keys() == {"submissions", "run"}
    assert found["run"] == {"jobs": 2}
    ada, bob = found["submissions"]
    names = {"student", "assignment", "path", "status", "score", "points", "seconds", "exercises", "reason"}
    names |= {"number", "detail", "again"}
    assert ada.keys() == bob.keys() == names
    assert ada["exercises"][1] == {
        "id": "step",
        "outcome": "incorrect",
        "score": 0.0,
        "points": 3.0,
        "misconceptions": ["twice", "no sum"],
        "messages": ["It is wrong."],
        "seconds": 0.02,
        "withheld": [],
        "flags": [],
        "observed": [],
    }
    assert bob["student"] == "=cmd()"


def test_csv_has_a_row_for_each_submission(tmp_path):
    write_csv(tmp_path / "out.csv", [ADA, BOB])
    with (tmp_path / "out.csv").open(newline="", encoding="utf-8") as file:
        ada, bob = csv.DictReader(file)
    assert ada == {
        "student": "ada",
        "assignment": "01_graph_structure",
        "path": "ada/nb.ipynb",
        "status": "graded",
        "score": "2.0",
        "points": "5.0",
        "seconds": "0.05",
        "walk": "2.0",
        "step": "0.0",
        "misconceptions": "step: twice; step: no sum",
        "reason": "",
        "observed": "",
        "flags": "",
    }
    assert (bob["student"], bob["walk"], bob["reason"]) == ("'=cmd()", "", "'-1 is \n no ; reason, \\x85")


def test_an_exercise_may_be_called_as_a_column(tmp_path):
    odd = ExerciseResult("score", "correct", 1.0, 1.0, (), (), 0.0)
    write_csv(tmp_path / "out.csv", [Result("a", "b", "c", "graded", 1.0, 9.0, 0.0, (odd,))])
    assert len((tmp_path / "out.csv").read_text().splitlines()[1].split(",")) == 12


@pytest.mark.parametrize("write", [lambda path: write_json(path, [ADA], {}), lambda path: write_csv(path, [ADA])])
def test_files_are_replaced_in_one_step(tmp_path, write, monkeypatch):
    path = tmp_path / "out"
    path.write_text("before")
    monkeypatch.setattr(os, "fsync", lambda number: (_ for _ in ()).throw(OSError(28, "No space left on device")))
    with pytest.raises(ExportError, match="out: cannot be written: No space left on device"):
        write(path)
    assert path.read_text() == "before"
    assert list(tmp_path.iterdir()) == [path]
    monkeypatch.undo()
    write(path)
    assert path.read_text() != "before"
    assert stat.S_IMODE(path.stat().st_mode) == 0o644
    assert list(tmp_path.iterdir()) == [path]


def test_a_folder_that_is_missing_is_told(tmp_path):
    with pytest.raises(ExportError, match=r"missing/out\.json: cannot be written: No such file"):
        write_json(tmp_path / "missing" / "out.json", [], {})
    with pytest.raises(OSError, match="directory"):
        replace_file(Path(tmp_path), b"")


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("=1+1", "'=1+1"),
        ("\uff1d1+1", "'\uff1d1+1"),
        ("\uff20SUM(A1)", "'\uff20SUM(A1)"),
        ("\uff0b1", "'\uff0b1"),
        ("\uff0d1", "'\uff0d1"),
        ("  =1", "'  =1"),
        ("\t=1", "\\t=1"),
        ("a;=1", "a;'=1"),
        ("a; =1|@x", "a;' =1|'@x"),
        ('a";=1', "a\";'=1"),
        ("a\n-1", "a\n'-1"),
        ("a-b = c", "a-b = c"),
    ],
)
def test_no_text_of_a_table_begins_a_formula(tmp_path, text, written):
    write_csv(tmp_path / "out.csv", [msgspec.structs.replace(ADA, student=text, reason=text)])
    with (tmp_path / "out.csv").open(newline="", encoding="utf-8") as file:
        (row,) = csv.DictReader(file)
    assert row["student"] == row["reason"] == written


def test_csv_says_what_rests_on_observation_and_what_to_look_at(tmp_path):
    flagged = ExerciseResult("walk", "correct", 2.0, 2.0, (), (), 0.01, (), ("Look.", "=Read."), ("passes", "kept"))
    wrong = msgspec.structs.replace(WRONG, observed=("runs",))
    row = msgspec.structs.replace(ADA, exercises=(flagged, msgspec.structs.replace(flagged, id="run"), wrong))
    write_csv(tmp_path / "out.csv", [row])
    with (tmp_path / "out.csv").open(newline="", encoding="utf-8") as file:
        (ada,) = csv.DictReader(file)
    assert ada["observed"] == "walk: passes, kept; run: passes, kept", "of what has points"
    assert ada["flags"] == "walk, run: Look. walk, run: =Read.", "each sentence once"


ODD = "\x1b[2J\x1b]0;owned\x07\u202e\u200f\u061c\x9b\r"


def test_nothing_in_a_table_moves_a_cursor_or_turns_the_writing(tmp_path):
    """All texts, whatever they are: somebody reads the file in a terminal."""
    odd = ExerciseResult(f"walk{ODD}", "correct", 2.0, 2.0, (ODD,), (ODD,), 0.01, (ODD,), (f"Look: {ODD}",), (ODD,))
    write_csv(tmp_path / "out.csv", [Result(ODD, ODD, ODD, "crashed", 2.0, 2.0, 0.1, (odd,), f"a\n{ODD}", ODD, ODD)])
    text = (tmp_path / "out.csv").read_text(encoding="utf-8")
    assert all(sign.isprintable() or sign == "\n" for sign in text)
    assert "Look: \\x1b[2J\\x1b]0;owned\\x07\\u202e\\u200f\\u061c\\x9b\\r" in text
