"""Submissions in notebooks, folders and zips."""

import json
import os
import shutil
import subprocess
import tempfile
import time
import zipfile
from hashlib import sha256
from pathlib import Path

import pytest

from course_utils.grading.intake import archives, budget, finding, reading, walking
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
    (ada,), (marie,) = find([tmp_path / "moodle.zip"]), find([tmp_path / "canvas.zip"])
    assert (ada.student, marie.student) == ("Ada Lovelace_12", "curiemarie_123")
    assert (ada.number, marie.number) == ("12", "123")
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


def rows(*paths: Path) -> dict[tuple[str, str], str]:
    """Return why each submission cannot be graded, by student and assignment."""
    found = find(paths)
    assert len({(one.student, one.assignment) for one in found}) == len(found)
    return {(one.student, one.assignment): one.unreadable for one in found}


def test_two_files_of_one_student_for_one_assignment_are_one_row_that_names_them(tmp_path):
    first = put(tmp_path / "ada" / f"{LESSON}.ipynb")
    second = put(tmp_path / "ada" / f"{LESSON}-Copy1.ipynb")
    put(tmp_path / "bob" / "nb.ipynb")
    found = rows(tmp_path)
    assert found["bob", LESSON] == ""
    assert found["ada", LESSON] == (
        f"There are 2 files of this student for this assignment: {second}; {first}. Keep the one that counts. If they "
        "are of different students, name the very folder or zip in which each has one."
    )
    before = {one.student: one.digest for one in find([tmp_path])}
    put(first, NOTEBOOK + b"\n")
    after = {one.student: one.digest for one in find([tmp_path])}
    assert before["ada"] != after["ada"], "so that it is graded again"
    for number in range(12):
        put(tmp_path / "ada" / f"{number}.ipynb")
    assert "There are 14 files" in rows(tmp_path)["ada", LESSON]
    assert "and 9 more. Keep the one" in rows(tmp_path)["ada", LESSON]


def test_whatever_one_student_hands_in_all_others_are_found(tmp_path):
    folder = tmp_path / "class"
    put(folder / "ok" / "nb.ipynb")
    folder.mkdir(exist_ok=True)
    with zipfile.ZipFile(folder / "twice.zip", "w") as archive:
        archive.writestr("nb.ipynb", NOTEBOOK)
        with pytest.warns(UserWarning, match="Duplicate"):
            archive.writestr("nb.ipynb", NOTEBOOK)
    for name in ("a", "b"):
        put(folder / "broken" / name / "nb.ipynb", b"{")
    put(folder / "week" / "01_graph_structure.ipynb", NOTEBOOK)
    put(folder / "week" / "02_how_backward_works.ipynb", NOTEBOOK)
    put(folder / "Ada  Lovelace" / "nb.ipynb")
    put(folder / "Ada Lovelace" / "nb.ipynb")
    (folder / "empty").mkdir()
    put(folder / "text" / "notes.txt", b"x")
    put(folder / ".hidden" / "nb.ipynb")
    put(folder / ".git" / "nb.ipynb")
    (folder / "linked").symlink_to(folder / "ok")
    found = rows(folder)
    words = {
        ("ok", LESSON): "",
        ("twice", LESSON): "There are 2 files",
        ("broken", "nb"): "There are 2 files",
        ("week", LESSON): "There are 2 files",
        ("Ada Lovelace", LESSON): "",
        (
            "'Ada  Lovelace'",
            LESSON,
        ): f"Where it lies names Ada Lovelace, but {folder}/Ada Lovelace/nb.ipynb does so more",
        ("empty", "no notebook"): "There is no notebook (.ipynb) in this folder, and no zip.",
        ("text", "no notebook"): "There is no notebook (.ipynb) in this folder, and no zip.",
        (".hidden", "no notebook"): "This folder is hidden (its name begins with a dot), so it is not read. Rename it",
        ("linked", "no notebook"): "This folder is a link to another one, which is not followed.",
    }
    assert found.keys() == words.keys()
    assert {key for key, word in words.items() if not found[key].startswith(word)} == set()
    assert [one.path for one in find([folder]) if one.student == "empty"] == [f"{folder}/empty"]


