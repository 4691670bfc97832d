"""Right and wrong answers to `meta_gradient`."""

import copy

import torch
from torch.func import functional_call
from torch.nn.functional import mse_loss

from tests.answers.leaving import gradients_off, leaving
from tests.answers.lesson_05_higher_order_gradients.side_effects import hook_on
from tests.answers.magnitudes import clipping_results
from tests.answers.near import near
from tests.answers.said import said


def learning(model):
    return {name: parameter for name, parameter in model.named_parameters() if parameter.requires_grad}


def loss_with(model, values, data):
    inputs, targets = data
    return mse_loss(functional_call(model, values, (inputs,)), targets)


def stepped(values, gradients, lr):
    return {name: value - lr * gradient for (name, value), gradient in zip(values.items(), gradients, strict=True)}


def meta_by_hand(model, support, query, lr, steps):
    start = values = learning(model)
    for _ in range(steps):
        loss = loss_with(model, values, support)
        gradients = torch.autograd.grad(loss, list(values.values()), create_graph=True)
        values = stepped(values, gradients, lr)
    gradients = torch.autograd.grad(loss_with(model, values, query), list(start.values()))
    return dict(zip(start, gradients, strict=True))


def meta_by_func(model, support, query, lr, steps):
    def after(values):
        for _ in range(steps):
            gradients = torch.func.grad(lambda now: loss_with(model, now, support))(values)
            values = {name: values[name] - lr * gradients[name] for name in values}
        return loss_with(model, values, query)

    return {name: gradient.detach() for name, gradient in torch.func.grad(after)(learning(model)).items()}


def meta_by_vectors(model, support, query, lr, steps):
    """Backwards through the steps by Hessian-vector products: no graph longer than one step."""
    values = {name: parameter.detach() for name, parameter in learning(model).items()}
    visited = []
    for _ in range(steps):
        visited.append(values)
        gradients = torch.func.grad(lambda now: loss_with(model, now, support))(values)
        values = stepped(values, gradients.values(), lr)
    vector = torch.func.grad(lambda now: loss_with(model, now, query))(values)
    for values in reversed(visited):
        _, pull = torch.func.vjp(torch.func.grad(lambda now: loss_with(model, now, support)), values)
        (product,) = pull(vector)
        vector = stepped(vector, product.values(), lr)
    return vector


def meta_first_order(model, support, query, lr, steps):
    start = {name: p for name, p in model.named_parameters() if p.requires_grad}
    values = dict(start)
    for _ in range(steps):
        loss = mse_loss(functional_call(model, values, (support[0],)), support[1])
        gradients = torch.autograd.grad(loss, list(values.values()))
        pairs = zip(values.items(), gradients, strict=True)
        values = {name: value - lr * gradient for (name, value), gradient in pairs}
    loss = mse_loss(functional_call(model, values, (query[0],)), query[1])
    return dict(zip(start, torch.autograd.grad(loss, list(start.values())), strict=True))


def meta_no_step(model, support, query, lr, steps):
    return meta_by_hand(model, support, query, lr, 0)


def meta_one_step(model, support, query, lr, steps):
    return meta_by_hand(model, support, query, lr, min(steps, 1))


def meta_trained(model, support, query, lr, steps):
    optimizer = torch.optim.SGD([p for p in model.parameters() if p.requires_grad], lr=lr)
    for _ in range(steps):
        own = dict(model.named_parameters())
        moving = [p for p in own.values() if p.requires_grad]
        gradients = torch.autograd.grad(mse_loss(model(support[0]), support[1]), moving)
        with torch.no_grad():
            for parameter, gradient in zip(moving, gradients, strict=True):
                parameter -= optimizer.param_groups[0]["lr"] * gradient
    return meta_by_hand(model, support, query, lr, 0)


def meta_on_a_copy(model, support, query, lr, steps):
    """First order, by training a copy."""
    twin = copy.deepcopy(model)
    meta = meta_trained(twin, support, query, lr, steps)
    return {name: gradient.clone() for name, gradient in meta.items()}


def meta_last_step_recorded(model, support, query, lr, steps):
    start = {name: p for name, p in model.named_parameters() if p.requires_grad}
    values = dict(start)
    for step in range(steps):
        loss = mse_loss(functional_call(model, values, (support[0],)), support[1])
        gradients = torch.autograd.grad(loss, list(values.values()), create_graph=step == steps - 1, retain_graph=True)
        pairs = zip(values.items(), gradients, strict=True)
        values = {name: value - lr * gradient for (name, value), gradient in pairs}
    loss = mse_loss(functional_call(model, values, (query[0],)), query[1])
    return dict(zip(start, torch.autograd.grad(loss, list(start.values())), strict=True))


