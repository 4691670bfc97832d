"""Running an answer to `train_clipped`."""

from __future__ import annotations

from itertools import islice

from course_utils.checks.data import Answer, Case, Observation
from course_utils.checks.observers.lesson_07_gradient_accumulation.watch import Watch
from course_utils.checks.scenes.lesson_07_gradient_accumulation.classifier import (
    batches_of,
    classifier,
    optimizer_of,
    stale,
)
from course_utils.checks.scenes.lesson_07_gradient_accumulation.train_clipped import scheduler_of


def observe(answer: Answer, case: Case) -> Observation:
    given, model = batches_of(case), classifier(case)
    optimizer = optimizer_of(model, case)
    scheduler = scheduler_of(optimizer)
    stale(model, case)
    watch = Watch(model, model.first, model.bend)
    watch.step_of(optimizer)
    batches = iter(watch.batches(given))
    windows = [list(islice(batches, length)) for length in case.given["every"]]
    seen = watch.seen(lambda: answer(model, optimizer, scheduler, windows, case.given["max_norm"]))
    return {**seen, "rate": float(optimizer.param_groups[0]["lr"])}
