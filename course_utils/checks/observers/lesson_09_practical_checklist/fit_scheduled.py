"""Running an answer to `fit_scheduled`."""

from __future__ import annotations

from torch.optim.lr_scheduler import LambdaLR, LRScheduler, MultiplicativeLR

from course_utils.checks.data import Answer, Case, Observation, plain
from course_utils.checks.observers.lesson_09_practical_checklist.watched import watched
from course_utils.checks.scenes.batches import Batches
from course_utils.checks.scenes.lesson_09_practical_checklist.training import RATE, network, regression, sgd


class _ByRatios(MultiplicativeLR):
    """Its step() takes no epoch, as those of SequentialLR and ChainedScheduler. Its get_lr() is the rate to come."""

    def step(self) -> None:  # type: ignore[override]
        super().step()


def observe(answer: Answer, case: Case) -> Observation:
    model, batches = network(case), Batches(regression(case))
    optimizer = sgd(model, momentum=case.given.get("momentum", 0.0), decay=case.given.get("decay", 0.0))
    factors = case.given["factors"]
    scheduler: LRScheduler = LambdaLR(optimizer, lambda epoch: _factor(factors, epoch))
    if case.given.get("by ratios"):
        for group in optimizer.param_groups:
            group["lr"] = group["initial_lr"] = RATE * factors[0]
        scheduler = _ByRatios(optimizer, lambda epoch: _factor(factors, epoch) / _factor(factors, epoch - 1))
    epochs = case.given["epochs"]
    seen = watched(lambda: answer(model, optimizer, scheduler, batches, epochs), [model], batches, optimizer, True)
    return {**seen, "scheduler": plain(scheduler.last_epoch)}


def _factor(factors: list[float], epoch: int) -> float:
    """Return what the schedule names for an epoch: its last number for all that come after."""
    return factors[min(epoch, len(factors) - 1)]
