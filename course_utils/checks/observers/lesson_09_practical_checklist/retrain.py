"""Running an answer to `retrain`."""

from __future__ import annotations

from course_utils.checks.data import Answer, Case, Observation
from course_utils.checks.observers.lesson_09_practical_checklist.watched import watched
from course_utils.checks.scenes.batches import Batches
from course_utils.checks.scenes.lesson_09_practical_checklist.retrain import headed
from course_utils.checks.scenes.lesson_09_practical_checklist.training import classes


def observe(answer: Answer, case: Case) -> Observation:
    (model, head), batches = headed(case), Batches(classes(case))
    seen = watched(lambda: answer(model, head, batches), [model, head], batches)
    return {**seen, "head in place": model.head is head}
