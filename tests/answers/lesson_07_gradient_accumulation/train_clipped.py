"""Right and wrong answers to `train_clipped`."""

import torch
from torch.nn.functional import cross_entropy
from torch.nn.utils import clip_grad_norm_, clip_grad_value_, get_total_norm

from tests.answers.leaving import zeroing
from tests.answers.lesson_07_gradient_accumulation.side_effects import (
    changing_inputs,
    passing_twice,
    running_once_more,
    seeded,
    stepping_once_more,
)
from tests.answers.near import near
from tests.answers.said import said


def clipped_once(model, optimizer, scheduler, windows, max_norm):
    norms = []
    for window in windows:
        optimizer.zero_grad()
        for inputs, targets in window:
            loss = cross_entropy(model(inputs), targets) / len(window)
            loss.backward()
        norm = clip_grad_norm_(model.parameters(), max_norm)
        optimizer.step()
        scheduler.step()
        norms.append(norm.item())
    return norms


def clipped_by_hand(model, optimizer, scheduler, windows, max_norm):
    norms = []
    model.zero_grad()
    for window in windows:
        for inputs, targets in window:
            cross_entropy(model(inputs), targets).div(len(window)).backward()
        parts = [p.grad for p in model.parameters() if p.grad is not None]
        norm = sum(float((part**2).sum()) for part in parts) ** 0.5
        if norm > max_norm:
            for part in parts:
                part *= max_norm / norm
        norms.append(norm)
        optimizer.step()
        optimizer.zero_grad()
        scheduler.step()
    return norms


def clipper(inner=None, before=None, after=None, weight=True, inner_schedule=False, first=False, clear=True, **options):
    """A loop with one thing wrong. `inner`, `before`, `after` are ways to clip at three places."""

    def train(model, optimizer, scheduler, windows, max_norm):
        norms = []
        for window in windows:
            if clear:
                optimizer.zero_grad()
            for inputs, targets in window:
                loss = cross_entropy(model(inputs), targets)
                (loss / len(window) if weight else loss).backward(**options)
                if inner:
                    inner(model.parameters(), max_norm)
                if inner_schedule:
                    scheduler.step()
            norms.append(get_total_norm([p.grad for p in model.parameters() if p.grad is not None]).item())
            if before:
                before(model.parameters(), max_norm)
            if first:
                scheduler.step()
            optimizer.step()
            if after:
                after(model.parameters(), max_norm)
            if not (inner_schedule or first):
                scheduler.step()
        return norms

    return train


def clip_each(parameters, max_norm):
    for parameter in parameters:
        clip_grad_norm_([parameter], max_norm)


def clipped_with_steps_inside(model, optimizer, scheduler, windows, max_norm):
    norms = []
    for window in windows:
        norm = None
        for inputs, targets in window:
            optimizer.zero_grad()
            cross_entropy(model(inputs), targets).backward()
            norm = clip_grad_norm_(model.parameters(), max_norm)
            optimizer.step()
        scheduler.step()
        norms.append(norm.item())
    return norms


def clipped_by_the_first_length(model, optimizer, scheduler, windows, max_norm):
    length, norms = len(windows[0]), []
    for window in windows:
        optimizer.zero_grad()
        for inputs, targets in window:
            (cross_entropy(model(inputs), targets) / length).backward()
        norms.append(clip_grad_norm_(model.parameters(), max_norm).item())
        optimizer.step()
        scheduler.step()
    return norms


def clipped_but_for_the_last_rate(model, optimizer, scheduler, windows, max_norm):
    norms = []
    for number, window in enumerate(windows):
        if number:
            scheduler.step()
        optimizer.zero_grad()
        for inputs, targets in window:
            (cross_entropy(model(inputs), targets) / len(window)).backward()
        norms.append(clip_grad_norm_(model.parameters(), max_norm).item())
        optimizer.step()
    return norms


def clipped_where_live(model, optimizer, scheduler, windows, max_norm):
    """A frozen parameter keeps what an earlier pass left in its .grad."""
    optimizer.zero_grad = lambda: [setattr(p, "grad", None) for p in model.parameters() if p.requires_grad]
    return clipped_once(model, optimizer, scheduler, windows, max_norm)