def test_odd_notebooks_are_rows(tmp_path):
    """What was tried in November 2026, beside what other tests here hold: names the student, and a word of the row."""
    text = NOTEBOOK.decode()
    some = text.replace('"outputs": []', '"outputs": [{}]', 1)
    cells = json.dumps({"nbformat": 4, "cells": [{"cell_type": kind, "source": ["a", 5]} for kind in ("code", None)]})
    odd = {
        "many outputs": (some.replace("{}", ",".join(["{}"] * 1_000_000), 1), ""),
        "one output": (some.replace("{}", json.dumps("z" * 15_000_000), 1), ""),
        "deep outputs": (some.replace("{}", "[" * 100_000 + "]" * 100_000, 1), "no notebook"),
        "deep and loose": (some.replace("{}", "NaN," + "[" * 100_000 + "]" * 100_000, 1), "no notebook"),
        "never closed": ('{"nbformat": 4, "cells": ' + "[" * 5_000_000, "Jupyter does not write"),
        "a number of 1,000,000 digits": (some.replace("{}", "NaN, " + "9" * 1_000_000, 1), "no notebook"),
        "half a pair": (text.replace('"nbformat_minor"', '"\\ud800": 1, "nbformat_minor"'), ""),
        "format 4.0": (text.replace('"nbformat": 4', '"nbformat": 4.0'), ""),
        "format infinite": (text.replace('"nbformat": 4', '"nbformat": 4e99999'), "Jupyter does not write"),
        "bytes after it": (text + "\0" * 1000, "no notebook"),
        "kinds of cells": (cells, "Jupyter does not write"),
        "one large cell": (
            json.dumps({"nbformat": 4, "cells": [{"cell_type": "code", "source": "x" * 2_000_000}]}),
            "1,",
        ),
    }
    for student, (content, _) in odd.items():
        put(tmp_path / student / f"{LESSON}.ipynb", content.encode())
    put(tmp_path / "UTF-16" / f"{LESSON}.ipynb", text.encode("utf-16"))
    put(tmp_path / "honest" / f"{LESSON}.ipynb")
    told = rows(tmp_path)
    assert told.pop(("honest", LESSON)) == ""
    assert "no notebook" in told.pop(("UTF-16", LESSON))
    for student, (_, words) in odd.items():
        assert words in told[student, LESSON], student


def test_zips_that_lie_are_rows(tmp_path):
    def pack(student: str) -> Path:
        path = tmp_path / "class" / student / "work.zip"
        path.parent.mkdir(parents=True)
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr(f"{LESSON}.ipynb", NOTEBOOK)
        return path

    before = pack("before it")
    before.write_bytes(b"#!/bin/sh\n" * 1000 + before.read_bytes())
    twice = pack("twice")
    twice.write_bytes(twice.read_bytes() * 2)
    overlapping = pack("overlapping")
    with zipfile.ZipFile(overlapping, "a") as archive:
        for number in range(50):
            archive.writestr(f"{LESSON}_{number:02}.ipynb", b"")
    data = bytearray(overlapping.read_bytes())
    first = place = data.find(b"PK\1\2")
    while (place := data.find(b"PK\1\2", place + 46)) != -1:  # all members are the first one's bytes
        data[place + 8 : place + 28] = data[first + 8 : first + 28]
        data[place + 42 : place + 46] = data[first + 42 : first + 46]
    overlapping.write_bytes(data)
    told = rows(tmp_path / "class")
    assert told["before it", LESSON] == told["twice", LESSON] == ""
    assert {student for student, _ in told} == {"before it", "twice", "overlapping"}
    assert all(reason for (student, _), reason in told.items() if student == "overlapping")


def test_folders_within_folders_without_end_are_one_row(tmp_path):
    put(tmp_path / "class" / "ok" / "nb.ipynb")
    (tmp_path / "class" / "deep").mkdir()
    before = os.getcwd()  # noqa: PTH109
    try:
        os.chdir(tmp_path / "class" / "deep")
        for _ in range(1500):
            os.mkdir("d")  # noqa: PTH102
            os.chdir("d")
    finally:
        os.chdir(before)
    found = rows(tmp_path / "class")
    assert found["ok", LESSON] == ""
    assert found["deep", "no notebook"].startswith("Folders lie within folders here, more than 32 deep")
    subprocess.run(["rm", "-rf", str(tmp_path / "class" / "deep")], check=True)


