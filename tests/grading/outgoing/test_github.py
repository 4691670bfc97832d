"""The workflow that grades a push: its steps, run as GitHub runs them, and what they tell."""

import base64
import json
import os
import re
import shutil
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from course_utils.grading.outgoing.github import GithubError, notices, payload, summary, write_step
from course_utils.grading.submission import ExerciseResult, Result
from tests.grading.submissions import needs_a_sandbox, total_of

ROOT = Path(__file__).parents[3]
WORKFLOW = ROOT / "classroom" / "github" / "grade.yml"

RIGHT = ExerciseResult("walk", "correct", 2.0, 2.0, (), (), 0.01)
WRONG = ExerciseResult("step", "incorrect", 0.0, 3.0, ("twice",), ("It is | `wrong`.\n\n</td><script>x", "So."), 0.02)
BROKEN = ExerciseResult("leap", "error", 9.0, 1.0, (), ("It raised.",), 0.02)
ADA = Result("ada", "01_graph_structure", "ada/nb.ipynb", "timeout", 2.0, 6.0, 0.1, (RIGHT, WRONG, BROKEN), "<b>late")

# What the reporter reads (its main.js, notify-classroom.js and console results), and what the graders write.
PAYLOAD = {
    "type": "object",
    "additionalProperties": False,
    "required": ["version", "status", "max_score", "tests"],
    "properties": {
        "version": {"const": 1},
        "status": {"enum": ["pass", "fail", "error"]},
        "max_score": {"type": "number", "minimum": 0},
        "tests": {
            "type": "array",
            "items": {
                "type": "object",
                "additionalProperties": False,
                "required": ["name", "status", "score", "message", "test_code", "filename", "line_no"],
                "properties": {
                    "name": {"type": "string"},
                    "status": {"enum": ["pass", "fail", "error"]},
                    "score": {"type": "number", "minimum": 0},
                    "message": {"type": ["string", "null"]},
                    "test_code": {"type": "string"},
                    "filename": {"type": "string"},
                    "line_no": {"type": "integer"},
                    "execution_time": {"type": "number"},
                },
            },
        },
    },
}


class Tags(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: list[Any]) -> None:
        self.tags.append(tag)


def read_payload(text: str) -> Any:
    content = json.loads(base64.b64decode(text, validate=True))
    jsonschema.validate(content, PAYLOAD)
    return content


def test_the_summary_is_a_table_in_which_learners_text_is_text():
    page = summary([ADA])
    assert "<h3>ada, 01_graph_structure: 2 of 6 points</h3>" in page
    assert "<td>step</td><td>incorrect</td><td>0 of 3</td>" in page
    assert "timeout. &lt;b&gt;late" in page
    assert set(Tags(page).tags) == {"h3", "p", "table", "tr", "th", "td", "br"}
    table = page[page.index("<table>") : page.index("</table>")]
    assert "\n\n" not in table, "after a blank line GitHub reads Markdown"
    assert "It is | `wrong`.<br>&lt;/td&gt;&lt;script&gt;x<br>So." in table


def test_reporters_read_the_payload():
    told = read_payload(payload([ADA]))
    assert (told["status"], told["max_score"]) == ("error", 6.0)
    assert [(one["name"], one["status"], one["score"]) for one in told["tests"]] == [
        ("walk", "pass", 2.0),
        ("step", "fail", 0.0),
        ("leap", "error", 1.0),
    ]
    assert read_payload(payload([Result("a", "b", "c", "graded", 2.0, 2.0, 0.1, (RIGHT,))]))["status"] == "pass"
    assert read_payload(payload([]))["status"] == "error"
    assert read_payload(payload([ADA, ADA]))["tests"][0]["name"] == "ada: walk"


def test_nothing_moves_a_cursor_or_turns_the_writing():
    odd = ExerciseResult("walk", "correct", 2.0, 2.0, (), ("a\x1b[2J\x07\u202e\nb",), 0.1)
    results = [Result("a", "b", "c", "timeout", 2.0, 2.0, 0.1, (odd,), "It\x1b]0;x\x07.")]
    (test,) = read_payload(payload(results))["tests"]
    assert test["message"] == "a\\x1b[2J\\x07\\u202e\nb"
    page = summary(results)
    assert "a\\x1b[2J\\x07\\u202e<br>b" in page
    assert all(sign.isprintable() or sign == "\n" for sign in page)


