"""`course ask` and `%ask`."""

import json
import shutil

import pytest
from click.testing import CliRunner
from IPython.core.interactiveshell import InteractiveShell

from course_utils.ask import codes, command, magic
from course_utils.ask.entries import FOLDER
from course_utils.ask.page import PAGE, page
from course_utils.cli import course
from course_utils.place import ROOT


def run(*words):
    return CliRunner().invoke(course, ["ask", *words])


def test_it_prints_the_entries_and_where_they_stand():
    done = run("why is my grad None")
    assert done.exit_code == 0
    assert done.output.startswith("1. Why is my grad None?\n   `.grad` is None until a backward pass")
    assert "notebooks/questions/gradients_missing.ipynb#Why-is-my-grad-None%3F" in done.output


def test_show_prints_the_whole_with_its_run():
    done = run("why", "is", "my", "grad", "None", "--show", "1")
    assert "    import torch\n" in done.output
    assert "**Fix.**" in done.output


def test_json_is_for_tools():
    first, *_ = json.loads(run("grad None", "--json").output)
    assert set(first) == {"question", "answer", "link", "also", "codes", "run", "why"}
    assert json.loads(run("zzzzz", "--json").output) == []


def test_nothing_found_says_where_all_are():
    assert run("zzzzz").output == ("No entry has a word of that. notebooks/questions/README.md lists all questions.\n")


def test_a_copy_without_questions_says_so(monkeypatch, tmp_path):
    monkeypatch.setattr(command, "ROOT", tmp_path)
    done = run("grad")
    assert done.exit_code == 1
    assert "has no questions: this copy of the course lacks them" in done.output


@pytest.mark.parametrize("text", ["{", "{}", "[]", '{"cells": []}', '{"cells": [{"cell_type": "markdown"}]}'])
def test_a_damaged_notebook_is_no_traceback(monkeypatch, tmp_path, text):
    (tmp_path / "notebooks" / "questions").mkdir(parents=True)
    (tmp_path / "notebooks" / "questions" / "a.ipynb").write_text(text)
    monkeypatch.setattr(command, "ROOT", tmp_path)
    done = run("grad")
    assert "the questions cannot be read: " in done.output
    assert isinstance(done.exception, SystemExit)


@pytest.mark.parametrize(
    "damage", ["{", "{}", "[]", '{"cells": {}}', '{"cells": [1]}', '{"cells": [{"cell_type": "code"}]}']
)
def test_a_damaged_notebook_is_left_out_and_the_others_answer(monkeypatch, tmp_path, damage):
    shutil.copytree(ROOT / FOLDER, tmp_path / FOLDER)
    (tmp_path / FOLDER / "losses.ipynb").write_text(damage)
    monkeypatch.setattr(command, "ROOT", tmp_path)
    done = run("why is my grad None")
    assert done.exit_code == 0
    assert done.stdout.startswith("1. Why is my grad None?")
    assert done.stderr.startswith(f"left out, as it is damaged: {tmp_path / FOLDER / 'losses.ipynb'}: ")


def test_the_magic_answers_beside_a_damaged_notebook(monkeypatch, tmp_path, capsys):
    shutil.copytree(ROOT / FOLDER, tmp_path / FOLDER)
    (tmp_path / FOLDER / "losses.ipynb").write_text("{}")
    monkeypatch.setattr(magic, "ROOT", tmp_path)
    told = []
    monkeypatch.setattr(magic, "display", lambda shown: told.append(shown.data))
    shell = InteractiveShell()
    magic.register(shell)
    shell.run_line_magic("ask", "why is my grad None")
    magic.unregister(shell)
    assert told[0].startswith(f"left out, as it is damaged: {tmp_path}")
    assert "**Why is my grad None?**" in told[0]


def test_the_magic_shows_entries_with_their_runs_folded(capsys):
    shell = InteractiveShell()
    magic.register(shell)
    shell.run_line_magic("ask", "why is my grad None")
    magic.unregister(shell)
    assert "ask" not in shell.magics_manager.magics["line"]


def test_a_code_leads_to_a_question():
    assert codes.asked("parameter-never-reached").startswith('Asked as "')
    assert codes.asked("no such code") == ""
    assert all(codes.asked(code).count('"') % 2 == 0 for code in codes._by_code()), "what is opened is closed"


def test_the_page_of_all_questions_is_as_built():
    assert (codes.ROOT / PAGE).read_text(encoding="utf-8") == page(codes.ROOT)


@pytest.mark.parametrize("module", ["torch", "nbformat"])
def test_searching_imports_no_torch(module):
    import subprocess
    import sys

    code = f"import sys, course_utils.ask.command, course_utils.ask.search; print({module!r} in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
