"""Running an answer to `fine_tune`."""

from __future__ import annotations

from course_utils.checks.data import Answer, Case, Observation
from course_utils.checks.observers.lesson_09_practical_checklist.watched import watched
from course_utils.checks.scenes.batches import Batches
from course_utils.checks.scenes.lesson_09_practical_checklist.fine_tune import backbone_and_head
from course_utils.checks.scenes.lesson_09_practical_checklist.training import classes


def observe(answer: Answer, case: Case) -> Observation:
    backbone, head, optimizer = backbone_and_head(case)
    batches = Batches(classes(case))
    return watched(lambda: answer(backbone, head, optimizer, batches), [backbone, head], batches, optimizer)
