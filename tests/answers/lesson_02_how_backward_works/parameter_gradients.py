"""Right and wrong answers to `parameter_gradients`."""

from collections import defaultdict

import torch

from tests.answers.lesson_02_how_backward_works.spoiled import spoiled
from tests.answers.said import said


def parameters_by_grad(loss, model):
    wanted = {name: parameter for name, parameter in model.named_parameters() if parameter.requires_grad}
    gradients = torch.autograd.grad(loss, list(wanted.values()), allow_unused=True)
    found = dict(zip(wanted, gradients, strict=True))
    return {name: found.get(name) for name, _ in model.named_parameters()}


def parameters_by_backward_and_restoring(loss, model):
    held = {parameter: parameter.grad for parameter in model.parameters()}
    for parameter in held:
        parameter.grad = None
    loss.backward()
    found = defaultdict(None, {name: parameter.grad for name, parameter in model.named_parameters()})
    for parameter, gradient in held.items():
        parameter.grad = gradient
    return found


@torch.no_grad()
def move_parameters(loss, model):
    for parameter in model.parameters():
        parameter.add_(0.1)


def zeros_for_none(loss, model):
    held = {parameter: parameter.grad for parameter in model.parameters()}
    for parameter in held:
        parameter.grad = None
    loss.backward()
    found = {name: parameter.grad for name, parameter in model.named_parameters()}
    for parameter, gradient in held.items():
        parameter.grad = torch.zeros_like(parameter) if gradient is None else gradient
    return found


def with_backward(loss, model):
    loss.backward()
    return {name: parameter.grad for name, parameter in model.named_parameters()}


def clearing(loss, model):
    model.zero_grad()
    loss.backward()
    found = {name: parameter.grad for name, parameter in model.named_parameters()}
    model.zero_grad()
    return found


def pass_for_each(loss, model):
    return {
        name: torch.autograd.grad(loss, parameter, retain_graph=True, allow_unused=True)[0]
        if parameter.requires_grad
        else None
        for name, parameter in model.named_parameters()
    }


def with_options(**options):
    def answer(loss, model):
        wanted = [parameter for parameter in model.parameters() if parameter.requires_grad]
        gradients = torch.autograd.grad(loss, wanted, allow_unused=True, **options)
        found = dict(zip(map(id, wanted), gradients, strict=True))
        return {name: found.get(id(parameter)) for name, parameter in model.named_parameters()}

    return answer


def only_used(loss, model):
    return {name: gradient for name, gradient in parameters_by_grad(loss, model).items() if gradient is not None}


RIGHT = [parameters_by_grad, parameters_by_backward_and_restoring]

MISCONCEIVED = {
    "zeros in place of None": zeros_for_none,
    "writes into .grad": with_backward,
    "clears .grad": clearing,
    "one pass for each parameter": pass_for_each,
    "the graph is kept": with_options(retain_graph=True),
}

WRONG = [
    only_used,
    spoiled(parameters_by_grad, lambda loss, model: model.requires_grad_()),
    spoiled(parameters_by_grad, lambda loss, model: model.requires_grad_(False)),
    spoiled(parameters_by_grad, lambda loss, model: model.eval()),
    spoiled(parameters_by_grad, move_parameters),
    said(with_options(create_graph=True), "the graph is kept"),
    with_options(materialize_grads=True),
    lambda loss, model: list(parameters_by_grad(loss, model).values()),
]
