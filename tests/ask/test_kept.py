"""The index of all questions is made once, and made anew when what it was made from changes."""

import os
import shutil

import pytest

from course_utils.ask import kept
from course_utils.ask.entries import FOLDER
from course_utils.ask.search import best
from course_utils.place import ROOT

ASKED = ("why is my grad None", "BatchNorm in eval", "gradeints vanish", "RuntimeError: element 0 of tensors")


@pytest.fixture
def root(tmp_path):
    shutil.copytree(ROOT / FOLDER, tmp_path / FOLDER)
    return tmp_path


def never(entries):
    raise AssertionError("an index was made though one is kept")


def test_a_kept_index_answers_like_the_one_it_was_made_from(root, cache, monkeypatch):
    made, damaged = kept.index(root)
    assert damaged == []
    monkeypatch.setattr(kept, "index_of", never)
    read, damaged = kept.index(root)
    assert damaged == []
    assert read is not made
    assert list(read.among) == list(made.among)
    assert [best(text, read) for text in ASKED] == [best(text, made) for text in ASKED]
    assert [file.suffix for file in cache.iterdir()] == [".sqlite"]


def test_a_changed_notebook_makes_it_anew(root):
    before, _ = kept.index(root)
    (root / FOLDER / "losses.ipynb").unlink()
    after, _ = kept.index(root)
    assert 0 < len(after.among) < len(before.among)
    path = root / FOLDER / "gradients_missing.ipynb"
    path.write_text(path.read_text(encoding="utf-8").replace("Why is my grad None?", "Why is my grad nil?"))
    assert best("grad nil", kept.index(root)[0])[0].question == "Why is my grad nil?"


def test_a_notebook_with_another_time_makes_it_anew(root, monkeypatch):
    kept.index(root)
    os.utime(root / FOLDER / "losses.ipynb", (1, 1))
    monkeypatch.setattr(kept, "index_of", never)
    with pytest.raises(AssertionError, match="one is kept"):
        kept.index(root)


@pytest.mark.parametrize("damage", [b"", b"no database", "cut", "other"])
def test_a_damaged_index_is_made_anew(root, cache, damage):
    made, _ = kept.index(root)
    (file,) = cache.iterdir()
    if damage == "other":
        kept.sqlite3.connect(file).execute("drop table parts").connection.commit()
    else:
        file.write_bytes(file.read_bytes()[:30_000] if damage == "cut" else damage)
    again, _ = kept.index(root)
    assert list(again.among) == list(made.among)
    assert best("grad None", kept.index(root)[0]) == best("grad None", made)


def test_with_a_damaged_notebook_nothing_is_kept_and_it_is_said_each_time(root, cache):
    (root / FOLDER / "losses.ipynb").write_text("{}")
    for _ in range(2):
        known, (sentence,) = kept.index(root)
        assert best("grad None", known)
        assert "losses.ipynb: this is no notebook" in sentence
    assert not cache.exists()


def test_a_cache_that_cannot_be_written_costs_no_answer(root, cache):
    cache.write_text("a file where the folder would be")
    assert best("grad None", kept.index(root)[0])
