"""Running an answer to `train_clipped`."""

from __future__ import annotations

from course_utils.checks.data import Answer, Case, Observation
from course_utils.checks.observers.lesson_07_gradient_accumulation.watch import Watch
from course_utils.checks.scenes.lesson_07_gradient_accumulation.classifier import batches_of, classifier, optimizer_of
from course_utils.checks.scenes.lesson_07_gradient_accumulation.train_clipped import scheduler_of


def observe(answer: Answer, case: Case) -> Observation:
    model = classifier(case.given["seed"])
    optimizer = optimizer_of(model, case)
    scheduler = scheduler_of(optimizer)
    watch = Watch(model, model.bend)
    watch.step_of(optimizer)
    batches, every = watch.batches(batches_of(case)), case.given["every"]
    windows = [batches[start : start + every] for start in range(0, len(batches), every)]
    seen = watch.seen(answer(model, optimizer, scheduler, windows, case.given["max_norm"]))
    return {**seen, "rate": float(optimizer.param_groups[0]["lr"])}
