"""`check`, `hint`, `solution` and `progress` as a learner meets them."""

import sqlite3
import subprocess
import sys

import pytest
import torch

from course_utils import CheckFailed, check, hint, progress, solution
from course_utils.checks import guidance
from course_utils.checks.progress import outcomes, path, record
from course_utils.checks.registry import UnknownExercise


@pytest.fixture(autouse=True)
def own_progress(tmp_path, monkeypatch):
    monkeypatch.setenv("COURSE_PROGRESS", str(tmp_path / "deep" / "progress.sqlite"))
    monkeypatch.setattr(guidance, "_given", {})


def test_a_right_answer_returns_none_and_shows_the_points(capsys):
    assert check("first_gradient", 8) is None
    assert capsys.readouterr().out == "✔ first_gradient: correct\n  1 of 1 points.\n"


def test_a_wrong_answer_raises_one_line(capsys):
    with pytest.raises(CheckFailed) as failure:
        check("first_gradient", 15)
    assert str(failure.value) == (
        "first_gradient: incorrect. You gave y itself. x.grad holds the derivative of y with respect to x."
    )
    assert failure.value._render_traceback_() == [f"CheckFailed: {failure.value}"]
    shown = capsys.readouterr()
    assert shown.err == ""
    assert shown.out.startswith("✘ first_gradient: incorrect\n  You gave y itself.")
    assert 'Stuck? hint("first_gradient") gives the next hint.' in shown.out


def test_not_attempted_raises_too_so_that_it_scores_nothing(capsys):
    with pytest.raises(CheckFailed, match="first_gradient: not attempted"):
        check("first_gradient", ...)
    assert "○ first_gradient: not attempted" in capsys.readouterr().out


def test_unknown_exercises():
    with pytest.raises(
        UnknownExercise, match=r"no exercise is called 'first_gradiant'\. Did you mean 'first_gradient'"
    ):
        check("first_gradiant", 8)
    with pytest.raises(UnknownExercise, match=r"no exercise is called 'zzz'. progress\(\) lists them all."):
        hint("zzz")
    with pytest.raises(TypeError, match="this is of type int"):
        check(8, "first_gradient")


def test_html_is_escaped_and_has_the_same_words():
    from course_utils.checks.examine import examine
    from course_utils.checks.registry import exercise_called, observer_for
    from course_utils.checks.show import shown

    def slope(x):
        raise ValueError("<script>alert(1)</script>")

    exercise = exercise_called("slope")
    bundle = shown(exercise, examine(exercise, observer_for(exercise), slope))._repr_mimebundle_()
    assert "<script>" not in bundle["text/html"]
    assert "&lt;script&gt;" in bundle["text/html"]
    assert 'role="status"' in bundle["text/html"]
    assert "<code>" in shown(exercise, examine(exercise, observer_for(exercise), ...)).html


def test_the_learners_objects_are_not_touched():
    answer = torch.tensor(8.0, requires_grad=True) * 1
    node = answer.grad_fn
    check("first_gradient", answer)
    assert answer.grad_fn is node
    assert answer._version == 0


def test_hints_rise_and_stay_at_the_last(capsys):
    shown = []
    for _ in range(4):
        hint("slope")
        shown.append(capsys.readouterr().out)
    assert shown[0].startswith("Hint 1 of 3 for slope, a nudge:")
    assert 'There is more: hint("slope") again.' in shown[0]
    assert shown[1].startswith("Hint 2 of 3 for slope, an approach:")
    assert shown[2].startswith("Hint 3 of 3 for slope, an outline:")
    assert "There is more" not in shown[2]
    assert shown[3] == shown[2]


def test_solution_shows_the_masters_cell(capsys):
    solution("slope")
    shown = capsys.readouterr().out
    assert shown.startswith("One right answer to slope:\ndef slope(x):")
    assert "SOLUTION" not in shown


def test_solution_without_masters(monkeypatch, tmp_path):
    monkeypatch.setattr(guidance, "ROOT", tmp_path)
    with pytest.raises(FileNotFoundError, match=r"stands in solutions/00_start_here.ipynb, which this copy"):
        solution("slope")


def test_progress_counts_what_was_solved():
    for outcome in ("incorrect", "correct", "error"):
        record("slope", outcome)
    record("first_gradient", "not attempted")
    assert outcomes() == {"slope": ("correct", 3)}
    text = str(progress())
    assert "slope" in text
    assert "✔ correct" in text
    assert "1 of " in text
    assert '<th scope="col">' in progress().html
    assert "<caption>1 of " in progress().html


def test_checks_are_recorded():
    check("first_gradient", 8)
    with pytest.raises(CheckFailed):
        check("slope", lambda x: x)
    assert outcomes() == {"first_gradient": ("correct", 1), "slope": ("incorrect", 1)}


def test_a_damaged_progress_file_stops_nothing():
    path().parent.mkdir(parents=True)
    path().write_text("no database")
    check("first_gradient", 8)
    assert "Delete that file to start a new one." in str(progress())
    assert path().read_text() == "no database"


def test_a_progress_file_that_cannot_be_made_stops_nothing(monkeypatch, tmp_path):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("COURSE_PROGRESS", str(tmp_path / "file" / "progress.sqlite"))
    check("first_gradient", 8)
    assert "could not be read" in str(progress())


def test_unknown_rows_in_the_progress_file_are_ignored():
    record("slope", "correct")
    with sqlite3.connect(path()) as database:
        database.execute("insert into attempts (exercise, outcome) values ('gone', 'correct')")
        database.execute("insert into attempts (exercise, outcome) values ('first_gradient', 'weird')")
    assert "gone" not in str(progress())


def test_in_ipython_a_failed_check_is_one_line():
    code = (
        "from IPython.core.interactiveshell import InteractiveShell\n"
        "shell = InteractiveShell.instance()\n"
        "shell.run_cell('from course_utils import check')\n"
        "shell.run_cell('check(\"first_gradient\", 15)')\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr == ""
    assert "Traceback" not in done.stdout
    assert "CheckFailed: first_gradient: incorrect. You gave y itself." in done.stdout
