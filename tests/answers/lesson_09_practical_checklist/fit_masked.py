"""Right and wrong answers to `fit_masked`."""

import torch
from torch.nn.functional import mse_loss

from tests.answers.leaving import clipping
from tests.answers.lesson_09_practical_checklist.side_effects import MESSES, guarded, leaving, slips
from tests.answers.lesson_09_practical_checklist.training import step
from tests.answers.said import said


def by_product(hidden, mask):
    return hidden * mask


def by_data(hidden, mask):
    hidden.data.mul_(mask)
    return hidden


def by_method(hidden, mask):
    return hidden.mul_(mask)


def by_constant(hidden, mask):
    return hidden + (hidden * mask - hidden).detach()


def masked_loop(apply, limit_when="after", how=lambda weight, limit: weight.data.clamp_(-limit, limit), clear="before"):
    def fit_masked(model, optimizer, batches, limit):
        losses = []
        for inputs, mask, targets in batches:
            loss = mse_loss(model.last(apply(model.first(inputs).tanh(), mask)), targets)
            if clear == "before":
                optimizer.zero_grad()
            if limit_when == "before":
                how(model.last.weight, limit)
            loss.backward()
            if limit_when == "between":
                how(model.last.weight, limit)
            optimizer.step()
            if clear == "after":
                optimizer.zero_grad()
            if limit_when == "after":
                how(model.last.weight, limit)
            losses.append(loss.item())
        return losses

    return fit_masked


def masked_with_copy(model, optimizer, batches, limit):
    losses = []
    for inputs, mask, targets in batches:
        hidden = torch.tanh(model.first(inputs)).clone()
        hidden *= mask
        losses.append(step(optimizer, mse_loss(model.last(hidden), targets)))
        with torch.no_grad():
            model.last.weight.copy_(model.last.weight.clamp(min=-limit, max=limit))
    return losses


def masked_bias_too(model, optimizer, batches, limit):
    losses = masked_loop(by_product)(model, optimizer, batches, limit)
    model.last.bias.data.clamp_(-limit, limit)
    return losses


def masked_and_limited_first(model, optimizer, batches, limit):
    losses = []
    for inputs, mask, targets in batches:
        model.last.weight.data.clamp_(-limit, limit)
        losses.append(step(optimizer, mse_loss(model.last(model.first(inputs).tanh() * mask), targets)))
    return losses


def masked_at_the_end(model, optimizer, batches, limit):
    losses = masked_loop(by_product, "never")(model, optimizer, batches, limit)
    model.last.weight.data.clamp_(-limit, limit)
    return losses


def limited_while_it_learns(weight, limit):
    if weight.requires_grad:
        weight.data.clamp_(-limit, limit)


def by_the_first_mask():
    """The mask of the first batch of a shape serves all of that shape."""
    masks = {}
    return lambda hidden, mask: hidden * masks.setdefault(mask.shape, mask)


RIGHT = [
    masked_loop(by_product, how=lambda w, limit: w.detach().clamp_(-limit, limit)),
    masked_with_copy,
]

MISCONCEIVED = {
    "caught by the counter": masked_loop(by_method),
    "a mask that autograd does not know": masked_loop(by_constant),
    "a write into what tanh saved": masked_loop(by_data),
    "limited before backward": masked_loop(by_product, "before"),
    "limited before the step": masked_loop(by_product, "between"),
    "beyond the limit": masked_loop(by_product, "never"),
    "limited before the forward pass": masked_and_limited_first,
    "never cleared": masked_loop(by_product, clear="never"),
    "gradients from before": masked_loop(by_product, clear="after"),
}

SLIPS = slips(masked_loop(by_product))
LEFT = [leaving(masked_loop(by_product), mess) for mess in MESSES]


def masked_by_a_hook_that_stays(model, optimizer, batches, limit):
    """The optimizer limits the weight after its steps, those of its owner as well."""
    optimizer.register_step_post_hook(lambda *given: model.last.weight.data.clamp_(-limit, limit))
    return masked_loop(by_product, "never")(model, optimizer, batches, limit)


masked_without_factors = masked_loop(lambda hidden, mask: hidden * (mask > 0))


def masked_inside(model, optimizer, batches, limit):
    losses = []
    for inputs, mask, targets in batches:
        losses.append(step(optimizer, mse_loss(model.last(torch.tanh(mask * model.first(inputs))), targets)))
        model.last.weight.detach().clamp_(-limit, limit)
    return losses


def masked_and_last_limited(model, optimizer, batches, limit):
    """Limits weight and bias."""
    losses = []
    for inputs, mask, targets in batches:
        losses.append(step(optimizer, mse_loss(model.last(model.first(inputs).tanh() * mask), targets)))
        for parameter in model.last.parameters():
            parameter.detach().clamp_(-limit, limit)
    return losses


