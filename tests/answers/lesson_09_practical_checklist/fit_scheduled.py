"""Right and wrong answers to `fit_scheduled`."""

from torch.nn.functional import mse_loss

from tests.answers.lesson_09_practical_checklist.side_effects import MESSES, leaving
from tests.answers.lesson_09_practical_checklist.training import step
from tests.answers.said import said


def scheduled_and_put_back(model, optimizer, scheduler, batches, epochs):
    rates = scheduled()(model, optimizer, scheduler, batches, epochs)
    optimizer.param_groups[0]["lr"] = rates[0]
    return rates


def scheduled(before=False, by_batch=False, rate_after=False, clear="before"):
    def fit_scheduled(model, optimizer, scheduler, batches, epochs):
        rates = []
        for _ in range(epochs):
            if not rate_after:
                rates.append(scheduler.get_last_lr()[0])
            if before and not by_batch:
                scheduler.step()
            for inputs, targets in batches:
                if before and by_batch:
                    scheduler.step()
                if clear == "before":
                    optimizer.zero_grad()
                mse_loss(model(inputs), targets).backward()
                optimizer.step()
                if clear == "after":
                    optimizer.zero_grad()
                if by_batch and not before:
                    scheduler.step()
            if not before and not by_batch:
                scheduler.step()
            if rate_after:
                rates.append(scheduler.get_last_lr()[0])
        return rates

    return fit_scheduled


def scheduled_by_groups(model, optimizer, scheduler, batches, epochs):
    rates = []
    for epoch in range(epochs):
        if epoch > 0:
            scheduler.step()
        rates.append(optimizer.param_groups[0]["lr"])
        for inputs, targets in batches:
            step(optimizer, (model(inputs) - targets).pow(2).mean())
    scheduler.step()
    return rates


def scheduled_never_turning_last(model, optimizer, scheduler, batches, epochs):
    rates = []
    for epoch in range(epochs):
        if epoch > 0:
            scheduler.step()
        rates.append(optimizer.param_groups[0]["lr"])
        for inputs, targets in batches:
            step(optimizer, mse_loss(model(inputs), targets))
    return rates


def scheduled_by_get_lr(model, optimizer, scheduler, batches, epochs):
    """What get_lr() returns outside a step of the scheduler is the rate after the next one, for some schedulers."""
    rates = []
    for _ in range(epochs):
        rates.append(scheduler.get_lr()[0])
        for inputs, targets in batches:
            step(optimizer, mse_loss(model(inputs), targets))
        scheduler.step()
    return rates


RIGHT = [scheduled(), scheduled_by_groups]

MISCONCEIVED = {
    "scheduler first": scheduled(before=True),
    "every batch": scheduled(by_batch=True),
    "never cleared": scheduled(clear="never"),
    "gradients from before": scheduled(clear="after"),
    "the next epoch's rate": scheduled(rate_after=True),
}

WRONG = [
    said(scheduled(before=True, by_batch=True), "scheduler first", "every batch"),
    said(scheduled(before=True, by_batch=True, rate_after=True), "scheduler first", "every batch"),
    scheduled_by_get_lr,
    lambda model, *given: scheduled()(model.train(), *given),
    said(scheduled(before=True, rate_after=True), "scheduler first"),
    scheduled_never_turning_last,
    scheduled_and_put_back,
    lambda *given: [round(rate, 3) for rate in scheduled()(*given)],
    lambda *given: sorted(set(scheduled()(*given)), reverse=True),
    *(leaving(scheduled(), mess) for mess in MESSES),
    lambda model, optimizer, scheduler, batches, epochs: [],
    lambda model, optimizer, scheduler, batches, epochs: scheduler,
]

EQUIVALENT = {
    "scheduled.fit_scheduled: optimizer.zero_grad() -> optimizer.zero_grad(set_to_none=False)": "Each parameter that the optimizer holds gets a gradient in every pass, or never had one.",
    "scheduled.fit_scheduled: rates.append(scheduler.get_last_lr()[0]) | for inputs, targets in batches: ... -> (swapped)": "Neither line reads what the other one writes.",
    "step: optimizer.zero_grad() -> optimizer.zero_grad(set_to_none=False)": "Each parameter that the optimizer holds gets a gradient in every pass, or never had one.",
    "step: return loss.item() -> (dropped)": "Nobody reads what step returns: the task returns no losses here.",
    "step: return loss.item() -> return optimizer": "Nobody reads what step returns: the task returns no losses here.",
    "step: return loss.item() -> return loss": "Nobody reads what step returns: the task returns no losses here.",
    "scheduled_by_groups: rates.append(optimizer.param_groups[0]['lr']) | for inputs, targets in batches: ... -> (swapped)": "Neither line reads what the other one writes.",
}
