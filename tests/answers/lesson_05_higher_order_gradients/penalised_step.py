"""Right and wrong answers to `penalised_step`."""

import torch
from torch.nn.functional import mse_loss

from tests.answers.leaving import clipping, leaving
from tests.answers.lesson_05_higher_order_gradients.side_effects import hook_on
from tests.answers.near import near
from tests.answers.said import said


def recorded_gradients(loss, parameters):
    return torch.autograd.grad(loss, parameters, create_graph=True)


def squares(gradients):
    return sum((gradient * gradient).sum() for gradient in gradients)


def finish(optimizer, total):
    optimizer.zero_grad()
    total.backward()
    optimizer.step()
    return total.item()


def step_by_grad(model, optimizer, inputs, targets, weight):
    loss = mse_loss(model(inputs), targets)
    gradients = recorded_gradients(loss, list(model.parameters()))
    return finish(optimizer, loss + weight * squares(gradients))


def step_over_one_group(model, optimizer, inputs, targets, weight):
    loss = mse_loss(model(inputs), targets)
    gradients = recorded_gradients(loss, optimizer.param_groups[0]["params"])
    return finish(optimizer, loss + weight * squares(gradients))


def step_by_assigning(model, optimizer, inputs, targets, weight):
    parameters = list(model.parameters())
    loss = (model.forward(inputs) - targets).pow(2).mean()
    total = loss + weight * squares(recorded_gradients(loss, parameters))
    for parameter, gradient in zip(parameters, torch.autograd.grad(total, parameters), strict=True):
        parameter.grad = gradient
    optimizer.step()
    return float(total)


def step_cleared_between(model, optimizer, inputs, targets, weight):
    """The given code with the gradients set to None before the second pass: no sum, and no cycle is left."""
    optimizer.zero_grad()
    loss = mse_loss(model(inputs), targets)
    loss.backward(create_graph=True)
    penalty = squares([parameter.grad for parameter in model.parameters()])
    return finish(optimizer, loss + weight * penalty)


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


def step_twice_and_never_cleared(model, optimizer, inputs, targets, weight):
    """Both passes write to .grad, and nothing clears it; no graph stays."""
    loss = mse_loss(model(inputs), targets)
    gradients = torch.autograd.grad(loss, list(model.parameters()), create_graph=True)
    total = loss + weight * squares(gradients)
    loss.backward(retain_graph=True)
    total.backward()
    optimizer.step()
    return total.item()


def step_in_training(model, optimizer, inputs, targets, weight):
    """Puts the whole model into training, and back."""
    modes = [(part, part.training) for part in model.modules()]
    model.train()
    total = step_by_grad(model, optimizer, inputs, targets, weight)
    for part, mode in modes:
        part.training = mode
    return total


def step_by_hand(model, optimizer, inputs, targets, weight):
    """Updates without the optimizer, and lets that one make a step of nothing."""
    total = step_by_grad(model, optimizer, inputs, targets, weight)
    optimizer.zero_grad()
    before = [parameter.detach().clone() for parameter in model.parameters()]
    optimizer.step()
    for parameter, number in zip(model.parameters(), before, strict=True):
        parameter.data.copy_(number)
    return total


def step_and_more(more):
    def step(model, optimizer, inputs, targets, weight):
        total = step_by_grad(model, optimizer, inputs, targets, weight)
        more(model, inputs)
        return total

    return step


def step_held(model, optimizer, inputs, targets, weight):
    """Keeps the graph of the loss on the model."""
    loss = mse_loss(model(inputs), targets)
    model.losses = [*getattr(model, "losses", []), loss]
    return finish(optimizer, loss + weight * squares(recorded_gradients(loss, list(model.parameters()))))


def step_with_the_first_weight(model, optimizer, inputs, targets, weight):
    """Looks the weight up once for each optimizer."""
    optimizer.weight = getattr(optimizer, "weight", weight)
    return step_by_grad(model, optimizer, inputs, targets, optimizer.weight)


def step_over_the_near(model, optimizer, inputs, targets, weight):
    """The penalty is for the model's own parameters and those of its direct children."""
    loss = mse_loss(model(inputs), targets)
    gradients = recorded_gradients(loss, list(near(model).values()))
    return finish(optimizer, loss + weight * squares(gradients))


def step_cleared_before_it_steps(model, optimizer, inputs, targets, weight):
    loss = torch.nn.functional.mse_loss(model(inputs), targets)
    total = loss + weight * squares(recorded_gradients(loss, list(model.parameters())))
    total.backward()
    optimizer.zero_grad()
    optimizer.step()
    return total.item()


def step_with_the_loss_twice(model, optimizer, inputs, targets, weight):
    loss = torch.nn.functional.mse_loss(model(inputs), targets)
    total = loss + weight * squares(recorded_gradients(loss, list(model.parameters())))
    optimizer.zero_grad()
    (loss + total).backward()
    optimizer.step()
    return total.item()


RIGHT = [step_by_grad, step_by_assigning, step_cleared_between]

MISCONCEIVED = {
    "old gradients": step_never_cleared,
    "the loss counted twice, and old gradients": step_twice_and_never_cleared,
    "the loss counted twice": step_given,
    "a penalty that is a constant": step_retained,
    "the penalty alone": step_penalty_only,
    "nothing moved": step_cleared_before_it_steps,
}

