"""Right and wrong answers to `retrain`."""

import copy

import torch
from torch.nn.functional import cross_entropy

from tests.answers.lesson_09_practical_checklist.side_effects import (
    MESSES,
    clearing_before_steps,
    guarded,
    leaving,
    slips,
)
from tests.answers.lesson_09_practical_checklist.training import step
from tests.answers.said import said


def retrain_with(parameters, place=lambda head: head, clear="before"):
    def retrain(model, head, batches):
        model.head, losses = place(head), []
        optimizer = torch.optim.SGD(parameters(model), lr=0.1)
        for inputs, targets in batches:
            loss = cross_entropy(model(inputs), targets)
            if clear == "before":
                optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if clear == "after":
                optimizer.zero_grad()
            losses.append(loss.item())
        return losses

    return retrain


def retrain_too_early(model, head, batches):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model.head = head
    return [step(optimizer, cross_entropy(model(inputs), targets)) for inputs, targets in batches]


def retrain_and_add(model, head, batches):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model.head = head
    optimizer.add_param_group({"params": list(head.parameters())})
    losses = []
    for inputs, targets in batches:
        model.zero_grad()
        loss = cross_entropy(model(inputs), targets)
        loss.backward()
        optimizer.step()
        losses.append(float(loss))
    return losses


def retrain_by_copying_numbers(model, head, batches):
    """Trains the new head with the wrong number of classes left in place: numbers right, object wrong."""
    losses = retrain_with(lambda model: model.parameters(), copy.deepcopy)(model, head, batches)
    head.load_state_dict(model.head.state_dict())
    return losses


def retrain_without_optimizer(model, head, batches):
    model.head, losses = head, []
    for inputs, targets in batches:
        loss = cross_entropy(model(inputs), targets)
        learning = [p for p in model.parameters() if p.requires_grad]
        gradients = torch.autograd.grad(loss, learning, materialize_grads=True)  # one may take no part
        with torch.no_grad():
            for p, gradient in zip(learning, gradients, strict=True):
                p -= 0.1 * gradient
        losses.append(loss.item())
    return losses


def retrain_and_clear_what_learns(model, head, batches):
    """Its optimizer holds what is frozen, too, and moves that along a gradient from before."""
    model.head, losses = head, []
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for inputs, targets in batches:
        for parameter in model.parameters():
            if parameter.requires_grad:
                parameter.grad = None
        loss = cross_entropy(model(inputs), targets)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


RIGHT = [retrain_with(lambda model: model.parameters()), retrain_and_add, retrain_without_optimizer]

MISCONCEIVED = {
    "nothing moves": clearing_before_steps(retrain_with(lambda model: model.parameters())),
    "an optimizer from before": retrain_too_early,
    "never cleared": retrain_with(lambda model: model.parameters(), clear="never"),
    "gradients from before": retrain_with(lambda model: model.parameters(), clear="after"),
    "only the head": retrain_with(lambda model: model.head.parameters()),
    "a copy of the head": retrain_with(lambda model: model.parameters(), copy.deepcopy),
}

SLIPS = slips(retrain_with(lambda model: model.parameters()))
del SLIPS["steps"], SLIPS["settings"]  # it is given no optimizer
LEFT = [leaving(retrain_with(lambda model: model.parameters()), mess) for mess in MESSES]


def retrain_with_short_gradients(model, head, batches):
    """Cuts long gradients off."""
    handles = [
        p.register_hook(lambda gradient: gradient.clamp(-1e3, 1e3))
        for p in (*model.parameters(), *head.parameters())
        if p.requires_grad
    ]
    losses = retrain_with(lambda model: model.parameters())(model, head, batches)
    for handle in handles:
        handle.remove()
    return losses


def retrain_in_a_wrap(model, head, batches):
    """Puts the head into another module, and trains nothing."""
    model.head = torch.nn.Sequential(head)
    return [cross_entropy(model(inputs), targets).item() for inputs, targets in batches]


def retrain_what_takes_part(model, head, batches):
    """Asks for gradients of all that learns, as if each parameter took part."""
    model.head, losses = head, []
    for inputs, targets in batches:
        loss = cross_entropy(model(inputs), targets)
        learning = [p for p in model.parameters() if p.requires_grad]
        with torch.no_grad():
            for p, gradient in zip(learning, torch.autograd.grad(loss, learning), strict=True):
                p -= 0.1 * gradient
        losses.append(loss.item())
    return losses


