"""What an answer's cell raised, as it leaves the sandbox and as each way of telling results shows it."""

import base64
import json
from collections.abc import Iterator
from pathlib import Path

import nbformat
import pytest

from course_utils import notebooks
from course_utils.grading.controller.pool import Grader, limits_of
from course_utils.grading.intake.finding import find
from course_utils.grading.intake.released import CHECK, CourseCell, CourseNotebook
from course_utils.grading.outgoing import export, github, gradescope, report
from course_utils.grading.outgoing.autograded import autograded
from course_utils.grading.submission import Result
from tests.grading.sandbox.attacks import SERVED
from tests.grading.submissions import HONEST, needs_a_sandbox, submission

ROOT = Path(__file__).parents[3]
LESSON = "00_start_here"
MISSING = "`slope` was not defined, or still holds `...`."

RAISING = {
    "a name": ("slope = slop + 1", "NameError: name 'slop' is not defined"),
    "before the answer": ("first = np.ones(2)\ndef slope(x): return 3 * x ** 2", "NameError: name 'np' is not"),
    "no Python": ("def slope(x:\n    return x", "SyntaxError: '(' was never closed (line 1)"),
    "an indentation": ("def slope(x):\nreturn x", "IndentationError: expected an indented block after function"),
    "PyTorch": (
        "import torch\nslope = torch.ones(2) @ torch.ones(3)",
        "RuntimeError: inconsistent tensor size, expected tensor [2] and src [3] to have the same number of elements",
    ),
    "several lines": ("slope = ...\nraise ValueError('\\n  one\\ntwo')", "ValueError: one"),
    "no words": ("slope = ...\nraise KeyError", "KeyError"),
    "many words": ("slope = ...\nraise ValueError('w' * 10**6)", "ValueError: " + "w" * 288),
    "markup": ("slope = ...\nraise ValueError('<b>`x`\\x1b[2J\\u202e')", "ValueError: <b>`x` [2J"),
    "an exit": ("slope = ...\nraise SystemExit(3)", "SystemExit: 3"),
    "a text that fails": (
        "class E(Exception):\n    def __str__(self): raise SystemExit\nslope = ...\nraise E",
        "E: (its message could not be made into text)",
    ),
    "a text that never ends": (
        "class E(SyntaxError):\n    def __str__(self):\n        while True: pass\nslope = ...\nraise E",
        "E: (its message could not be made into text)",
    ),
    "a forged message": (
        "class M(str):\n    def __format__(self, how):\n        while True: pass\n"
        "e = SyntaxError('no')\ne.msg = M('x')\nslope = ...\nraise e",
        "SyntaxError: x",
    ),
}
FORGED = """
def run():
    at = served()
    at['send'](at['line'], wire.Ran(at['request'].token, raised=((0, 'E: all points <b>'),)))
    at['send'] = None
run()
"""


@pytest.fixture(scope="module")
def found() -> Iterator[dict[str, Result]]:
    grader = Grader()
    try:
        limits = limits_of(20, 500_000_000, unsafe=False)
        cells = {name: ("first_gradient = 8", source) for name, (source, _) in RAISING.items()}
        cells["many"] = (*["1 / 0"] * 250, "slope = no")
        cells["untouched"] = ("slope = ...", "slope(3)")
        cells["mended below"] = ("slope = torch.ones(2)", *HONEST)
        cells["forged"] = (SERVED + FORGED + "slope = ...",)
        cells["after"] = tuple(HONEST)
        yield {name: grader.grade(submission(name, *sources), limits) for name, sources in cells.items()}
    finally:
        grader.close()


@needs_a_sandbox
@pytest.mark.parametrize("name", RAISING)
def test_an_answer_whose_cell_raised_says_what(name: str, found: dict[str, Result]) -> None:
    first, slope, *_ = found[name].exercises
    assert first.outcome == "correct"
    assert (slope.outcome, slope.score, found[name].status) == ("error", 0, "graded")
    told, missing = slope.messages
    assert told.startswith(f"Cell 2, where the answer stands, raised an error: {RAISING[name][1]}")
    assert told.isprintable()
    assert len(told) < 400
    assert missing == MISSING


@needs_a_sandbox
def test_what_no_cell_of_an_answer_raised_stays_not_attempted(found: dict[str, Result]) -> None:
    for name in ("untouched", "many"):  # of many exceptions only the first 200 are told
        assert {row.outcome for row in found[name].exercises} == {"not attempted"}
    for name in ("mended below", "after"):
        assert {row.outcome for row in found[name].exercises} == {"correct"}


@needs_a_sandbox
def test_who_forges_what_was_raised_wins_nothing(found: dict[str, Result]) -> None:
    assert found["forged"].score == 0


@needs_a_sandbox
def test_every_way_of_telling_results_tells_it(tmp_path: Path) -> None:
    notebook = notebooks.read(ROOT / "exercises" / f"{LESSON}.ipynb")
    for cell in notebook.cells:
        if cell.metadata.get("nbgrader", {}).get("grade_id") == "slope":
            cell.source = "globals()['slo' + 'pe'] = <tag>"  # nbgrader's mark alone tells whose cell it is
    nbformat.write(notebook, tmp_path / "ada.ipynb")
    (handed,) = find([tmp_path / "ada.ipynb"])
    grader = Grader()
    try:
        result = grader.grade(handed, limits_of(20, 500_000_000, unsafe=False))
    finally:
        grader.close()
    number = next(cell.number for cell in handed.cells if cell.grade_id == "slope")
    told = f"Cell {number}, where the answer stands, raised an error: SyntaxError: invalid syntax (line 1)"
    assert [row.outcome for row in result.exercises[:2]] == ["not attempted", "error"]
    assert result.exercises[1].messages == (told, MISSING)
    assert gradescope.told(result)["tests"][1]["output"] == f"error\n{told}\n{MISSING}"
    assert told in github.summary([result])
    sent = json.loads(base64.b64decode(github.payload([result])))
    assert (sent["tests"][1]["status"], sent["tests"][1]["message"]) == ("error", f"{told}\n{MISSING}")
    assert told in report.student_page("ada", [result])
    export.write_json(tmp_path / "r.json", [result], {})
    assert told in (tmp_path / "r.json").read_text()
    check = CourseCell(f"{CHECK}slope", "code", "", None, True, True, False, False, 1.0, "g", "")
    course = CourseNotebook("n", LESSON, LESSON, "k", LESSON, {}, {check.name: check})
    assert told in autograded((), course, result, list).decode()
