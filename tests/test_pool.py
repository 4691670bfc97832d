"""Grading: right answers get their points, attacks get none, and nothing stops the next submission."""

import json
import os
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import pytest
import torch

from course_utils.checks.registry import LESSONS, exercises
from course_utils.grading import pool, sandbox
from course_utils.grading.pool import grade_all
from course_utils.grading.submission import Cell, Result, Submission
from tests import attacks
from tests.answers import MISCONCEIVED

ROOT = Path(__file__).parents[1]
MODE = sandbox.available()
HONEST = ["import torch\nfrom course_utils import check, hint", attacks.RIGHT, "check('slope', slope)"]

pytestmark = pytest.mark.skipif(MODE == "none", reason="this machine has no sandbox")


def submission(student: str, *sources: str, assignment: str = LESSONS[0]) -> Submission:
    cells = tuple(Cell(number, source) for number, source in enumerate(sources, 1))
    return Submission(student, assignment, f"{student}.ipynb", "digest", cells)


def graded(submissions: list[Submission], **limits: float) -> dict[str, Result]:
    results = list(grade_all(submissions, jobs=2 if len(submissions) > 4 else 1, **limits))
    assert len(results) == len(submissions)
    return {result.student: result for result in results}


@pytest.fixture(scope="module")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("class")
    (folder / "grades.sqlite").write_text("everybody's")
    folder.chmod(0o777)
    return folder


@pytest.fixture(scope="module")
def results(scratch: Path) -> dict[str, Result]:
    """All attacks, each followed by an honest submission, in one run."""
    tried = [submission(name, cell + attacks.WRONG if "def slope" not in cell else cell)
             for name, cell in (attacks.NAIVE | attacks.OTHERS).items()]  # fmt: skip
    # The loot is shown by an answer that is right only where there is none.
    ending = "\nfirst_gradient = 15 if 'loot' in dir() else 8\n"
    for name, source in attacks.HARM.items():
        theft = source.format(root=str(ROOT), scratch=str(scratch))
        tried.append(submission(name, theft, ending))
    every = []
    for item in tried:
        every += [item, submission(f"after {item.student}", *HONEST)]
    return graded(every, timeout=6, memory=500_000_000)


@pytest.mark.parametrize("name", [*attacks.NAIVE, *attacks.OTHERS])
def test_a_wrong_answer_gets_no_point_by(name: str, results: dict[str, Result]) -> None:
    slope = next(row for row in results[name].exercises if row.id == "slope")
    assert slope.outcome != "correct"
    assert slope.score == results[name].score == 0
    assert slope.messages


@pytest.mark.parametrize("name", attacks.HARM)
def test_a_submission_does_not_reach(name: str, results: dict[str, Result]) -> None:
    assert results[name].exercises[0].outcome == "correct", "it got loot"


def test_everybody_after_an_attack_is_graded_as_ever(results: dict[str, Result]) -> None:
    after = {name: result for name, result in results.items() if name.startswith("after ")}
    wrong = {name: (result.status, result.score, result.reason) for name, result in after.items() if result.score != 2}
    assert not wrong


def test_nothing_was_written(results: dict[str, Result], scratch: Path) -> None:
    assert [path.name for path in scratch.iterdir()] == ["grades.sqlite"]
    assert not (ROOT / "course_utils" / "evil.py").exists()


@pytest.mark.parametrize("mode", ["user namespaces", "landlock"])
def test_the_weaker_sandboxes_hold_too(mode: str, scratch: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "choose", lambda: mode)
    sources = {name: source.format(root=str(ROOT), scratch=str(scratch)) for name, source in attacks.HARM.items()}
    ending = "\nfirst_gradient = 15 if 'loot' in dir() else 8\n"
    results = graded([submission(name, source, ending) for name, source in sources.items()])
    results |= graded([submission("honest", *HONEST)])
    assert results.pop("honest").score == 2
    assert {name: result.score for name, result in results.items()} == dict.fromkeys(attacks.HARM, 1)


def test_a_caller_that_wants_no_more_results_need_not_wait() -> None:
    results = grade_all([submission("a", attacks.RIGHT), *(submission(f"{n}", "while True: pass") for n in range(9))])
    assert next(results).score == 2
    before = time.monotonic()
    results.close()
    assert time.monotonic() - before < 8