def clipped_by_the_square(model, optimizer, scheduler, windows, max_norm):
    norms = []
    for window in windows:
        optimizer.zero_grad()
        for inputs, targets in window:
            (cross_entropy(model(inputs), targets) / len(window)).backward()
        parts = [p.grad for p in model.parameters() if p.grad is not None]
        square = sum(float((part**2).sum()) for part in parts)
        if square > max_norm:
            for part in parts:
                part *= max_norm / square**0.5
        norms.append(square**0.5)
        optimizer.step()
        scheduler.step()
    return norms


def clipped_twice(model, optimizer, scheduler, windows, max_norm):
    """To be safe, never longer than a thousand."""
    return clipped_once(model, optimizer, scheduler, windows, min(max_norm, 1e3))


def clipped_norms_after(model, optimizer, scheduler, windows, max_norm):
    return [min(norm, max_norm) for norm in clipped_once(model, optimizer, scheduler, windows, max_norm)]


def clipped_near(model, optimizer, scheduler, windows, max_norm):
    """Clips the model's own parameters and those of its direct children."""
    norms = []
    for window in windows:
        optimizer.zero_grad()
        for inputs, targets in window:
            (cross_entropy(model(inputs), targets) / len(window)).backward()
        norms.append(clip_grad_norm_(near(model).values(), max_norm).item())
        optimizer.step()
        scheduler.step()
    return norms


def clipped_what_the_optimizer_holds(model, optimizer, scheduler, windows, max_norm):
    held = [parameter for group in optimizer.param_groups for parameter in group["params"]]
    norms = []
    for window in windows:
        optimizer.zero_grad()
        for inputs, targets in window:
            (cross_entropy(model(inputs), targets) / len(window)).backward()
        norms.append(clip_grad_norm_(held, max_norm).item())
        optimizer.step()
        scheduler.step()
    return norms


RIGHT = [clipped_once, clipped_by_hand, clipped_what_the_optimizer_holds]

MISCONCEIVED = {
    "clipped while it grows": clipper(inner=clip_grad_norm_),
    "not clipped at the step": clipper(after=clip_grad_norm_),
    "each parameter by itself": clipper(before=clip_each),
    "old gradients": clipper(before=clip_grad_norm_, clear=False),
    "norms after clipping": clipped_norms_after,
    "summed, not averaged": clipper(before=clip_grad_norm_, weight=False),
    "the scheduler counts micro-batches": clipper(before=clip_grad_norm_, inner_schedule=True),
    "the scheduler first": clipper(before=clip_grad_norm_, first=True),
    "a step for each micro-batch": clipped_with_steps_inside,
}

ONE_SLIP = {
    "steps": stepping_once_more(clipped_once),
    "rates": clipped_but_for_the_last_rate,
    "forwards": running_once_more(clipped_once, 3),
    "passes": passing_twice(clipped_once),
    "held": clipper(before=clip_grad_norm_, retain_graph=True),
    "inputs": changing_inputs(clipped_once, 3),
    "flags": seeded(clipped_once),
}

cleared_with_zeros = zeroing(clipped_once)

WRONG = [
    clipped_near,
    lambda *given: [round(norm, 4) for norm in clipped_once(*given)],
    *ONE_SLIP.values(),
    said(clipper(), "not clipped at the step"),
    clipper(before=lambda parameters, limit: clip_grad_value_(parameters, limit / 4)),
    clipper(inner=clip_grad_norm_, before=clip_grad_norm_),
    clipped_where_live,
    clipped_by_the_square,
    clipped_twice,
    clipped_by_the_first_length,
    said(
        clipper(inner=clip_grad_norm_, inner_schedule=True),
        "clipped while it grows",
        "the scheduler counts micro-batches",
    ),
    lambda model, optimizer, scheduler, windows, max_norm: clipped_once(
        model, optimizer, scheduler, [[tuple(map(torch.cat, zip(*w, strict=True)))] for w in windows], max_norm
    ),
    lambda model, optimizer, scheduler, windows, max_norm: clipped_once(
        model, optimizer, torch.optim.lr_scheduler.ExponentialLR(optimizer, 1.0), windows, max_norm
    ),
]

