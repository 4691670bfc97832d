"""`check`, `hint`, `solution` and `progress` as a learner meets them."""

import sqlite3
import subprocess
import sys
from dataclasses import replace

import pytest
import torch

from course_utils import CheckFailed, check, hint, progress, solution
from course_utils.checks import guidance
from course_utils.checks.check import last
from course_utils.checks.examine import examine
from course_utils.checks.exercise import Verdict
from course_utils.checks.progress import Tried, outcomes, path, record
from course_utils.checks.registry import UnknownExercise, exercise_called, observer_for
from course_utils.checks.show import shown
from tests.answers import RIGHT


@pytest.fixture(autouse=True)
def own_progress(tmp_path, monkeypatch):
    monkeypatch.setenv("COURSE_PROGRESS", str(tmp_path / "deep" / "progress.sqlite"))
    monkeypatch.setattr(guidance, "_given", {})
    monkeypatch.setattr(guidance, "_led", set())
    last.clear()


def test_a_right_answer_returns_none_and_shows_the_points(capsys):
    assert check("first_gradient", 8) is None
    shown = capsys.readouterr().out
    assert shown.startswith("✔ first_gradient: correct\n  1 of 1 points.\n")
    assert "x.grad holds 8." in shown  # why it is so, for who has it right


def test_a_wrong_answer_raises_one_line(capsys):
    with pytest.raises(CheckFailed) as failure:
        check("first_gradient", 15)
    assert str(failure.value) == (
        "first_gradient: incorrect. That number is y itself, at x = 3. "
        "x.grad holds the derivative of y with respect to x."
    )
    assert failure.value._render_traceback_() == [f"CheckFailed: {failure.value}"]
    shown = capsys.readouterr()
    assert shown.err == ""
    assert shown.out.startswith("✘ first_gradient: incorrect\n  That number is y itself, at x = 3.")
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


def test_what_is_not_attempted_raises_for_programs_and_not_for_a_person_in_jupyterlab(monkeypatch, capsys):
    class Shell:
        cell = ""

        def get_parent(self):
            return {"metadata": {"cellId": self.cell} if self.cell else {}}

    monkeypatch.setattr("IPython.get_ipython", Shell)
    monkeypatch.setattr("course_utils.checks.check.show", print)
    with pytest.raises(CheckFailed, match="slope: not attempted"):
        check("slope", ...)
    monkeypatch.setattr(Shell, "cell", "slope-check")
    check("slope", ...)
    assert "○ slope: not attempted" in capsys.readouterr().out
    with pytest.raises(CheckFailed, match="first_gradient: incorrect"):
        check("first_gradient", 15)


def test_an_exercise_once_solved_stays_so():
    for outcome in ("incorrect", "correct", "error"):
        record("slope", outcome)
    record("first_gradient", "not attempted")
    assert outcomes() == {"slope": Tried("correct", 3, 0.0)}


def test_checks_are_recorded():
    check("first_gradient", 8)
    with pytest.raises(CheckFailed):
        check("slope", lambda x: x)
    assert outcomes() == {"first_gradient": Tried("correct", 1, 1.0), "slope": Tried("incorrect", 1, 0.0)}


def test_a_damaged_progress_file_stops_nothing():
    path().parent.mkdir(parents=True)
    path().write_text("no database")
    check("first_gradient", 8)
    assert path().read_text() == "no database"


def test_a_progress_file_that_cannot_be_made_stops_nothing(monkeypatch, tmp_path):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("COURSE_PROGRESS", str(tmp_path / "file" / "progress.sqlite"))
    check("first_gradient", 8)
    assert "could not be read" in str(progress())


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
    assert "CheckFailed: first_gradient: incorrect. That number is y itself, at x = 3." in done.stdout


def _switched(*wrong):
    right = RIGHT["predict_switches"][0]
    keys = [name for name, value in right.items() if isinstance(value, bool)]
    return keys, {**right, **{keys[number]: not right[keys[number]] for number in wrong}}


def test_a_table_names_its_wrong_entries_after_three_different_answers(capsys):
    def told(*wrong):
        with pytest.raises(CheckFailed):
            check("predict_switches", _switched(*wrong)[1])
        return capsys.readouterr().out

    keys, _ = _switched()
    first, again, second, third = told(0, 1), told(0, 1), told(0, 2), told(1, 2)
    assert "said after 2 more different answers" in first
    assert "said after 2 more different answers" in again
    assert "said after one more different answer." in second
    assert all("Look again at" not in text for text in (first, again, second))
    assert f"Look again at {keys[1]} and {keys[2]}." in third


def test_progress_keeps_how_much_of_the_first_table_was_right():
    table = _switched(0)[1]
    entries = len(table)
    with pytest.raises(CheckFailed):
        check("predict_switches", table)
    check("predict_switches", _switched()[1])
    check("first_gradient", 8)
    assert outcomes()["predict_switches"] == Tried("correct", 2, (entries - 1) / entries)
    assert "1 of the 2 that you tried were right at the first check." in str(progress())


def test_a_progress_file_of_an_older_version_goes_on():
    path().parent.mkdir(parents=True)
    with sqlite3.connect(path()) as database:
        database.execute("create table attempts (exercise text not null, outcome text not null, at text)")
        database.execute("insert into attempts (exercise, outcome) values ('slope', 'correct')")
    check("first_gradient", 8)
    assert outcomes() == {"slope": Tried("correct", 1, 1.0), "first_gradient": Tried("correct", 1, 1.0)}


def test_a_hint_starts_from_what_the_last_check_recognised(capsys, monkeypatch):
    slope = exercise_called("slope")
    named = replace(slope.misconceptions[0], hint="Look at the other end.")
    monkeypatch.setattr(guidance, "exercise_called", lambda id: replace(slope, misconceptions=(named,)))
    last["slope"] = Verdict("slope", "incorrect", 1, ("wrong",), (), (named.name,))
    hint("slope")
    assert capsys.readouterr().out.startswith(
        "Hint for slope, after what the last check found:\nLook at the other end.\nThere is more"
    )
    hint("slope")
    assert capsys.readouterr().out.startswith("Hint 1 of 3 for slope")


def test_a_right_answer_is_told_what_the_check_saw_and_a_failing_debrief_costs_nothing():
    slope = exercise_called("slope")
    right = RIGHT["slope"][0]
    told = replace(slope, debrief=lambda seen: [f"Seen in {len(seen)} cases."])
    verdict = examine(told, observer_for(slope), right)
    assert verdict.debrief == (f"Seen in {len(list(slope.cases(1)))} cases.",)
    assert verdict.debrief[0] in str(shown(told, verdict))
    forged = replace(slope, debrief=lambda seen: [seen[0][1]["never observed"]])
    assert examine(forged, observer_for(slope), right).outcome == "correct"