def test_a_warm_parent_that_is_killed_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    parents = []

    def deadly(parent: pool.WarmParent, *arguments: object) -> object:
        parents.append(parent)
        if len(parents) == 2:
            parent.kill()
        return attempt(parent, *arguments)

    attempt = pool.attempt
    monkeypatch.setattr(pool, "attempt", deadly)
    assert [result.score for result in grade_all([submission(f"{n}", attacks.RIGHT) for n in range(3)])] == [2, 2, 2]
    assert len(set(parents)) == 2


_NAIVE = """
import os, sys, json, builtins
from course_utils.checks.examine import examine
from course_utils.checks import examine as module, registry
from tests import attacks
from tests.answers import MISCONCEIVED
won = []
exercise = registry.exercise_called("slope")
assert examine(exercise, registry.observer_for(exercise), lambda x: 3 * x.detach() ** 2).outcome == "correct"
for name, cell in attacks.NAIVE.items():
    out, into = os.pipe()
    if os.fork() == 0:
        space = {}
        try:
            exec(cell + attacks.WRONG if "def slope" not in cell else cell, space)
            verdict = module.examine(exercise, registry.observer_for(exercise), space["slope"])
            os.write(into, verdict.outcome.encode())
        finally:
            os._exit(0)
    os.wait()
    os.close(into)
    won += [name] * (os.read(out, 100) == b"correct")
print(json.dumps(won))
"""


