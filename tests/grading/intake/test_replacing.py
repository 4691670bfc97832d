"""Which results stay where another file is named."""

from pathlib import Path

import pytest

from course_utils.grading.intake.replacing import from_elsewhere
from course_utils.grading.submission import Submission

LESSON = "00_start_here"


@pytest.mark.parametrize(
    ("before", "named", "now", "stays"),
    [
        ("sub/ada/nb.ipynb", "sub", "sub/ada/nb.ipynb", False),
        ("sub/ada/nb.ipynb", "sub", "sub/ada/final.ipynb", False),
        ("sub/ada/nb.ipynb", "sub/ada", "sub/ada/final.ipynb", False),
        ("ada/nb.ipynb", ".", "ada/nb.ipynb", False),
        ("canvas.zip/ada_1_2_nb.ipynb", "canvas.zip", "canvas.zip/ada_1_3_nb-1.ipynb", False),
        ("sub/ada/nb.ipynb", "../here/sub", "../here/sub/ada/nb.ipynb", False),
        ("sub/ada/nb.ipynb", "sub/mallory/mallory.zip", "sub/mallory/mallory.zip/ada/nb.ipynb", True),
        ("sub/ada/nb.ipynb", "late/ada.ipynb", "late/ada.ipynb", True),
        ("sub2/ada/nb.ipynb", "sub", "sub/ada/nb.ipynb", True),
        ("canvas.zip/ada_1_2_nb.ipynb", "canvas (1).zip", "canvas (1).zip/ada_1_3_nb.ipynb", True),
        ("", "sub", "sub/ada/nb.ipynb", False),
    ],
)
def test_a_result_stays_where_its_file_lies_outside_what_is_named(tmp_path, monkeypatch, before, named, now, stays):
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    one = Submission("ada", LESSON, now, "digest")
    found = from_elsewhere([one], {("ada", LESSON): before, ("bob", LESSON): "x"}, [Path("other"), Path(named)])
    assert found == ({("ada", LESSON): f"{now}: ada, {LESSON} is from {before}"} if stays else {})


def test_who_has_no_result_is_graded():
    assert from_elsewhere([Submission("ada", LESSON, "nb.ipynb", "digest")], {}, [Path("nb.ipynb")]) == {}