def meta_into_grad(model, support, query, lr, steps):
    gradients = meta_by_hand(model, support, query, lr, steps)
    for name, gradient in gradients.items():
        model.get_parameter(name).grad = gradient
    return gradients


def meta_recorded(model, support, query, lr, steps):
    return {
        name: gradient.requires_grad_() for name, gradient in meta_by_hand(model, support, query, lr, steps).items()
    }


def meta_all_names(model, support, query, lr, steps):
    gradients = meta_by_hand(model, support, query, lr, steps)
    return {name: gradients.get(name, torch.zeros_like(p)) for name, p in model.named_parameters()}


def meta_on_support(model, support, query, lr, steps):
    return meta_by_hand(model, support, support, lr, steps)


def meta_in_eval(model, support, query, lr, steps):
    model.eval()
    return meta_by_hand(model, support, query, lr, steps)


def meta_measured(model, support, query, lr, steps):
    """Central differences of training: right to many digits, and a training run for each number."""
    start = {name: p.detach().clone() for name, p in model.named_parameters() if p.requires_grad}

    def after(values):
        for _ in range(steps):
            gradients = torch.func.grad(lambda v: mse_loss(functional_call(model, v, (support[0],)), support[1]))(
                values
            )
            values = {name: values[name] - lr * gradients[name] for name in values}
        return mse_loss(functional_call(model, values, (query[0],)), query[1]).item()

    slopes = {name: torch.zeros_like(value) for name, value in start.items()}
    for name, value in start.items():
        for index in range(value.numel()):
            move = torch.zeros(value.numel(), dtype=value.dtype)
            move[index] = 1e-4
            up, down = ({**start, name: value + sign * move.reshape(value.shape)} for sign in (1, -1))
            slopes[name].view(-1)[index] = (after(up) - after(down)) / 2e-4
    return slopes


def meta_measured_at_once(model, support, query, lr, steps):
    """Differences of training, with one run of the model for all of them."""
    start = {name: p.detach() for name, p in model.named_parameters() if p.requires_grad}
    sizes = [value.numel() for value in start.values()]

    def loss(values, data):
        return mse_loss(functional_call(model, values, (data[0],)), data[1])

    def after(flat):
        pairs = zip(start.items(), flat.split(sizes), strict=True)
        values = {name: part.reshape(value.shape) for (name, value), part in pairs}
        for _ in range(steps):
            gradients = torch.func.grad(loss)(values, support)
            values = {name: values[name] - lr * gradients[name] for name in values}
        return loss(values, query)

    flat = torch.cat([value.reshape(-1) for value in start.values()])
    moves = 1e-3 * torch.eye(len(flat), dtype=flat.dtype)
    many = torch.cat([flat + times * moves for times in (1, -1, 2, -2)])
    near, far, further, furthest = torch.func.vmap(after)(many).reshape(4, -1)
    slopes = ((8 * (near - far) - (further - furthest)) / 12e-3).split(sizes)
    return {name: part.reshape(value.shape) for (name, value), part in zip(start.items(), slopes, strict=True)}


def meta_by_forward_mode(model, support, query, lr, steps):
    """One column of the derivative at a time, all in one run: right, if wasteful."""

    def loss(values, data):
        inputs, targets = data
        return (functional_call(model, values, (inputs,)) - targets).square().mean()

    def after(values):
        for _ in range(steps):
            gradients = torch.func.grad(loss)(values, support)
            values = {name: values[name] - lr * gradients[name] for name in values}
        return loss(values, query)

    return {name: slope.detach() for name, slope in torch.func.jacfwd(after)(learning(model)).items()}


def meta_unfrozen(model, support, query, lr, steps):
    result = meta_by_hand(model, support, query, lr, steps)
    for parameter in model.parameters():
        parameter.requires_grad_(True)
    return result


def meta_in_training(model, support, query, lr, steps):
    """Puts all parts into training, and back."""
    modes = [(part, part.training) for part in model.modules()]
    model.train()
    gradients = meta_by_hand(model, support, query, lr, steps)
    for part, mode in modes:
        part.training = mode
    return gradients


def meta_of_the_near(model, support, query, lr, steps):
    """Moves the model's own parameters and those of its direct children; deeper ones stay."""
    start = values = {name: parameter for name, parameter in near(model).items() if parameter.requires_grad}
    for _ in range(steps):
        loss = loss_with(model, values, support)
        gradients = torch.autograd.grad(loss, list(values.values()), create_graph=True)
        values = stepped(values, gradients, lr)
    gradients = torch.autograd.grad(loss_with(model, values, query), list(start.values()))
    return dict(zip(start, gradients, strict=True))


