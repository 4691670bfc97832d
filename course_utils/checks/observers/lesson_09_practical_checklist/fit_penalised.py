"""Running an answer to `fit_penalised`."""

from __future__ import annotations

from course_utils.checks.data import Answer, Case, Observation
from course_utils.checks.observers.lesson_09_practical_checklist.watched import watched
from course_utils.checks.scenes.batches import Batches
from course_utils.checks.scenes.lesson_09_practical_checklist.fit_penalised import penalised
from course_utils.checks.scenes.lesson_09_practical_checklist.training import regression


def observe(answer: Answer, case: Case) -> Observation:
    (model, optimizer), batches = penalised(case), Batches(regression(case))
    return watched(lambda: answer(model, optimizer, batches, case.given["weight"]), [model], batches, optimizer)
