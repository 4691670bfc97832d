"""Running an answer to `fit_classes`."""

from __future__ import annotations

from course_utils.checks.data import Answer, Case, Observation
from course_utils.checks.observers.lesson_09_practical_checklist.watched import watched
from course_utils.checks.scenes.batches import Batches
from course_utils.checks.scenes.lesson_09_practical_checklist.training import classes, network, sgd


def observe(answer: Answer, case: Case) -> Observation:
    model, batches = network(case, case.given["scale"]), Batches(classes(case))
    optimizer = sgd(model, case.given["rate"], case.given.get("momentum", 0.0), case.given.get("decay", 0.0))
    return watched(lambda: answer(model, optimizer, batches), [model], batches, optimizer)
