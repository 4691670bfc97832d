"""Running an answer to `fit_masked`."""

from __future__ import annotations

from course_utils.checks.data import Answer, Case, Observation
from course_utils.checks.observers.lesson_09_practical_checklist.watched import watched
from course_utils.checks.scenes.batches import Batches
from course_utils.checks.scenes.lesson_09_practical_checklist.fit_masked import masked, started
from course_utils.checks.scenes.lesson_09_practical_checklist.training import sgd


def observe(answer: Answer, case: Case) -> Observation:
    model, batches = started(case), Batches(masked(case))
    optimizer = sgd(model, momentum=case.given.get("momentum", 0.0))
    return watched(
        lambda: answer(model, optimizer, batches, case.given["limit"]), [model, model.last], batches, optimizer
    )
