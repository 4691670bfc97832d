"""Right and wrong answers to `penalised_step`."""

import torch
from torch.nn.functional import mse_loss

from tests.answers.leaving import leaving
from tests.answers.lesson_05_higher_order_gradients.side_effects import hook_on
from tests.answers.said import said


def step_by_grad(model, optimizer, inputs, targets, weight):
    loss = mse_loss(model(inputs), targets)
    gradients = torch.autograd.grad(loss, list(model.parameters()), create_graph=True)
    total = loss + weight * sum(gradient.square().sum() for gradient in gradients)
    optimizer.zero_grad()
    total.backward()
    optimizer.step()
    return total.item()


def step_by_assigning(model, optimizer, inputs, targets, weight):
    parameters = list(model.parameters())
    loss = (model(inputs) - targets).pow(2).mean()
    gradients = torch.autograd.grad(loss, parameters, create_graph=True)
    penalty = weight * torch.cat([gradient.reshape(-1) for gradient in gradients]).pow(2).sum()
    extra = torch.autograd.grad(penalty, parameters, materialize_grads=True)
    for parameter, first, second in zip(parameters, gradients, extra, strict=True):
        parameter.grad = first.detach() + second
    optimizer.step()
    return float(loss + penalty)


def step_cleared_between(model, optimizer, inputs, targets, weight):
    """The given code with the gradients set to None before the second pass: no sum, and no cycle is left."""
    optimizer.zero_grad()
    loss = mse_loss(model(inputs), targets)
    loss.backward(create_graph=True)
    penalty = sum(parameter.grad.square().sum() for parameter in model.parameters())
    total = loss + weight * penalty
    optimizer.zero_grad()
    total.backward()
    optimizer.step()
    return total.item()


def step_given(model, optimizer, inputs, targets, weight):
    optimizer.zero_grad()
    loss = mse_loss(model(inputs), targets)
    loss.backward(create_graph=True)
    penalty = sum(parameter.grad.square().sum() for parameter in model.parameters())
    total = loss + weight * penalty
    total.backward()
    optimizer.step()
    return total.item()


def step_cleared_after(model, optimizer, inputs, targets, weight):
    total = step_given(model, optimizer, inputs, targets, weight)
    optimizer.zero_grad()
    return total


def step_retained(model, optimizer, inputs, targets, weight):
    loss = mse_loss(model(inputs), targets)
    gradients = torch.autograd.grad(loss, list(model.parameters()), retain_graph=True)
    total = loss + weight * sum(gradient.square().sum() for gradient in gradients)
    optimizer.zero_grad()
    total.backward()
    optimizer.step()
    return total.item()


def step_penalty_only(model, optimizer, inputs, targets, weight):
    loss = mse_loss(model(inputs), targets)
    gradients = torch.autograd.grad(loss, list(model.parameters()), create_graph=True)
    penalty = weight * sum(gradient.square().sum() for gradient in gradients)
    optimizer.zero_grad()
    penalty.backward()
    optimizer.step()
    return (loss + penalty).item()


def step_never_cleared(model, optimizer, inputs, targets, weight):
    loss = mse_loss(model(inputs), targets)
    gradients = torch.autograd.grad(loss, list(model.parameters()), create_graph=True)
    total = loss + weight * sum(gradient.square().sum() for gradient in gradients)
    total.backward()
    optimizer.step()
    return total.item()


def step_norm(model, optimizer, inputs, targets, weight):
    loss = mse_loss(model(inputs), targets)
    gradients = torch.autograd.grad(loss, list(model.parameters()), create_graph=True)
    total = loss + weight * sum(gradient.norm() for gradient in gradients)
    optimizer.zero_grad()
    total.backward()
    optimizer.step()
    return total.item()


def step_returning_a_graph(model, optimizer, inputs, targets, weight):
    loss = mse_loss(model(inputs), targets)
    gradients = torch.autograd.grad(loss, list(model.parameters()), create_graph=True)
    total = loss + weight * sum(gradient.square().sum() for gradient in gradients)
    optimizer.zero_grad()
    total.backward()
    optimizer.step()
    return total


def step_recorded_twice(model, optimizer, inputs, targets, weight):
    loss = mse_loss(model(inputs), targets)
    gradients = torch.autograd.grad(loss, list(model.parameters()), create_graph=True)
    total = loss + weight * sum(gradient.square().sum() for gradient in gradients)
    optimizer.zero_grad()
    total.backward(create_graph=True)
    optimizer.step()
    return total.item()


def step_two_forwards(model, optimizer, inputs, targets, weight):
    gradients = torch.autograd.grad(mse_loss(model(inputs), targets), list(model.parameters()), create_graph=True)
    total = mse_loss(model(inputs), targets) + weight * sum(gradient.square().sum() for gradient in gradients)
    optimizer.zero_grad()
    total.backward()
    optimizer.step()
    return total.item()


RIGHT = [step_by_grad, step_by_assigning, step_cleared_between]

MISCONCEIVED = {
    "the loss counted twice": step_given,
    "a penalty that is a constant": step_retained,
    "the penalty alone": step_penalty_only,
}

WRONG = [
    said(step_cleared_after, "the loss counted twice"),
    leaving(step_by_grad, lambda model, *given: model.eval()),
    leaving(step_by_grad, lambda model, *given: hook_on(model[0].weight)),
    leaving(step_by_grad, lambda model, *given: model.append(torch.nn.Linear(2, 2).double())),
    step_never_cleared,
    step_norm,
    step_returning_a_graph,
    step_recorded_twice,
    step_two_forwards,
    lambda model, optimizer, inputs, targets, weight: 1.0,
    said(
        lambda model, optimizer, inputs, targets, weight: step_by_grad(model, optimizer, inputs, targets, 0.0),
        "a penalty that is a constant",
    ),
    lambda model, optimizer, inputs, targets, weight: step_by_grad(model, optimizer, inputs, targets, 2 * weight),
]

STILL_RIGHT = {"keeps every graph"}