WRONG = [
    step_over_the_near,
    *(clipping(step_by_grad, longest) for longest in (10.0, 1e3, 1e5)),
    said(step_cleared_after, "the loss counted twice"),
    step_evaluating := leaving(step_by_grad, lambda model, *given: model[0].eval()),
    leaving(step_by_grad, lambda model, *given: hook_on(model[0].weight)),
    leaving(step_by_grad, lambda model, *given: model.append(torch.nn.Linear(2, 2).double())),
    step_norm,
    step_returning_a_graph,
    step_recorded_twice,
    step_two_forwards,
    step_in_training,
    step_by_hand,
    step_runs_again := step_and_more(lambda model, inputs: model.forward(inputs)),
    step_keeping_graph := step_and_more(lambda model, inputs: setattr(model[0].weight, "grad", model[0].weight * 2)),
    step_moved := step_and_more(lambda model, inputs: model[0].weight.data.mul_(1.01) if len(inputs) > 5 else None),
    step_over := lambda *given: 1.01 * step_by_grad(*given),
    step_held,
    lambda model, optimizer, inputs, targets, weight: step_by_grad(model, optimizer, inputs, targets, weight or 0.1),
    lambda model, optimizer, inputs, targets, weight: step_by_grad(model, optimizer, inputs, targets, min(weight, 1.0)),
    step_with_the_first_weight,
    said(lambda model, optimizer, inputs, targets, weight: 1.0, "nothing moved"),
    step_over_one_group,
    said(step_with_the_loss_twice, "the loss counted twice"),
    said(
        lambda model, optimizer, inputs, targets, weight: step_by_grad(model, optimizer, inputs, targets, 0.0),
        "a penalty that is a constant",
    ),
    lambda model, optimizer, inputs, targets, weight: step_by_grad(model, optimizer, inputs, targets, 2 * weight),
]

STILL_RIGHT = {"keeps every graph"}

EQUIVALENT = {
    "finish: optimizer.zero_grad() -> optimizer.zero_grad(set_to_none=False)": "A gradient of zero and one that is not there give the same step: every parameter gets one.",
    "finish: total.backward() -> total.backward(retain_graph=True)": "The graph ends with the function.",
    "recorded_gradients: ...s, create_graph=True) -> ...s, create_graph=True, retain_graph=True)": "Recording a pass keeps its graph as well.",
    "step_by_assigning: torch.autograd.grad(total, parameters) -> torch.autograd.grad(total, parameters, retain_graph=True)": "The graph ends with the function.",
    "step_by_assigning: parameters = list(model.parameters()) | loss = (model.forward(inputs) - targets).pow(2).mean() -> (swapped)": "The two do not touch each other.",
    "step_cleared_between: optimizer.zero_grad() -> optimizer.zero_grad(set_to_none=False)": "The first pass adds to zeros.",
    "step_cleared_between: loss.backward(create_graph=True) -> loss.backward(create_graph=True, retain_graph=True)": "Recording a pass keeps its graph as well.",
    "step_cleared_between: optimizer.zero_grad() | loss = mse_loss(model(inputs), targets) -> (swapped)": "A forward does not read gradients.",
}

GUARDS = {
    "move the parameters along the gradient of `loss + weight * penalty`": {"parameters": step_moved},
    "The model runs once, and the optimizer steps once.": {"forwards": step_runs_again, "steps": step_by_hand},
    "returns the total as a Python float": {"float": step_returning_a_graph, "value": step_over},
    "No graph is alive after a step.": {"grad": step_keeping_graph, "alive": step_held},
    "Modes and hooks of the model stay as they were.": {"left": step_evaluating},
}


def step_layer_by_layer(model, optimizer, inputs, targets, weight):
    """What two layers share counts twice."""
    parameters = [it for layer in model.modules() for it in layer.parameters(recurse=False)]
    loss = mse_loss(model(inputs), targets)
    return finish(optimizer, loss + weight * squares(recorded_gradients(loss, parameters)))


MISCONCEIVED["a shared parameter counted twice"] = step_layer_by_layer


def step_returning_the_loss(model, optimizer, inputs, targets, weight):
    loss = mse_loss(model(inputs), targets)
    finish(optimizer, loss + weight * squares(recorded_gradients(loss, list(model.parameters()))))
    return loss.item()


MISCONCEIVED["the loss alone returned"] = step_returning_the_loss


def step_clearing_afterwards(model, optimizer, inputs, targets, weight):
    loss = mse_loss(model(inputs), targets)
    total = loss + weight * squares(recorded_gradients(loss, list(model.parameters())))
    total.backward()
    optimizer.step()
    optimizer.zero_grad()
    return total.item()


MISCONCEIVED["cleared too late"] = step_clearing_afterwards


def step_with_the_length(model, optimizer, inputs, targets, weight):
    loss = mse_loss(model(inputs), targets)
    return finish(optimizer, loss + weight * squares(recorded_gradients(loss, list(model.parameters()))) ** 0.5)


def step_over_weights(model, optimizer, inputs, targets, weight):
    loss = mse_loss(model(inputs), targets)
    weights = [parameter for name, parameter in model.named_parameters() if not name.endswith("bias")]
    return finish(optimizer, loss + weight * squares(recorded_gradients(loss, weights)))


MISCONCEIVED |= {"the root of the penalty": step_with_the_length, "the biases left out": step_over_weights}