def test_points_are_told_in_two_lines():
    assert notices([ADA, ADA]).splitlines() == [
        "::notice title=Autograding complete::Points 4/12",
        '::notice title=Autograding report::{"totalPoints":4.0,"maxPoints":12.0}',
    ]
    assert notices([]).startswith("::notice title=Autograding complete::Points 0/0\n")


def test_what_a_step_lacks_is_told(tmp_path):
    with pytest.raises(GithubError, match="GITHUB_STEP_SUMMARY is not set: --github belongs into a step"):
        write_step([ADA], {})
    files = {"GITHUB_STEP_SUMMARY": str(tmp_path / "s"), "GITHUB_OUTPUT": str(tmp_path / "missing" / "o")}
    with pytest.raises(GithubError, match="missing/o: cannot be written: No such file"):
        write_step([ADA], files)


@pytest.fixture(scope="module")
def job() -> Any:
    workflow = yaml.safe_load(WORKFLOW.read_text())
    assert workflow["name"] == "Autograding Tests"
    assert workflow[True].keys() == {"push", "workflow_dispatch"}  # YAML 1.1 reads `on` as true
    assert workflow["permissions"] == {"contents": "read"}
    assert list(workflow["jobs"]) == ["run-autograding-tests"]
    return workflow["jobs"]["run-autograding-tests"]


def test_the_course_comes_from_the_teachers_repository_at_one_commit(job):
    work, course = [step["with"] for step in job["steps"] if step.get("uses", "").startswith("actions/checkout@")]
    assert "repository" not in work
    assert work["path"] == "work"
    assert (course["repository"], course["ref"], course["path"]) == (
        "${{ env.COURSE }}",
        "${{ env.COURSE_COMMIT }}",
        "course",
    )
    assert re.fullmatch("[0-9a-f]{40}", job["env"]["COURSE_COMMIT"])
    assert course["sparse-checkout"] == "course_utils"
    assert not work["persist-credentials"]
    assert not course["persist-credentials"]
    (python,) = [step["with"] for step in job["steps"] if step.get("uses", "").startswith("actions/setup-python@")]
    assert (python["cache"], python["cache-dependency-path"]) == ("pip", "course/constraints.txt")


def test_every_step_is_sound(job):
    scripts = [step["run"] for step in job["steps"] if "run" in step]
    assert len(scripts) == 2
    for script in scripts:
        subprocess.run(["bash", "-n"], input=script, text=True, check=True)
        assert "${{" not in script, "what GitHub fills into a script is run by the shell"
    assert {step["uses"].partition("@")[0] for step in job["steps"] if "uses" in step} == {
        *("actions/checkout", "actions/setup-python", "actions/upload-artifact")
    }
    assert "-c course/constraints.txt -e course" in scripts[0]


@needs_a_sandbox
@pytest.mark.parametrize(("folder", "points", "code"), [("solutions", total_of(), 0), ("exercises", 0, 1)])
def test_the_grade_step_grades_a_checkout(job, tmp_path, folder, points, code):
    (tmp_path / "work" / "exercises").mkdir(parents=True)
    shutil.copy(ROOT / folder / "00_start_here.ipynb", tmp_path / "work" / "exercises")
    (tmp_path / "temp").mkdir()
    (tmp_path / "bin").mkdir()
    command = tmp_path / "bin" / "course"
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -m course_utils "$@"\n')
    command.chmod(0o755)
    environment = {
        **os.environ,
        **job["env"],
        "PATH": f"{command.parent}:{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
        "RUNNER_TEMP": str(tmp_path / "temp"),
        "GITHUB_STEP_SUMMARY": str(tmp_path / "summary"),
        "GITHUB_OUTPUT": str(tmp_path / "output"),
    }
    (script,) = [step["run"] for step in job["steps"] if step.get("id") == "grade"]
    done = subprocess.run(  # as GitHub does
        ["bash", "-e", "-c", script], env=environment, cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == code, done.stderr
    assert f"::notice title=Autograding complete::Points {points}/{total_of()}" in done.stdout.splitlines()
    assert f"exercises, 00_start_here: {points} of {total_of()} points" in (tmp_path / "summary").read_text()
    name, _, value = (tmp_path / "output").read_text().strip().partition("=")
    assert name == "result"
    told = read_payload(value)
    assert (sum(test["score"] for test in told["tests"]), told["max_score"]) == (points, total_of())
    assert json.loads((tmp_path / "temp" / "results.json").read_text())["submissions"]
    assert ("points are missing" in done.stderr) == bool(code)