def test_the_same_attacks_win_where_the_answer_runs_beside_the_judge() -> None:
    done = subprocess.run(
        [sys.executable, "-c", _NAIVE],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(done.stdout.splitlines()[-1]) == list(attacks.NAIVE)


def test_without_a_sandbox_the_same_code_reaches_it(scratch: Path) -> None:
    """So the sandbox is what stops it, and not a mistake in the attack."""
    ending = "\nfirst_gradient = 15 if 'loot' in dir() else 8\n"
    tried = [
        submission(name, source.format(root=str(ROOT), scratch=str(scratch / "unsafe")), ending)
        for name, source in attacks.HARM.items()
        if name in attacks.REACHED
    ]
    (scratch / "unsafe").mkdir()
    (scratch / "unsafe" / "grades.sqlite").write_text("everybody's")
    results = graded(tried, unsafe=True)
    (scratch / "unsafe" / "evil").unlink()
    assert {name for name, result in results.items() if result.exercises[0].outcome == "incorrect"} == attacks.REACHED


def test_what_ends_or_exhausts_its_process_ends_only_that() -> None:
    results = {}
    for seconds in (6, 30):  # a busy machine takes seconds to fill memory
        every = []
        for name, (source, statuses) in attacks.ENDING.items():
            if (statuses == {"memory"}) == (seconds == 30):
                every += [submission(name, source), submission(f"after {name}", *HONEST)]
        results |= graded(every, timeout=seconds, memory=300_000_000)
    assert "was stopped" in results["memory, touched"].reason
    for name, (_, statuses) in attacks.ENDING.items():
        assert results[name].status in statuses, (name, results[name])
        assert results[name].status == "graded" or results[name].reason
        assert results[f"after {name}"].score == 2, name


def test_no_process_survives() -> None:
    mark = f"survivor{os.getpid()}"
    cell = f"import ctypes\nctypes.CDLL(None).prctl(15, b'{mark[:15]}')\nimport os\nos.fork()\n"
    graded([submission("a", cell, "while True: pass")], timeout=2)
    time.sleep(0.1)
    names = [path.read_text().strip() for path in Path("/proc").glob("[0-9]*/comm") if path.exists()]
    assert mark[:15] not in names


def test_the_masters_and_every_right_and_misconceived_answer_are_judged_as_in_a_notebook(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # With a few seeds a misconception is not told apart from another wrong answer, in notebooks too.
    monkeypatch.setattr(pool, "_posed", partial(pool._posed, seed=lambda below: 7))
    tried = []
    for lesson in LESSONS:
        cells = json.loads((ROOT / "solutions" / f"{lesson}.ipynb").read_text())["cells"]
        sources = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
        tried.append(submission(f"{lesson} master", *sources, assignment=lesson))
        source = (ROOT / "tests" / "answers" / f"lesson_{lesson[:2]}.py").read_text()
        answers = (
            f"space = {{'__name__': 'answers'}}\nexec({source!r}, space)"  # apart: its names are not the exercises'
        )
        for number in (0, 1):
            bind = f"globals().update({{name: answers[{number}] for name, answers in space['RIGHT'].items()}})"
            tried.append(submission(f"{lesson} right {number}", answers, bind, assignment=lesson))
        bind = "globals().update({name: answer for (name, wrong), answer in space['MISCONCEIVED'].items()})"
        tried.append(submission(f"{lesson} wrong", answers, bind, assignment=lesson))
    results = graded(tried)
    held = {wrong for result in results.values() for row in result.exercises for wrong in row.misconceptions}
    assert all(result.status == "graded" for result in results.values())
    for name, result in results.items():
        for row in result.exercises:
            if name.endswith("wrong"):
                last = [wrong for exercise, wrong in MISCONCEIVED if exercise == row.id][-1:]
                assert row.misconceptions == tuple(last), (name, row)
            else:
                assert row.outcome == "correct", (name, row)
    assert len(held) > 50
    points = {lesson: sum(e.points for e in exercises().values() if e.lesson == lesson) for lesson in LESSONS}
    assert {result.points for result in results.values()} == set(points.values())


def test_an_untouched_notebook_is_not_attempted() -> None:
    result = graded([submission("a", "first_gradient = ...\nslope = ...")])["a"]
    assert (result.status, result.score) == ("graded", 0)
    assert {row.outcome for row in result.exercises} == {"not attempted"}


def test_a_wrong_idea_is_named() -> None:
    result = graded([submission("a", "first_gradient = 15\nslope = 3")])["a"]
    assert result.exercises[0].misconceptions == ("the value",)
    assert "asks for a function" in result.exercises[1].messages[0]


def test_an_error_in_one_cell_does_not_stop_the_rest() -> None:
    result = graded([submission("a", "1 / 0", attacks.RIGHT, "raise SystemExit", "exit()", "%nothing", "def")])["a"]
    assert (result.status, result.score) == ("graded", 2)


def test_a_deadly_exercise_costs_only_itself() -> None:
    deadly = "import os\nfirst_gradient = 8\ndef slope(x): os._exit(1)"
    result = graded([submission("a", deadly)])["a"]
    assert result.status == "crashed"
    assert [row.outcome for row in result.exercises] == ["correct", "error"]
    assert "ended itself with code 1" in result.reason


def test_what_cannot_be_graded_says_why() -> None:
    unreadable = Submission("a", LESSONS[0], "a.ipynb", "d", unreadable="It is no notebook.")
    unknown = submission("b", "x = 1", assignment="99_nothing")
    results = graded([unreadable, unknown])
    assert (results["a"].status, results["a"].reason) == ("unreadable", "It is no notebook.")
    assert results["a"].points == 2
    assert "99_nothing" in results["b"].reason


def test_limits_must_be_limits() -> None:
    with pytest.raises(ValueError, match="jobs=0"):
        list(grade_all([], jobs=0))


def test_without_a_sandbox_nothing_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sandbox, "available", lambda: "none")
    with pytest.raises(sandbox.NoSandbox, match="--unsafe grades without"):
        list(grade_all([submission("a", "x = 1")]))


def test_the_warm_parent_holds_no_exercises() -> None:
    code = "import sys\nfrom course_utils.grading.warm import Warmth\nWarmth().whole()\n"
    code += "assert 'course_utils.checks.observing.lesson_10' in sys.modules\n"
    code += "assert not [name for name in sys.modules if name.startswith('course_utils.checks.lessons')]\n"
    code += "from pathlib import Path\nassert len(list(Path('/proc/self/task').iterdir())) == 1"
    subprocess.run([sys.executable, "-c", code], check=True, env=sandbox.child_environment())


def test_judges_compute_with_one_thread_as_learners_do() -> None:
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(2)
        graded([submission("ann", "first_gradient = 8")])
        assert torch.get_num_threads() == 1
    finally:
        torch.set_num_threads(before)