def test_where_students_folders_are_named_one_by_one_none_takes_anothers_name(tmp_path):
    put(tmp_path / "bob" / f"{LESSON}.ipynb")
    put(tmp_path / "eve" / f"{LESSON}.ipynb")
    put(tmp_path / "eve" / "bob" / "nb.ipynb")
    found = rows(*tmp_path.iterdir())
    assert found["bob", LESSON] == found["eve", LESSON] == ""
    (nobodys,) = (sentence for key, sentence in found.items() if key[0] not in ("bob", "eve"))
    assert nobodys.startswith("Where it lies names bob, but ")
    for week in ("week1", "week2"):
        put(tmp_path / "classes" / week / "ada" / week / "nb.ipynb")
    found = rows(*sorted((tmp_path / "classes").iterdir()))
    assert found["ada", LESSON].startswith("There are 2 files of this student"), "those within are alike"


def test_of_one_student_so_many_folders_are_read_and_of_the_others_all(tmp_path, monkeypatch):
    monkeypatch.setattr(walking, "MAX_FOLDERS", 5)
    for student in ("ada", "eve"):
        for number in range(9 if student == "eve" else 3):
            put(tmp_path / "submitted" / LESSON / student / f"{number}" / "nb.ipynb")
    (tmp_path / "submitted" / LESSON / "mia" / "deep").mkdir(parents=True)
    met = list(walking.walk(tmp_path))
    read = [one.path.parent.parent.name for one in met if not one.trouble]
    assert read == ["ada"] * 3 + ["eve"] * 4, "the student's own folder is one of the five"
    (eve,) = (one for one in met if one.trouble)
    assert eve.path.name == "eve"
    assert eve.trouble == "More than 2,000 folders lie in this one. The first 2,000 are read, and no others."


def test_to_walk_costs_each_file_once_however_many_students_there_are(tmp_path, monkeypatch):
    for number in range(20):
        put(tmp_path / f"s{number}" / "nb.ipynb")
    for number in range(200):
        put(tmp_path / "eve" / f"{number}.ipynb", b"")
    (tmp_path / "empty").mkdir()
    asked = []
    for name in ("is_relative_to", "relative_to"):
        real = getattr(Path, name)
        monkeypatch.setattr(Path, name, lambda *given, real=real: asked.append(given) or real(*given))
    met = list(walking.walk(tmp_path))
    assert [one.path.name for one in met if one.trouble] == ["empty"]
    assert len(met) == 221
    assert len(asked) <= len(met)


def test_data_beside_ones_own_notebook_are_nobodys(tmp_path):
    put(tmp_path / "ada" / "nb.ipynb")
    (tmp_path / "ada" / "data").mkdir()
    assert rows(tmp_path / "ada") == {("nb", LESSON): ""}


