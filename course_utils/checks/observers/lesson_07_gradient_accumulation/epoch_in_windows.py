"""Running an answer to `epoch_in_windows`."""

from __future__ import annotations

from course_utils.checks.data import Answer, Case, Observation
from course_utils.checks.observers.lesson_07_gradient_accumulation.watch import Reader, Watch
from course_utils.checks.scenes.lesson_07_gradient_accumulation.classifier import batches_of, classifier, optimizer_of


def observe(answer: Answer, case: Case) -> Observation:
    model = classifier(case.given["seed"])
    optimizer = optimizer_of(model, case)
    watch = Watch(model, model.bend)
    watch.step_of(optimizer)
    watch.reader = Reader(watch.batches(batches_of(case)))
    return watch.seen(answer(model, optimizer, watch.reader, case.given["every"]))