def masked_with_new_weights(model, optimizer, batches, limit):
    losses = []
    for inputs, mask, targets in batches:
        losses.append(step(optimizer, mse_loss(model.last(model.first(inputs).tanh() * mask), targets)))
        old = model.last.weight
        model.last.weight = torch.nn.Parameter(old.detach().clamp(-limit, limit), old.requires_grad)
    return losses


def masked_and_limited_between(model, optimizer, batches, limit):
    """Limits the weight before each step but the first."""
    losses = []
    for number, (inputs, mask, targets) in enumerate(batches):
        if number:
            model.last.weight.detach().clamp_(-limit, limit)
        losses.append(step(optimizer, mse_loss(model.last(model.first(inputs).tanh() * mask), targets)))
    return losses


MISCONCEIVED |= {
    "the mask inside tanh": masked_inside,
    "a mask of yes and no": masked_loop(lambda hidden, mask: torch.where(mask == 0, 0.0, hidden)),
    "the bias limited": masked_and_last_limited,
    "a new parameter": masked_with_new_weights,
    "not after the last step": masked_and_limited_between,
}

WRONG = [
    clipping(masked_loop(by_product), 1e4),
    lambda model, optimizer, batches, limit: masked_loop(by_product)(model, optimizer, batches, min(limit, 1.0)),
    *SLIPS.values(),
    said(masked_loop(by_data, "before"), "a write into what tanh saved", "limited before backward"),
    said(masked_loop(by_constant, "never"), "a mask that autograd does not know", "beyond the limit"),
    said(masked_loop(by_data, clear="never"), "a write into what tanh saved", "never cleared"),
    masked_loop(by_product, how=lambda weight, limit: weight.data.clamp_(max=limit)),
    masked_from_below := masked_loop(by_product, how=lambda weight, limit: weight.data.clamp_(min=-limit)),
    masked_loop(by_product, how=lambda weight, limit: weight.data.mul_(min(1.0, limit / weight.abs().max().item()))),
    masked_otherwise := lambda model, optimizer, *given: masked_loop(by_product)(
        model, torch.optim.SGD(model.parameters(), lr=0.1), *given
    ),
    said(
        masked_loop(by_product, "before", how=lambda w, limit: w.detach().clamp_(-limit, limit)),
        "caught by the counter",
    ),
    said(masked_loop(by_product, how=limited_while_it_learns), "beyond the limit"),
    said(
        masked_loop(by_product, how=lambda weight, limit: weight.data.clamp_(-limit, limit) if limit else None),
        "beyond the limit",
    ),
    masked_loop(
        by_product, how=lambda weight, limit: weight.requires_grad_(False).clamp_(-limit, limit).requires_grad_()
    ),
    lambda *given: masked_loop(by_the_first_mask())(*given),
    masked_loop(lambda hidden, mask: hidden * mask.requires_grad_()),
    masked_bias_too,
    masked_at_the_end,
    *LEFT,
    said(masked_without_factors, "a mask of yes and no"),
    masked_by_a_hook_that_stays,
]

EQUIVALENT = {
    "masked_loop.fit_masked: optimizer.zero_grad() -> optimizer.zero_grad(set_to_none=False)": "Each parameter that the optimizer holds gets a gradient in every pass; without decay, zeros move none that does not.",
    "masked_loop.fit_masked: loss = mse_loss(model.last(apply(model.first(inputs).tanh(), mask)), targets) | optimizer.zero_grad() -> (swapped)": "Neither line reads what the other one writes.",
    "masked_loop.fit_masked: how(model.last.weight, limit) | losses.append(loss.item()) -> (swapped)": "Neither line reads what the other one writes.",
    "step: optimizer.zero_grad() -> optimizer.zero_grad(set_to_none=False)": "Each parameter that the optimizer holds gets a gradient in every pass; without decay, zeros move none that does not.",
    "masked_with_copy: hidden *= mask -> hidden = hidden * mask": "The product is the same, and hidden is read nowhere else.",
    "masked_with_copy: model.last.weight.clamp(min=-limit, max=limit) -> model.last.weight.clamp_(min=-limit, max=limit)": "What is clamped in place is copied onto itself.",
}

GUARDS = {
    **guarded(SLIPS, hooks=LEFT[4], flags=LEFT[3]),
    "in the optimizer that it was given": {"hooks": masked_by_a_hook_that_stays},
    "with the sign that they have": {"value": masked_from_below},
    "The mask multiplies what `tanh` returns": {"value": masked_without_factors},
    "the gradient takes the mask into account": {"value": MISCONCEIVED["a mask that autograd does not know"]},
    "after each step": {"value": masked_at_the_end},
    "not before the first": {"runs": MISCONCEIVED["caught by the counter"]},
    "and not for the bias": {"value": masked_bias_too},
}
