"""Running an answer to `epoch_in_windows`."""

from __future__ import annotations

from course_utils.checks.data import Answer, Case, Observation
from course_utils.checks.observers.lesson_07_gradient_accumulation.watch import Watch
from course_utils.checks.scenes.lesson_07_gradient_accumulation.classifier import (
    batches_of,
    classifier,
    optimizer_of,
    stale,
)


def observe(answer: Answer, case: Case) -> Observation:
    model = classifier(case)
    optimizer = optimizer_of(model, case)
    stale(model, case)
    watch = Watch(model, model.first, model.bend)
    watch.step_of(optimizer)
    reader = watch.reader(batches_of(case))
    return watch.seen(lambda: answer(model, optimizer, reader, case.given["every"]))
