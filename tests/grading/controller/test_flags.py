"""Flags beside the scores: at which exercises a cell is flagged, and in which words."""

import time

import msgspec
import pytest

from course_utils.grading.controller import flags, scoring
from course_utils.grading.controller.making import pose
from course_utils.grading.submission import ExerciseResult, Result, Submission
from tests.grading.submissions import submission

LESSON = "03_graph_freeing"
EXERCISES = tuple(item.exercise for item in pose(LESSON, lambda below: 7))


def with_flags(result: Result, handed: Submission) -> Result:
    cells = [(cell.number, cell.source) for cell in handed.cells]
    return scoring.flagged(result, flags.flags_of(cells, EXERCISES))


def flagged(*sources: str, outcome: str = "correct") -> dict[str, tuple[str, ...]]:
    rows = tuple(ExerciseResult(it.id, outcome, 1.0, 1.0, (), (), 0.1) for it in EXERCISES)
    handed: Submission = submission("ada", *sources, assignment=LESSON)
    result = with_flags(Result("ada", LESSON, "p", "graded", 1.0, 1.0, 0.1, rows), handed)
    assert result.score == 1.0
    return {row.id: row.flags for row in result.exercises if row.flags}


def test_a_cell_that_answers_is_flagged_at_its_exercise() -> None:
    found = flagged("import torch", "def frugal(block):\n    vars(block)\n    block._forward_hooks")
    assert found == {
        "frugal": (
            "Cell 2 uses `_forward_hooks` and `vars`. By such names an answer can change what is observed of it. "
            "Read the cell.",
        )
    }


def test_any_other_cell_is_flagged_at_every_exercise() -> None:
    found = flagged("import ctypes")
    assert found.keys() == {it.id for it in EXERCISES}
    assert len({sentence for sentences in found.values() for sentence in sentences}) == 1


def test_what_an_exercise_lists_is_no_reason_there() -> None:
    assert flagged("def freed_nodes(a, b):\n    return getattr(a, b)") == {}
    assert flagged("def frugal(a, b):\n    return getattr(a, b)").keys() == {"frugal"}
    assert flagged("def both(a, b):\n    return getattr(a, b)") == {}, "a helper may be that exercise's"


def test_numbers_taken_out_of_pytorch_are_a_reason_where_operations_are_counted() -> None:
    out = "def out(x):\n    return x.numpy()"
    assert flagged("def fewest_bytes(a, b, c):\n    return a.numpy()").keys() == {"fewest_bytes"}
    assert flagged(out, "def fewest_bytes(a, b, c):\n    return out(a)").keys() == {"fewest_bytes"}
    assert flagged(out, "def train(a, b, c):\n    return out(a)") == {}
    assert flagged("import numpy as np\nnp.ones(2)", "def fewest_bytes(a, b, c):\n    return a") == {}


def test_names_that_lead_through_all_cells_cost_each_one_look() -> None:
    cells = [f"v{number} = v{number + 1}" for number in range(4900)]
    before = time.thread_time()
    found = flagged("def fewest_bytes(a, b, c):\n    return v0", *cells, "v4900 = torch.ones(2).numpy()")
    assert time.thread_time() - before < 5, "to look for each cell in a list of all takes a hundred times as long"
    assert found.keys() == {"fewest_bytes"}
    assert "`numpy`" in found["fewest_bytes"][0]


def test_what_was_not_attempted_is_not_flagged() -> None:
    assert flagged("import ctypes", outcome="not attempted") == {}


def test_long_names_and_many_are_cut() -> None:
    (sentence,) = flagged("def frugal(x):\n" + "".join(f"    x.__{letter * 90}__\n" for letter in "abcdefghij"))[
        "frugal"
    ]
    assert "`__aaa" in sentence
    assert "4 more" in sentence
    assert len(sentence) < 600


def test_more_code_than_is_looked_at_is_said() -> None:
    (sentence,) = flagged("x = 1\n" * 30_000)["frugal"]
    assert "not looked at" in sentence


def test_where_the_look_fails_the_answers_are_graded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flags, "look", lambda sources: 1 / 0)
    assert flagged("x = 1")["frugal"] == ("The look at the cells failed (ZeroDivisionError). Read them.",)


def test_flags_that_stand_there_stay() -> None:
    row = ExerciseResult("frugal", "correct", 1.0, 1.0, (), (), 0.1, flags=("Other.",))
    result = Result("ada", LESSON, "p", "graded", 1.0, 1.0, 0.1, (row,))
    found = with_flags(result, submission("ada", "import ctypes", assignment=LESSON))
    assert [len(row.flags) for row in found.exercises] == [2]
    assert found.flags == found.exercises[0].flags
    assert msgspec.json.decode(msgspec.json.encode(found), type=Result) == found