EQUIVALENT = {
    "clipped_once: scheduler.step() | norms.append(norm.item()) -> (swapped)": "Neither statement reads what the other writes.",
    "clipped_by_hand: ...n(window)).backward() -> ...n(window)).backward(retain_graph=True)": "The loss has no name, so its graph goes at the end of the statement all the same.",
    "clipped_by_hand: norm > max_norm -> norm >= max_norm": "At the limit the factor is 1.",
    "clipped_by_hand: optimizer.zero_grad() -> optimizer.zero_grad(set_to_none=False)": "Zeros or None: SGD makes the same step of a parameter that gets a gradient, and what takes no part had None before, or zeros do not move it.",
    "clipped_by_hand: if norm > max_norm: ... | norms.append(norm) -> (swapped)": "Neither statement reads what the other writes.",
    "clipped_by_hand: norms.append(norm) | optimizer.step() -> (swapped)": "Neither statement reads what the other writes.",
    "clipped_by_hand: optimizer.zero_grad() | scheduler.step() -> (swapped)": "Neither statement reads what the other writes.",
    "clipped_what_the_optimizer_holds: (cross_entropy(model(inputs), targets) / len(window)).backward() -> (cross_entropy(model(inputs), targets) / len(window)).backward(retain_graph=True)": "The loss has no name, so its graph goes at the end of the statement all the same.",
}

GUARDS = {
    "the gradient of its mean loss is clipped to the norm `max_norm`, all parameters of the model together": {
        "value": MISCONCEIVED["each parameter by itself"]
    },
    "Then the optimizer steps": {"steps": ONE_SLIP["steps"]},
    "which makes one step for each step of the optimizer": {"rates": ONE_SLIP["rates"]},
    "for each window the norm of its gradient *before* clipping": {"value": clipped_norms_after},
    "Each micro-batch gets one forward and one backward pass": {
        "forwards": ONE_SLIP["forwards"],
        "passes": ONE_SLIP["passes"],
    },
    "what its graph saved is freed before the next one begins": {"held": ONE_SLIP["held"]},
    "Modes and flags stay.": {"flags": ONE_SLIP["flags"], "inputs": ONE_SLIP["inputs"]},
    "A parameter that is frozen or takes no part does not move.": {"value": cleared_with_zeros},
}


def clip_by_a_quotient(parameters, max_norm):
    """0 / 0 in a window whose gradient is zero."""
    parts = [p.grad for p in parameters if p.grad is not None]
    norm = get_total_norm(parts)
    for part in parts:
        part *= norm.clamp(max=max_norm) / norm


WRONG += [clipper(before=clip_by_a_quotient), cleared_with_zeros]


def clipped_group_by_group(model, optimizer, scheduler, windows, max_norm):
    norms = []
    for window in windows:
        optimizer.zero_grad()
        for inputs, targets in window:
            (cross_entropy(model(inputs), targets) / len(window)).backward()
        squares = [clip_grad_norm_(group["params"], max_norm).item() ** 2 for group in optimizer.param_groups]
        norms.append(sum(squares) ** 0.5)
        optimizer.step()
        scheduler.step()
    return norms


def clipped_while_there_are_parameters(model, optimizer, scheduler, windows, max_norm):
    parameters = filter(lambda parameter: parameter.requires_grad, model.parameters())
    norms = []
    for window in windows:
        optimizer.zero_grad()
        for inputs, targets in window:
            (cross_entropy(model(inputs), targets) / len(window)).backward()
        norms.append(float(clip_grad_norm_(parameters, max_norm)))
        optimizer.step()
        scheduler.step()
    return norms


MISCONCEIVED |= {
    "each group by itself": clipped_group_by_group,
    "the parameters gone through once": clipped_while_there_are_parameters,
}
