"""Running an answer to `fit_scheduled`."""

from __future__ import annotations

import torch

from course_utils.checks.data import Answer, Case, Observation, plain
from course_utils.checks.observers.lesson_09_practical_checklist.watched import Batches, watched
from course_utils.checks.scenes.lesson_09_practical_checklist.training import network, regression, sgd


def observe(answer: Answer, case: Case) -> Observation:
    model, batches = network(case), Batches(regression(case))
    optimizer = sgd(model)
    factors = case.given["factors"]
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda epoch: factors[min(epoch, len(factors) - 1)])
    epochs = case.given["epochs"]
    seen = watched(lambda: answer(model, optimizer, scheduler, batches, epochs), [model], batches, optimizer)
    return {**seen, "scheduler": plain(scheduler.last_epoch)}
