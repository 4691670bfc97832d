"""Right and wrong answers to `fit_scale`."""

import copy

import torch
from torch.nn.functional import cross_entropy

from tests.answers.leaving import gradients_off, leaving
from tests.answers.lesson_04_retain_graph.side_effects import frozen, hooked, in_evaluation, reseeded
from tests.answers.said import said


def fit_inside(model, log_scale, optimizer, batches):
    losses = []
    for inputs, targets in batches:
        loss = cross_entropy(log_scale.exp() * model(inputs), targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def fit_by_grad(model, log_scale, optimizer, batches):
    leaves = [*model.parameters(), log_scale]

    def step(inputs, targets):
        loss = cross_entropy(model(inputs) * torch.exp(log_scale), targets)
        for leaf, gradient in zip(leaves, torch.autograd.grad(loss, leaves), strict=True):
            leaf.grad = gradient
        optimizer.step()
        return float(loss)

    return [step(*batch) for batch in batches]


def fit_by_closure(model, log_scale, optimizer, batches):
    losses = []
    for inputs, targets in batches:

        def closure(inputs=inputs, targets=targets):
            optimizer.zero_grad(set_to_none=False)
            loss = cross_entropy(model(inputs) * log_scale.exp(), targets)
            loss.backward()
            return loss

        losses.append(optimizer.step(closure).item())
    return losses


def fit_zeroing_after(model, log_scale, optimizer, batches):
    optimizer.zero_grad()
    losses = []
    for inputs, targets in batches:
        loss = cross_entropy(log_scale.exp() * model(inputs), targets)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item())
    return losses


def fit_zeroing_between(model, log_scale, optimizer, batches):
    losses = []
    for inputs, targets in batches:
        loss = cross_entropy(log_scale.exp() * model(inputs), targets)
        loss.backward()
        optimizer.zero_grad()
        optimizer.step()
        losses.append(loss.item())
    return losses


def fit_with_its_own_optimizer(model, log_scale, optimizer, batches):
    own = torch.optim.SGD([*model.parameters(), log_scale], lr=0.4, momentum=0.5)
    return fit_inside(model, log_scale, own, batches)


def fit_a_copy(model, log_scale, optimizer, batches):
    return fit_inside(copy.deepcopy(model), log_scale, optimizer, batches)


def fitter(scale_of=lambda log_scale: log_scale.exp(), once=False, **options):
    """The loop with one thing wrong."""

    def fit_scale(model, log_scale, optimizer, batches):
        losses, first = [], scale_of(log_scale)
        for inputs, targets in batches:
            scale = first if once else scale_of(log_scale)
            loss = cross_entropy(scale * model(inputs), targets)
            optimizer.zero_grad()
            loss.backward(**options)
            optimizer.step()
            losses.append(loss.item())
        return losses

    return fit_scale


def fit_without_zeroing(model, log_scale, optimizer, batches):
    losses = []
    for inputs, targets in batches:
        loss = cross_entropy(log_scale.exp() * model(inputs), targets)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def fit_one_step_late(model, log_scale, optimizer, batches):
    losses, scale = [], log_scale.exp()
    for inputs, targets in batches:
        loss = cross_entropy(scale * model(inputs), targets)
        optimizer.zero_grad()
        loss.backward()
        scale = log_scale.exp()
        optimizer.step()
        losses.append(loss.item())
    return losses


def fit_and_keep(model, log_scale, optimizer, batches):
    losses = []
    for inputs, targets in batches:
        loss = cross_entropy(log_scale.exp() * model(inputs), targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss)
    return [loss.item() for loss in losses]


RIGHT = [fit_inside, fit_by_grad, fit_by_closure, fit_zeroing_after]

MISCONCEIVED = {
    "a stale scale": fitter(once=True, retain_graph=True),
    "the scale made a constant": fitter(lambda log_scale: log_scale.exp().detach()),
    "retained for nothing": fitter(retain_graph=True),
}

WRONG = [
    *(leaving(fit_inside, change) for change in (gradients_off, in_evaluation, frozen, hooked, reseeded)),
    leaving(fit_inside, lambda model, log_scale, optimizer, batches: optimizer.param_groups[0].update(lr=0.1)),
    fit_zeroing_between,
    fit_with_its_own_optimizer,
    fit_a_copy,
    fit_without_zeroing,
    fit_one_step_late,
    fit_and_keep,
    fitter(once=True),
    fitter(lambda log_scale: log_scale),
    said(fitter(lambda log_scale: log_scale.exp().detach().requires_grad_()), "the scale made a constant"),
    lambda model, log_scale, optimizer, batches: [0.0 for _ in batches],
]