WRONG = [
    *SLIPS.values(),
    retrain_with_short_gradients,
    retrain_and_clear_what_learns,
    retrain_with(lambda model: model.parameters(), lambda head: head.requires_grad_(True)),
    retrain_to_tensors := lambda *given: [
        torch.tensor(loss) for loss in retrain_with(lambda model: model.parameters())(*given)
    ],
    said(retrain_with(lambda model: model.head.parameters(), clear="never"), "only the head", "never cleared"),
    lambda model, *given: retrain_with(lambda model: model.parameters())(model.train(), *given),
    retrain_by_copying_numbers,
    said(retrain_with(lambda model: model.body.parameters()), "an optimizer from before"),
    retrain_with(lambda model: model.parameters(), lambda head: head.eval()),
    said(lambda model, head, batches: [], "a copy of the head"),
    *LEFT,
    lambda model, head, batches: retrain_with(lambda model: model.requires_grad_(True).parameters())(
        model, head, batches
    ),
    *(
        said(retrain_with(lambda model: [it for it in model.parameters() if it.requires_grad], clear=clear), slip)
        for clear, slip in (("never", "never cleared"), ("after", "gradients from before"))
    ),
    said(retrain_in_a_wrap, "a copy of the head"),
    retrain_what_takes_part,
]

EQUIVALENT = {
    "retrain_with.retrain: optimizer.zero_grad() -> optimizer.zero_grad(set_to_none=False)": "Without momentum and decay zeros move no parameter, as None does.",
    "retrain_with.retrain: loss = cross_entropy(model(inputs), targets) | optimizer.zero_grad() -> (swapped)": "Neither line reads what the other one writes.",
    "retrain_with.retrain: optimizer.step() | losses.append(loss.item()) -> (swapped)": "Neither line reads what the other one writes.",
    "retrain_and_add: model.zero_grad() -> model.zero_grad(set_to_none=False)": "Without momentum and decay zeros move no parameter, as None does.",
    "retrain_and_add: model.zero_grad() | loss = cross_entropy(model(inputs), targets) -> (swapped)": "Neither line reads what the other one writes.",
    "retrain_and_add: optimizer.step() | losses.append(float(loss)) -> (swapped)": "Neither line reads what the other one writes.",
    "retrain_and_add: model.head = head | optimizer.add_param_group({'params': list(head.parameters())}) -> (swapped)": "Neither line reads what the other one writes.",
    "retrain_without_optimizer: loss = cross_entropy(model(inputs), targets) | learning = [p for p in model.parameters() if p.requires_grad] -> (swapped)": "Neither line reads what the other one writes.",
    "retrain_without_optimizer: ...terialize_grads=True) -> ...terialize_grads=True, retain_graph=True)": "The graph goes with its result. The task asks nothing of the memory between.",
    "retrain_without_optimizer: ...terialize_grads=True) -> ...terialize_grads=True, create_graph=True)": "The graph goes with its result. The task asks nothing of the memory between.",
    "retrain_without_optimizer: with torch.no_grad(): ... | losses.append(loss.item()) -> (swapped)": "Neither line reads what the other one writes.",
}

GUARDS = {
    **guarded(SLIPS, hooks=LEFT[4], flags=LEFT[3]),
    "Afterwards `model.head` is the very module that was given": {"head": retrain_by_copying_numbers},
    "both parts are trained": {"value": MISCONCEIVED["only the head"]},
    "each parameter of them that requires a gradient": {"value": MISCONCEIVED["an optimizer from before"]},
    "old gradients may stand in `.grad` beforehand": {"value": MISCONCEIVED["gradients from before"]},
    "Return the list of losses as Python floats.": {"floats": retrain_to_tensors},
}


def retrain_layer_by_layer(model, head, batches):
    """Moves twice what two layers share."""
    model.head, losses = head, []
    for inputs, targets in batches:
        model.zero_grad()
        loss = cross_entropy(model(inputs), targets)
        loss.backward()
        for layer in model.modules():
            for it in layer.parameters(recurse=False):
                if it.requires_grad and it.grad is not None:
                    it.data -= 0.1 * it.grad
        losses.append(loss.item())
    return losses


def retrain_in_the_models_mode(model, head, batches):
    return RIGHT[0](model, head.train(model.training), batches)


WRONG += [retrain_layer_by_layer, retrain_in_the_models_mode]
