"""A result tells in which run it was made, also where nobody counts."""

import copy

import pytest
import torch

from course_utils.checks import examine, registry
from course_utils.checks.scenes.turning import Turning
from tests.answers.lesson_06_detach_vs_no_grad import evaluate as evaluating
from tests.answers.lesson_08_intermediate_gradients import saliency as looking

ONE = torch.ones(1)


def test_each_run_has_its_own_factor_and_copies_share_the_count():
    layer, twin = Turning(3), Turning(3)
    other = copy.deepcopy(layer)
    alternating = [layer(ONE).item(), other(ONE).item(), copy.copy(layer)(ONE).item()]
    assert alternating == [twin(ONE).item() for _ in range(3)]
    assert len(set(alternating)) == 3


def twice_for_each_batch(model, loss_function, batches):
    modes = {part: part.training for part in model.modules()}
    model.eval()
    try:
        with torch.no_grad():
            return evaluating.average(lambda x: (model(x), model(x))[1], loss_function, batches)
    finally:
        for part, training in modes.items():
            part.training = training


@pytest.mark.parametrize(
    ("name", "answer"), [("saliency", looking.saliency_one_by_one), ("evaluate", twice_for_each_batch)]
)
def test_runs_that_are_hidden_show_in_the_numbers(name, answer):
    exercise = registry.exercise_called(name)
    observer = registry.observer_for(exercise)
    pairs = []
    for case in exercise.cases(7):
        honest, _ = examine.observe(observer, answer, case, 7, 5.0)
        forged = 1 if name == "saliency" else len(case.given["sizes"])
        one = case.given.get("count") == 1  # one image by one is as all at once
        assert one or honest["runs"] > forged or honest["raised"]
        passes = {"passes": 1} if name == "saliency" else {}
        pairs.append((case, {**honest, "runs": forged, **passes}))
    failed = [finding for finding in examine.judge(exercise, pairs).findings if not finding.ok]
    assert {finding.prop for finding in failed} == {"value"}
    assert all("another number in each run" in finding.message for finding in failed)