def test_of_several_zips_each_is_the_student(tmp_path):
    for name in ("week1/ada.zip", "eve.zip", "week2/ada.zip"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        with zipfile.ZipFile(tmp_path / name, "w") as archive:
            archive.writestr("bob_7_assignsubmission_file_/bob.ipynb", NOTEBOOK)
    found = rows(*sorted(tmp_path.rglob("*.zip")))
    assert found.keys() == {("ada", LESSON), ("eve", LESSON)}
    assert found["eve", LESSON] == ""
    assert found["ada", LESSON].startswith("There are 2 files of this student for this assignment")
    assert rows(tmp_path / "eve.zip").keys() == {("bob_7", LESSON)}, "a single one is a class's"
    put(tmp_path / "bob_7.ipynb")
    found = rows(tmp_path / "eve.zip", tmp_path / "bob_7.ipynb")
    assert found == {("eve", LESSON): "", ("bob_7", LESSON): ""}, "beside something else it is a student's, too"


def test_a_students_zip_that_is_called_as_a_lesson_is_of_the_folder_around_it(tmp_path):
    for name in ("bob", "eve"):
        (tmp_path / name).mkdir()
        with zipfile.ZipFile(tmp_path / name / f"{LESSON}.zip", "w") as archive:
            archive.writestr("bob/nb.ipynb", NOTEBOOK)
    assert rows(*tmp_path.rglob("*.zip")) == {("bob", LESSON): "", ("eve", LESSON): ""}
    for name in ("bob", "eve"):
        (tmp_path / name / LESSON).mkdir()
        (tmp_path / name / f"{LESSON}.zip").rename(tmp_path / name / LESSON / f"{LESSON}.zip")
    assert rows(*tmp_path.rglob("*.zip")) == {("bob", LESSON): "", ("eve", LESSON): ""}


def zipped(path: Path, *names: str) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        for name in names:
            archive.writestr(name, NOTEBOOK)


NAMED_AS_ADA = {
    "a zip that is called as a lesson": f"{LESSON}.zip/Zo\u00eb/nb.ipynb",
    "a zip": "Zo\u00eb.zip/nb.ipynb",
    "a notebook": f"Zo\u00eb_{LESSON}.ipynb",
    "a folder with a space": "Zo\u00eb /nb.ipynb",
    "a folder with a line's end": "\nZo\u00eb/nb.ipynb",
    "a folder that is spelled otherwise": "Zoe\u0308/nb.ipynb",
    "a folder that is called as a file": "Zo\u00eb.ipynb/nb.ipynb",
    "a folder in one that is called as a lesson": f"{LESSON}/Zo\u00eb/nb.ipynb",
}


@pytest.mark.parametrize("name", NAMED_AS_ADA.values(), ids=NAMED_AS_ADA)
def test_a_name_like_that_of_a_students_folder_harms_nobody(tmp_path, monkeypatch, name):
    monkeypatch.setattr(budget, "MAX_FILES", 3)
    folder = tmp_path / "class"
    own = put(folder / "Zo\u00eb" / "nb.ipynb")
    put(folder / f"{name.partition('/')[0]!r}" / "nb.ipynb")  # a student who is called as that row is
    before, _, inner = name.partition(".zip/")
    if inner:
        zipped(folder / f"{before}.zip", *(inner.replace("nb.", f"nb{number}.") for number in range(5)))
    else:
        put(folder / name)
    found = {(one.student, one.assignment): one for one in find([folder])}
    zoe = found.pop(("Zo\u00eb", LESSON))
    assert (zoe.path, zoe.unreadable) == (str(own), "")
    assert zoe.cells
    good = [one.student for one in found.values() if not one.unreadable]
    assert len(good) == 1, "the student who is called as that row is"
    others = [one for one in found.values() if one.unreadable]
    assert others
    for one in others:
        assert one.student not in ("Zo\u00eb", *good)
        assert f"names Zo\u00eb, but {own} does so" in one.unreadable
        assert (one.cells, one.number) == ((), "")


def test_of_what_lies_equally_near_to_a_name_nobody_knows_which_counts(tmp_path):
    zipped(tmp_path / "ada.zip", "nb.ipynb")
    put(tmp_path / f"ada_{LESSON}.ipynb")
    for number in range(2):
        zipped(tmp_path / f"{LESSON}.zip", f"bob{number}/nb.ipynb", f"bob{1 - number}/nb.ipynb")
    found = rows(tmp_path)
    assert found["bob0", LESSON] == found["bob1", LESSON] == "", (
        "where no folder is called so, a lesson's zip names them"
    )
    assert [student for student, _ in found] == ["'ada.zip'", "ada", "bob0", "bob1"]


def test_a_name_of_two_platforms_is_a_row_that_says_so(tmp_path):
    with zipfile.ZipFile(tmp_path / "canvas.zip", "w") as archive:
        archive.writestr("lovelaceada_101_9001_nb.ipynb", NOTEBOOK)
        archive.writestr("mallory_103_9003_x_101_assignsubmission_file_nb.ipynb", NOTEBOOK)
    mallory, ada = sorted(find([tmp_path / "canvas.zip"]), key=lambda one: one.number)
    assert (ada.student, ada.number, ada.unreadable) == ("lovelaceada_101", "101", "")
    assert (mallory.student, mallory.number) == ("mallory_103_9003_x_101_assignsubmission_file_nb", "")
    assert mallory.cells == ()
    assert mallory.unreadable == (
        "Its name does not tell whose it is: it begins as those that Canvas writes (_103_9003_), and goes on as those "
        "that Moodle writes. Rename it after its student."
    )


def test_a_failure_of_the_reader_is_that_files_alone(tmp_path, monkeypatch):
    put(tmp_path / "ada" / "nb.ipynb")
    put(tmp_path / "bob" / "nb.ipynb")

    def fails(file):
        if file.parent.name == "ada":
            raise RecursionError("too deep")
        return real(file)

    real = finding.bytes_of
    monkeypatch.setattr(finding, "bytes_of", fails)
    ada, bob = sorted(find([tmp_path]), key=lambda one: one.student)
    assert (ada.student, ada.detail, bob.unreadable) == ("ada", "RecursionError: too deep", "")
    assert ada.unreadable.startswith("The file could not be read, for a reason that the course does not know.")


def many(folder: Path) -> Path:
    """A student's files, 13 of them: 5 notebooks in a zip, 5 in folders, a zip without any, and the zips themselves."""
    (folder / "eve").mkdir(parents=True)
    with zipfile.ZipFile(folder / "eve" / "a.zip", "w") as archive:
        for number in range(5):
            archive.writestr(f"in{number}.ipynb", b"{}")
    for number in range(5):
        put(folder / "eve" / str(number) / f"out{number}.ipynb", b"{}")
    with zipfile.ZipFile(folder / "eve" / "b.zip", "w") as archive:
        archive.writestr("readme.txt", b"")
    put(folder / "eve" / "c.zip", b"no zip")
    return folder


def test_what_one_student_hands_in_beyond_a_number_is_one_row(tmp_path, monkeypatch):
    monkeypatch.setattr(budget, "MAX_FILES", 4)
    put(many(tmp_path / "class") / "ok" / "nb.ipynb")
    found = rows(tmp_path / "class")
    assert found.pop(("ok", LESSON)) == ""
    assert found.pop(("eve", "more files")) == (
        "This student handed in 13 notebooks and zips. The first 4 are looked at, and no others: keep those that count."
    )
    assert found.keys() == {("eve", "in0"), ("eve", "in1"), ("eve", "in2")}, "the zip that they are in is a file, too"
    before = {one.assignment: one for one in find([tmp_path / "class"]) if one.student == "eve"}["more files"]
    assert before.path == f"{tmp_path}/class/eve/a.zip"
    put(tmp_path / "class" / "eve" / "one_more.ipynb")
    after = {one.assignment: one for one in find([tmp_path / "class"]) if one.student == "eve"}["more files"]
    assert "14 notebooks" in after.unreadable
    assert before.digest != after.digest, "so that the row is made anew"


def test_in_the_zip_of_a_class_one_student_does_not_crowd_out_the_others(tmp_path, monkeypatch):
    monkeypatch.setattr(budget, "MAX_FILES", 4)
    with zipfile.ZipFile(tmp_path / "class.zip", "w") as archive:
        for number in range(20):
            archive.writestr(f"Eve_7_assignsubmission_file_/{number}.ipynb", b"{}")
        archive.writestr("Ok_8_assignsubmission_file_/nb.ipynb", NOTEBOOK)
    found = {(one.student, one.assignment): one for one in find([tmp_path / "class.zip"])}
    assert found["Ok_8", LESSON].unreadable == ""
    assert len(found) == 6
    assert "handed in 20 notebooks and zips" in found["Eve_7", "more files"].unreadable
    assert found["Eve_7", "more files"].number == "7"


def test_files_beyond_the_number_are_neither_opened_nor_unpacked(tmp_path, monkeypatch):
    monkeypatch.setattr(budget, "MAX_FILES", 4)
    opened = []
    for module, name in ((finding, "bytes_of"), (archives, "_read"), (archives, "_directory")):
        real = getattr(module, name)
        monkeypatch.setattr(module, name, lambda *given, real=real: opened.append(given) or real(*given))
    find([many(tmp_path / "class")])
    assert len(opened) == 4, "a zip and three of its notebooks"


def test_a_zip_of_many_small_bombs_is_not_decoded(tmp_path, monkeypatch):
    (tmp_path / "class").mkdir()
    with zipfile.ZipFile(tmp_path / "class" / "eve.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        for number in range(20):
            archive.writestr(f"{number}.ipynb", b"[" + b"NaN," * 200_000 + b"0]")
    decoded = []
    real = reading._notebook
    monkeypatch.setattr(reading, "_notebook", lambda data, slow: decoded.append(data) or real(data, slow))
    put(tmp_path / "class" / "ok" / "nb.ipynb")
    found = rows(tmp_path / "class")
    assert found["ok", LESSON] == ""
    assert len(decoded) == 2, "the first bomb, and the notebook that is none"
    grows = "What this student handed in grows more than 200 times when unpacked, as no notebooks do."
    assert sum(reason == grows for reason in found.values()) == 19


def test_progress_is_told_from_the_first_file_on(tmp_path):
    for name in "abc":
        put(tmp_path / name / "nb.ipynb")
    told: list[int] = []
    find([tmp_path], told.append)
    assert told == [1, 2, 3]


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
        put(folder / "bob" / "nb.ipynb")
        assert rows(folder) == {
            ("ada", "no notebook"): "This folder cannot be read: Permission denied.",
            ("bob", LESSON): "",
        }
        with pytest.raises(SubmissionError, match=r"no zip\.\n.*ada: This folder cannot be read: Permission denied"):
            find([folder / "ada"])
        (folder / "ada").chmod(0o755)


def test_names_that_are_no_text_can_be_kept(tmp_path):
    folder = os.fsencode(tmp_path) + b"/b\xff"
    os.mkdir(folder)  # noqa: PTH102
    shutil.copy(put(tmp_path / "nb.ipynb"), os.fsdecode(folder))
    (tmp_path / "nb.ipynb").unlink()
    (one,) = find([tmp_path])
    assert one.student == "b\\udcff"
    one.path.encode()


def test_what_takes_the_slow_reader_of_json_counts_for_each_student(tmp_path, monkeypatch):
    loose = NOTEBOOK[: NOTEBOOK.rindex(b"}")] + b', "loss": [NaN]}'
    monkeypatch.setattr(budget, "MAX_REPAIRED", len(loose) + 1)
    for name in ("ada/02/a.ipynb", "ada/03/b.ipynb", "bob/c.ipynb"):
        put(tmp_path / name, loose)
    put(tmp_path / "ada" / "03" / f"{LESSON}.ipynb")
    monkeypatch.setattr(finding, "_one_each", lambda found: [it.one for it in found])
    read = {one.path.removeprefix(f"{tmp_path}/"): one.unreadable for one in find([tmp_path])}
    assert [name for name, trouble in read.items() if trouble] == ["ada/03/b.ipynb"]
    assert read["ada/03/b.ipynb"] == (
        "The file is no strict JSON: it was cut off on its way, or holds NaN, as an output may. Of such files 4 MB of "
        "one student are read, which this one exceeds, alone or with others. Clear the outputs, save and hand it in "
        "again."
    )


def test_names_that_are_slow_to_put_in_order_are_refused(tmp_path):
    """Marks in the wrong order take a normal form time with the square of how many there are."""
    put(tmp_path / "ada" / "nb.ipynb")
    (tmp_path / "eve").mkdir()
    marks = "\u0300" * 16_000 + "\u0327" * 16_000
    with zipfile.ZipFile(tmp_path / "eve" / "work.zip", "w") as archive:
        for number in range(12):
            archive.writestr(f"{number}a{marks}.ipynb", NOTEBOOK)
        archive.writestr(f"{'x' * 256}/{LESSON}.ipynb", NOTEBOOK)
    before = time.process_time()
    found = find([tmp_path])
    assert time.process_time() - before < 5, "seconds: a single such name took two"
    assert [(one.student, one.assignment) for one in found if not one.unreadable] == [("ada", LESSON)]
    refused = [one for one in found if one.unreadable]
    assert [one.student for one in refused] == ["eve"] * 13, "each is a row of its own"
    sentence = "Its name, or that of a folder around it, has more than 255 characters. Rename it."
    assert {one.unreadable for one in refused} == {sentence}
