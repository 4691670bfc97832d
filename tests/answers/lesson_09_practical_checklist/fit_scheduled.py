"""Right and wrong answers to `fit_scheduled`."""

import warnings

import torch
from torch.nn.functional import mse_loss

from tests.answers.leaving import clipping, zeroing
from tests.answers.lesson_09_practical_checklist.side_effects import (
    MESSES,
    clearing_before_steps,
    guarded,
    leaving,
    slips,
)
from tests.answers.lesson_09_practical_checklist.training import step
from tests.answers.near import clearing_near
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


def scheduled_calling(rate=lambda scheduler: scheduler.get_last_lr()[0], turn=lambda scheduler, _: scheduler.step()):
    """Asks the scheduler for the rate, and turns it, by these calls."""

    def answer(model, optimizer, scheduler, batches, epochs):
        rates = []
        for epoch in range(epochs):
            rates.append(rate(scheduler))
            for inputs, targets in batches:
                step(optimizer, mse_loss(model(inputs), targets))
            turn(scheduler, epoch)
        return rates

    return answer


# What get_lr() returns outside a step of the scheduler is the rate after the next one, for some schedulers.
scheduled_by_get_lr = scheduled_calling(rate=lambda scheduler: scheduler.get_lr()[0])
# Not every scheduler takes the epoch.
scheduled_by_number = scheduled_calling(turn=lambda scheduler, epoch: scheduler.step(epoch + 1))


RIGHT = [scheduled(), scheduled_by_groups]

MISCONCEIVED = {
    "nothing moves": clearing_before_steps(scheduled()),
    "zeros for old gradients": zeroing(scheduled()),
    "scheduler first": scheduled(before=True),
    "every batch": scheduled(by_batch=True),
    "never cleared": scheduled(clear="never"),
    "gradients from before": scheduled(clear="after"),
    "the next epoch's rate": scheduled(rate_after=True),
}


def scheduled_by_longer_gradients(model, optimizer, scheduler, batches, epochs):
    """Steps at a tenth of the rate, along ten times the gradient, with ten times the decay."""
    rates, decay = [], optimizer.param_groups[0]["weight_decay"]
    for _ in range(epochs):
        rates.append(scheduler.get_last_lr()[0])
        for inputs, targets in batches:
            optimizer.zero_grad()
            mse_loss(model(inputs), targets).mul(10).backward()
            for group in optimizer.param_groups:
                group["lr"], group["weight_decay"] = rates[-1] / 10, 10 * decay
            optimizer.step()
            for group in optimizer.param_groups:
                group["lr"], group["weight_decay"] = rates[-1], decay
        scheduler.step()
    return rates


def scheduled_once_more(model, optimizer, scheduler, batches, epochs):
    """Turns once more than there are epochs, and puts the rate back."""
    rates = scheduled()(model, optimizer, scheduler, batches, epochs)
    rate = optimizer.param_groups[0]["lr"]
    scheduler.step()
    optimizer.param_groups[0]["lr"] = rate
    return rates


SLIPS = slips(scheduled())
SLIPS.pop("steps")
LEFT = [leaving(scheduled(), mess) for mess in MESSES]


def scheduled_from_the_base(model, optimizer, scheduler, batches, epochs):
    """Begins with the base rate, whatever the schedule names first."""
    for group, rate in zip(optimizer.param_groups, scheduler.base_lrs, strict=True):
        group["lr"] = rate
    return scheduled()(model, optimizer, scheduler, batches, epochs)


def scheduled_and_silenced(*given):
    """A filter that ignores the scheduler's warning stays."""
    warnings.filterwarnings("ignore", message="Detected call of")
    return scheduled()(*given)


WRONG = [
    clearing_near(scheduled()),
    clipping(scheduled(), 1e4),
    *SLIPS.values(),
    scheduled_once_more,
    scheduled_by_longer_gradients,
    scheduled_to_tensors := lambda *given: [torch.tensor(rate) for rate in scheduled()(*given)],
    scheduled_rounding := lambda *given: [round(rate, 3) for rate in scheduled()(*given)],
    said(scheduled(before=True, by_batch=True), "scheduler first", "every batch"),
    said(scheduled(before=True, by_batch=True, rate_after=True), "scheduler first", "every batch"),
    scheduled_by_get_lr,
    lambda model, *given: scheduled()(model.train(), *given),
    said(scheduled(before=True, rate_after=True), "scheduler first"),
    scheduled_never_turning_last,
    scheduled_and_put_back,
    scheduled_once_each := lambda *given: sorted(set(scheduled()(*given)), reverse=True),
    *LEFT,
    said(lambda model, optimizer, scheduler, batches, epochs: [], "nothing moves"),
    said(lambda model, optimizer, scheduler, batches, epochs: scheduler, "nothing moves"),
    scheduled_from_the_base,
    scheduled_and_silenced,
    scheduled_by_number,
]

EQUIVALENT = {
    "scheduled.fit_scheduled: scheduler.get_last_lr()[0] -> scheduler.get_last_lr()[1]": "Both groups have one rate.",
    "scheduled_by_groups: optimizer.param_groups[0] -> optimizer.param_groups[1]": "Both groups have one rate.",
    "scheduled.fit_scheduled: rates.append(scheduler.get_last_lr()[0]) | for inputs, targets in batches: ... -> (swapped)": "Neither line reads what the other one writes.",
    "step: return loss.item() -> (dropped)": "Nobody reads what step returns: the task returns no losses here.",
    "step: return loss.item() -> return optimizer": "Nobody reads what step returns: the task returns no losses here.",
    "step: return loss.item() -> return loss": "Nobody reads what step returns: the task returns no losses here.",
    "scheduled_by_groups: rates.append(optimizer.param_groups[0]['lr']) | for inputs, targets in batches: ... -> (swapped)": "Neither line reads what the other one writes.",
}

GUARDS = {
    **guarded(SLIPS, hooks=LEFT[4], flags=LEFT[3]),
    "In each epoch all batches are trained with the rate that the schedule names for it.": {
        "rates": scheduled_by_longer_gradients,
        "value": MISCONCEIVED["never cleared"],
    },
    "the scheduler has stepped `epochs` times": {"turns": scheduled_once_more, "rate": scheduled_and_put_back},
    "Return the list of the rates that were used": {"value": scheduled_rounding, "floats": scheduled_to_tensors},
    "one for each epoch": {"shape": scheduled_once_each},
}


def scheduled_beside_old_gradients(model, optimizer, scheduler, batches, epochs):
    """Leaves the old gradient of a parameter that takes no part."""
    live, rates = [p for p in model.parameters() if p.requires_grad], []
    for _ in range(epochs):
        rates.append(scheduler.get_last_lr()[0])
        for inputs, targets in batches:
            loss = mse_loss(model(inputs), targets)
            for p, gradient in zip(live, torch.autograd.grad(loss, live, allow_unused=True), strict=True):
                p.grad = p.grad if gradient is None else gradient
            optimizer.step()
        scheduler.step()
    return rates


WRONG.append(scheduled_beside_old_gradients)
