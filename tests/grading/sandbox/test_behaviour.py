"""Behaviour that is hidden: of the ways that are tried, at most one in ten has points and no flag."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from course_utils.checks.registry import exercises_of
from course_utils.grading.controller.pool import Grader, limits_of
from course_utils.grading.submission import ExerciseResult
from tests.answers import RIGHT, right_source_of
from tests.grading.sandbox.apart import APART
from tests.grading.sandbox.behaviour import FORGED as FIRST
from tests.grading.sandbox.behaviour import HONEST, UNSEEN, Attack
from tests.grading.sandbox.hiding import FURTHER, REPORTED
from tests.grading.sandbox.reading import READ
from tests.grading.submissions import needs_a_sandbox, submission

pytestmark = needs_a_sandbox

FORGED = {**FIRST, **REPORTED, **FURTHER, **READ, **APART}
LIMITS = limits_of(30, 1_000_000_000, unsafe=False)
SALIENCY = "08_intermediate_gradients"

_BY_FORWARD = """
import torch
def saliency(model, images, labels):
    modes = {module: module.training for module in model.modules()}
    model.eval()
    with torch.enable_grad():
        pixels = images.detach().clone().requires_grad_()
        (gradient,) = torch.autograd.grad(RUN.gather(1, labels[:, None]).sum(), pixels)
    for module, mode in modes.items():
        module.training = mode
    return gradient.abs().amax(1)
"""
_IN_A_THREAD = """
import threading
def run(model, x):
    found = []
    thread = threading.Thread(target=lambda: found.append(model(x)))
    thread.start(), thread.join()
    return found[0]
"""
# Right ways to run the model once that hooks would not see, or see twice.
UNUSUAL = {
    "by forward": _BY_FORWARD.replace("RUN", "model.forward(pixels)"),
    "a shallow copy": "import copy\n" + _BY_FORWARD.replace("RUN", "copy.copy(model)(pixels)"),
    "a deep copy": "import copy\n" + _BY_FORWARD.replace("RUN", "copy.deepcopy(model).eval()(pixels)"),
    "a functional call": _BY_FORWARD.replace("RUN", "torch.func.functional_call(model, {}, (pixels,))"),
}
TWICE = {
    "hooks emptied": _BY_FORWARD.replace("RUN", "(model._forward_hooks.clear(), model(pixels), model(pixels))[2]"),
    "in a thread, and again": _IN_A_THREAD + _BY_FORWARD.replace("RUN", "(run(model, pixels), model(pixels))[1]"),
    "by forward, and again": _BY_FORWARD.replace("RUN", "(model.forward(pixels), model(pixels))[1]"),
    "a copy, and again": "import copy\n" + _BY_FORWARD.replace("RUN", "(copy.copy(model)(pixels), model(pixels))[1]"),
}


@pytest.fixture(scope="module")
def rows() -> Iterator[dict[str, ExerciseResult]]:
    """All attacks and unusual answers, graded in one run."""
    handed: dict[str, Attack] = {**HONEST, **FORGED}
    handed |= {name: Attack(SALIENCY, "saliency", (cell,)) for name, cell in {**UNUSUAL, **TWICE}.items()}
    grader = Grader()

    def grade(name: str) -> ExerciseResult:
        attack = handed[name]
        result = grader.grade(submission(name, *attack.cells, assignment=attack.lesson), LIMITS)
        return next(row for row in result.exercises if row.id == attack.exercise)

    with ThreadPoolExecutor(2) as threads:
        yield dict(zip(handed, threads.map(grade, handed), strict=True))
    grader.close()


@pytest.mark.parametrize("name", HONEST)
def test_who_hides_nothing_gets_no_point_and_no_flag(name: str, rows: dict[str, ExerciseResult]) -> None:
    assert rows[name].outcome == "incorrect"
    assert rows[name].flags == ()


@pytest.mark.parametrize("name", FORGED)
def test_who_hides_behaviour_is_flagged(name: str, rows: dict[str, ExerciseResult]) -> None:
    unseen = bool(rows[name].score and not rows[name].flags)
    assert unseen == (name in UNSEEN), "SECURITY.md says which are not seen"


def test_at_most_one_in_ten_has_points_and_no_flag() -> None:
    assert len(FORGED) == len(FIRST) + len(REPORTED) + len(FURTHER) + len(READ) + len(APART) >= 100
    assert len(UNSEEN) * 10 <= len(FORGED)


def test_most_of_these_ways_do_win_the_points(rows: dict[str, ExerciseResult]) -> None:
    """So the attacks are not merely written wrongly: what stands against them are the flags."""
    assert sum(bool(rows[name].score) for name in FORGED) >= 48


def test_what_reaches_for_nothing_by_a_name_is_flagged_too(rows: dict[str, ExerciseResult]) -> None:
    """By what it does: the sentences that name no name are those of observers."""
    for name in ("clones of the weights", "deep copies of layers", "by hand, in a hook of the run"):
        assert rows[name].flags
        assert not any("By such names" in flag for flag in rows[name].flags)


@pytest.mark.parametrize("name", UNUSUAL)
def test_an_unusual_right_way_has_its_points_and_no_flag(name: str, rows: dict[str, ExerciseResult]) -> None:
    assert (rows[name].score, rows[name].flags) == (3, ())
    assert "runs" in rows[name].observed


@pytest.mark.parametrize("name", TWICE)
def test_every_run_is_counted_whatever_is_done_to_hooks(name: str, rows: dict[str, ExerciseResult]) -> None:
    assert rows[name].score == 0


@pytest.mark.parametrize("lesson", ["02_how_backward_works", "04_retain_graph", SALIENCY])
def test_right_answers_have_their_points_and_no_flag(lesson: str) -> None:
    cells = [f"{right_source_of(it.id)}\n{it.name} = RIGHT[-1]\n" for it in exercises_of(lesson)]
    grader = Grader()
    result = grader.grade(submission("right", *cells, assignment=lesson), LIMITS)
    grader.close()
    assert len(RIGHT) > 100
    assert result.score == result.points
    assert result.flags == ()