RIGHT = [meta_by_hand, meta_by_func, meta_by_vectors, meta_by_forward_mode]

MISCONCEIVED = {
    "first order only": meta_first_order,
    "no inner step": meta_no_step,
    "the model itself was trained": meta_trained,
}


def meta_clipped_within(model, support, query, lr, steps):
    """Clips the gradients of the inner steps."""
    start = values = learning(model)
    for _ in range(steps):
        loss = loss_with(model, values, support)
        gradients = torch.autograd.grad(loss, list(values.values()), create_graph=True)
        values = stepped(values, [gradient.clamp(-20, 20) for gradient in gradients], lr)
    gradients = torch.autograd.grad(loss_with(model, values, query), list(start.values()))
    return dict(zip(start, gradients, strict=True))


def meta_by_biases(*given):
    """Takes a layer for frozen where its bias is."""
    model, found = given[0], meta_by_hand(*given)
    return {name: it for name, it in found.items() if model.get_submodule(name.rpartition(".")[0]).bias.requires_grad}


WRONG = [
    meta_of_the_near,
    meta_one_step,
    meta_measured_at_once,
    leaving(meta_by_hand, gradients_off),
    leaving(meta_by_hand, lambda model, *given: model.first.eval()),
    leaving(meta_by_hand, lambda model, *given: model.shift.zero_()),
    leaving(meta_by_hand, lambda model, *given: hook_on(model.last.weight)),
    said(meta_on_a_copy, "first order only"),
    meta_last_step_recorded,
    meta_into_grad,
    meta_recorded,
    meta_all_names,
    meta_on_support,
    meta_in_eval,
    meta_unfrozen,
    meta_measured,
    meta_as_list := lambda *given: list(meta_by_hand(*given).values()),
    lambda *given: {"first.weight": None, "x": "y"},
    lambda *given: dict.fromkeys(meta_by_hand(*given), 1.0),
    lambda model, support, query, lr, steps: meta_by_hand(model, query, support, lr, steps),
    lambda model, support, query, lr, steps: {
        n: -lr * g for n, g in meta_by_hand(model, support, query, lr, steps).items()
    },
    meta_doubled := lambda *given: {name: 2 * gradient for name, gradient in meta_by_hand(*given).items()},
    meta_short := lambda *given: dict(list(meta_by_hand(*given).items())[1:]),
    meta_moving := leaving(meta_by_hand, lambda model, *given: model.last.weight.data.mul_(2)),
    meta_running := leaving(
        meta_by_hand, lambda model, support, *given: [model.forward(support[0]) for _ in range(20)]
    ),
    meta_in_training,
    *(clipping_results(meta_by_hand, 20), meta_clipped_within, meta_by_biases),
]

EQUIVALENT = {
    "meta_by_hand: ...), create_graph=True) -> ...), create_graph=True, retain_graph=True)": "Recording a pass keeps its graph as well.",
    "meta_by_hand: ...list(start.values())) -> ...list(start.values()), retain_graph=True)": "The graph ends with the function.",
    "meta_by_vectors: visited.append(values) | gradients = torch.func.grad(lambda now: loss_with(model, now, support))(values) -> (swapped)": "The two do not touch each other.",
}

GUARDS = {
    "Return its gradient: a dict from parameter names to tensors.": {
        "value": meta_doubled,
        "dict": meta_as_list,
        "missing": meta_short,
    },
    "they don't move, and they have no entry": {"extra": meta_all_names},
    "The model stays as it was.": {
        "moved": meta_moving,
        "switched": meta_unfrozen,
        "graded": meta_into_grad,
        "left": meta_in_eval,
    },
    "The gradients have no graph.": {"recorded": meta_recorded},
    "The model may run at most 3 · (steps + 1) times, each time with one set of parameters": {
        "runs": meta_running,
        "batched": meta_measured_at_once,
    },
}

STILL_RIGHT = {"keeps every graph"}


def meta_by_sums_of_rows(model, support, query, lr, steps):
    """The loss adds up the outputs of a row where it should take their mean."""
    values = {name: it for name, it in model.named_parameters() if it.requires_grad}

    def loss(current, inputs, targets):
        return (functional_call(model, current, (inputs,)) - targets).square().sum(1).mean()

    start = values
    for _ in range(steps):
        found = torch.autograd.grad(loss(values, *support), list(values.values()), create_graph=True)
        values = {name: it - lr * g for (name, it), g in zip(values.items(), found, strict=True)}
    found = torch.autograd.grad(loss(values, *query), list(start.values()))
    return dict(zip(start, found, strict=True))


WRONG.append(meta_by_sums_of_rows)
