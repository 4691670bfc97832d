"""Submissions in notebooks, folders and zips."""

import json
import os
import shutil
import tempfile
import zipfile
from hashlib import sha256
from pathlib import Path

import pytest

from course_utils.grading.intake.finding import SubmissionError, find

ROOT = Path(__file__).parents[3]
LESSON = "02_how_backward_works"
NOTEBOOK = (ROOT / "exercises" / f"{LESSON}.ipynb").read_bytes()


def put(path: Path, data: bytes = NOTEBOOK) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


def test_one_notebook(tmp_path):
    path = put(tmp_path / "ada.ipynb")
    (one,) = find([path])
    assert (one.student, one.assignment, one.path) == ("ada", LESSON, str(path))
    assert one.digest == sha256(NOTEBOOK).hexdigest()
    assert one.cells
    assert not one.unreadable


def test_paths_are_shown_as_they_were_typed(tmp_path, monkeypatch):
    put(tmp_path / "class" / "ada" / "nb.ipynb")
    monkeypatch.chdir(tmp_path)
    assert [one.path for one in find([Path("class")])] == ["class/ada/nb.ipynb"]
    monkeypatch.chdir(tmp_path / "class" / "ada")
    (one,) = find([Path("nb.ipynb")])
    assert one.path == "nb.ipynb"


def test_a_class_as_nbgrader_collects_it(tmp_path):
    for student in ("bob", "ada"):
        for lesson in (LESSON, "01_graph_structure"):
            put(
                tmp_path / "submitted" / student / lesson / f"{lesson}.ipynb",
                (ROOT / "exercises" / f"{lesson}.ipynb").read_bytes(),
            )
        put(tmp_path / "submitted" / student / LESSON / "timestamp.txt", b"")
    put(tmp_path / "submitted" / "ada" / LESSON / ".ipynb_checkpoints" / f"{LESSON}-checkpoint.ipynb")
    whole = find([tmp_path / "submitted"])
    assert [(one.student, one.assignment) for one in whole] == [
        (student, lesson) for student in ("ada", "bob") for lesson in ("01_graph_structure", LESSON)
    ]
    assert [one.student for one in find([tmp_path / "submitted" / "bob"])] == ["bob", "bob"]
    assert find([tmp_path / "submitted", tmp_path / "submitted"]) == whole


def test_zips_as_moodle_and_canvas_hand_them_out(tmp_path):
    with zipfile.ZipFile(tmp_path / "moodle.zip", "w") as archive:
        archive.writestr("Ada Lovelace_12_assignsubmission_file_/nb.ipynb", NOTEBOOK)
        archive.writestr("Bob_13_assignsubmission_onlinetext_/onlinetext.html", b"hello")
    with zipfile.ZipFile(tmp_path / "canvas.zip", "w") as archive:
        archive.writestr("curiemarie_LATE_123_456_nb.ipynb", NOTEBOOK)
    before = sorted(tmp_path.rglob("*"))
    ada, marie = find([tmp_path / "moodle.zip", tmp_path / "canvas.zip"])
    assert (ada.student, marie.student) == ("Ada Lovelace_12", "curiemarie_123")
    assert ada.path == f"{tmp_path}/moodle.zip/Ada Lovelace_12_assignsubmission_file_/nb.ipynb"
    assert ada.cells == marie.cells != ()
    assert sorted(tmp_path.rglob("*")) == before, "nothing is extracted"


def test_what_cannot_be_read_is_a_submission_that_says_so(tmp_path):
    put(tmp_path / "ada" / f"{LESSON}.ipynb", NOTEBOOK[:-100])
    put(tmp_path / "bob" / "notes.ipynb", json.dumps({"nbformat": 4, "cells": []}).encode())
    put(tmp_path / "carol.zip", b"no zip")
    (tmp_path / "dan").mkdir()
    (tmp_path / "dan" / f"{LESSON}.ipynb").symlink_to("/etc/hostname")
    with zipfile.ZipFile(tmp_path / "erin.zip", "w") as archive:
        archive.writestr("readme.txt", "hello")
    (tmp_path / "frank").mkdir()
    os.mkfifo(tmp_path / "frank" / "nb.ipynb")
    (tmp_path / "grace.zip").symlink_to(tmp_path / "erin.zip")
    (tmp_path / "heidi").mkdir()
    with (tmp_path / "heidi" / f"{LESSON}.ipynb").open("wb") as file:
        file.truncate(10**12)  # sparse: it takes no room
    told = {one.student: one for one in find([tmp_path])}
    words = {
        "ada": "cut off",
        "bob": "belongs to no lesson",
        "carol": "no zip",
        "dan": "link",
        "erin": "holds no notebook",
        "frank": "pipe",
        "grace": "link",
        "heidi": "larger than 20 MB",
    }
    assert told.keys() == words.keys()
    for student, word in words.items():
        assert word in told[student].unreadable
        assert told[student].cells == ()
        assert told[student].digest
    assert told["ada"].assignment == told["dan"].assignment == LESSON
    assert told["bob"].assignment == "notes"


def test_two_files_of_one_student_are_refused(tmp_path):
    first = put(tmp_path / "ada" / f"{LESSON}.ipynb")
    second = put(tmp_path / "ada" / f"{LESSON}-Copy1.ipynb")
    with pytest.raises(SubmissionError) as caught:
        find([tmp_path])
    assert f"ada, {LESSON}: {second} and {first}" in str(caught.value)
    for number in range(12):
        put(tmp_path / str(number) / "a.ipynb")
        put(tmp_path / str(number) / "b.ipynb")
    with pytest.raises(SubmissionError, match="and 3 more"):
        find([tmp_path])


def test_misuse_is_told(tmp_path):
    with pytest.raises(SubmissionError, match="missing: there is no such file or folder"):
        find([tmp_path / "missing"])
    with pytest.raises(SubmissionError, match=r"there is no notebook \(\.ipynb\) in this folder"):
        find([tmp_path])
    with pytest.raises(SubmissionError, match="neither a notebook"):
        find([put(tmp_path / "notes.md")])


@pytest.fixture
def ordinary():
    """Root may read everything: be an ordinary user meanwhile."""
    before = os.geteuid()
    if before == 0:
        os.seteuid(1000)
    yield
    os.seteuid(before)


def test_what_may_not_be_read_is_told(ordinary):
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        path = put(folder / "ada" / f"{LESSON}.ipynb")
        path.chmod(0)
        (one,) = find([folder])
        assert "Permission denied" in one.unreadable
        (folder / "ada").chmod(0)
        with pytest.raises(SubmissionError, match="cannot be read"):
            find([folder])
        (folder / "ada").chmod(0o755)


def test_names_that_are_no_text_can_be_kept(tmp_path):
    folder = os.fsencode(tmp_path) + b"/b\xff"
    os.mkdir(folder)  # noqa: PTH102
    shutil.copy(put(tmp_path / "nb.ipynb"), os.fsdecode(folder))
    (tmp_path / "nb.ipynb").unlink()
    (one,) = find([tmp_path])
    assert one.student == "b\\udcff"
    one.path.encode()
