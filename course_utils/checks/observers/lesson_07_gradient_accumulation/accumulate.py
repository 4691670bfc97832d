"""Running an answer to `accumulate`."""

from __future__ import annotations

from course_utils.checks.data import Answer, Case, Observation
from course_utils.checks.observers.lesson_07_gradient_accumulation.watch import Watch
from course_utils.checks.scenes.lesson_07_gradient_accumulation.classifier import batches_of, classifier, stale


def observe(answer: Answer, case: Case) -> Observation:
    model = classifier(case)
    stale(model, case)
    watch = Watch(model, model.first, model.bend)
    batches = watch.batches(batches_of(case))
    return watch.seen(lambda: answer(model, batches))
