"""Right ways to write `train`."""

from functools import partial

import torch
from torch import nn

from tests.answers.updating import updated


def in_columns(rows):
    """What `train` returns, from pairs of a loss and a sample."""
    losses, samples = map(list, zip(*rows, strict=True))
    return losses, sum(losses) / len(losses), samples


def train_with_floats(model, optimizer, batches):
    rows = []
    for inputs, targets in batches:
        predictions = model(inputs)
        loss = updated(optimizer, nn.functional.mse_loss(predictions, targets))
        rows.append((loss, predictions[0].detach().clone()))
    return in_columns(rows)


def train_in_a_function(model, optimizer, batches):
    def step(inputs, targets):
        predictions = model(inputs)
        row = predictions.new_tensor(predictions[0].tolist())
        return updated(optimizer, torch.mean((predictions - targets) ** 2)), row

    losses, average, samples = in_columns([step(*batch) for batch in batches])
    return [losses, average, tuple(samples)]


def train_by_grad(model, optimizer, batches):
    """No pass that writes into .grad, and no call of the model."""
    rows, parameters = [], list(model.parameters())
    for inputs, targets in batches:
        predictions = model.forward(inputs)
        loss = nn.functional.mse_loss(predictions, targets)
        for parameter, gradient in zip(
            parameters, torch.autograd.grad(loss, parameters, allow_unused=True), strict=True
        ):
            parameter.grad = gradient
        rows.append((loss.item(), predictions[0].clone().detach()))
        optimizer.step()
    return in_columns(rows)


def train_by_functions(model, optimizer, batches):
    """With torch.func, which takes the parameters as an argument. It has zeros where there is no gradient."""

    def loss_of(parameters, inputs, targets):
        predictions = torch.func.functional_call(model, parameters, inputs)
        loss = nn.functional.mse_loss(predictions, targets)
        return loss, (loss, predictions[0].clone())

    rows = []
    for inputs, targets in batches:
        values = {name: parameter.detach() for name, parameter in model.named_parameters()}
        gradients, (loss, row) = torch.func.grad(loss_of, has_aux=True)(values, inputs, targets)
        for name, parameter in model.named_parameters():
            parameter.grad = gradients[name] if gradients[name].any() else None
        rows.append((loss.item(), row))
        optimizer.step()
    return in_columns(rows)


def train_retaining_what_goes(model, optimizer, batches):
    """The graph is gone before the step, whatever the pass retained."""

    def passed(inputs, targets):
        predictions = model(inputs)
        loss = nn.functional.mse_loss(predictions, targets)
        loss.backward(retain_graph=True)
        return loss.item(), predictions[0].detach().clone()

    rows = []
    for batch in batches:
        optimizer.zero_grad()
        rows.append(passed(*batch))
        optimizer.step()
    return in_columns(rows)


def train_with_a_closure(model, optimizer, batches):
    samples = []

    def step(inputs, targets):
        optimizer.zero_grad()
        predictions = model(inputs)
        samples.append(predictions.data[0].clone())
        loss = nn.functional.mse_loss(predictions, targets)
        loss.backward()
        return loss

    losses = [optimizer.step(partial(step, *batch)).item() for batch in batches]
    return losses, sum(losses) / len(losses), list(torch.stack(samples))
