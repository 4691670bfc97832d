"""Right and wrong answers to `fine_tune`."""

import copy

import torch
from torch import nn
from torch.nn.functional import cross_entropy

from tests.answers.lesson_09_practical_checklist.side_effects import (
    MESSES,
    clearing_before_steps,
    guarded,
    leaving,
    slips,
)
from tests.answers.lesson_09_practical_checklist.training import step
from tests.answers.near import near
from tests.answers.said import said


def tuned(evaluate=True, clear=True, record=False, everything=False, thaw=False, cut=False):
    def fine_tune(backbone, head, optimizer, batches):
        backbone.train(not evaluate)
        for p in backbone.parameters():
            p.requires_grad_(thaw)
        losses = []
        for inputs, targets in batches:
            with torch.set_grad_enabled(record):
                features = backbone(inputs)
            features = features.detach() if cut else features
            with torch.set_grad_enabled(not everything):
                loss = cross_entropy(head(features), targets)
            optimizer.zero_grad() if clear else head.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        return losses

    return fine_tune


def tuned_with_own_care(backbone, head, optimizer, batches):
    held = [group["params"] for group in optimizer.param_groups]
    try:
        return tuned_with_fewer_parameters(backbone, head, optimizer, batches)
    finally:
        for group, parameters in zip(optimizer.param_groups, held, strict=True):
            group["params"] = parameters


def tuned_with_fewer_parameters(backbone, head, optimizer, batches):
    """The caller's optimizer has lost the backbone afterwards."""
    mine = set(head.parameters())
    for group in optimizer.param_groups:
        group["params"] = [it for it in group["params"] if it in mine]
    backbone.eval()
    losses = []
    for inputs, targets in batches:
        with torch.inference_mode():
            features = backbone(inputs)
        loss = cross_entropy(head(features.clone()), targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(float(loss))
    return losses


def tuned_without_recording(backbone, head, optimizer, batches):
    for parameter in backbone.parameters():
        parameter.requires_grad_(False)
        parameter.grad = None
    backbone.eval()
    losses = []
    for inputs, targets in batches:
        head.zero_grad(set_to_none=True)
        loss = cross_entropy(head(backbone(inputs)), targets)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def tuned_with_another_optimizer(backbone, head, optimizer, batches):
    other = torch.optim.SGD(head.parameters(), lr=0.1, momentum=0.9, weight_decay=0.1)
    return tuned()(backbone, head, other, batches)


def tuned_in_modes(trains, backbone, head, optimizer, batches):
    for module in backbone.modules():
        module.train(trains(module))
    losses = []
    for inputs, targets in batches:
        with torch.no_grad():
            features = backbone(inputs)
        losses.append(step(optimizer, cross_entropy(head(features), targets)))
    return losses


def tuned_with_batch_norm_alone(*given):
    """Dropout stays on."""
    return tuned_in_modes(lambda module: not isinstance(module, nn.BatchNorm1d), *given)


def tuned_and_put_back(backbone, head, optimizer, batches):
    before = copy.deepcopy(backbone.state_dict())
    losses = tuned(evaluate=False)(backbone, head, optimizer, batches)
    backbone.load_state_dict(before)
    return losses


def tuned_zeros(backbone, head, optimizer, batches):
    """Gradients of zero: weight decay still moves the backbone."""
    backbone.eval()
    losses = []
    for inputs, targets in batches:
        with torch.no_grad():
            features = backbone(inputs)
        loss = cross_entropy(head(features), targets)
        optimizer.zero_grad(set_to_none=False)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def tuned_without_fresh_gradients(clear):
    def fine_tune(backbone, head, optimizer, batches):
        for parameter in backbone.parameters():
            parameter.grad = None
        backbone.eval()
        losses = []
        for inputs, targets in batches:
            with torch.no_grad():
                features = backbone(inputs)
            loss = cross_entropy(head(features), targets)
            loss.backward()
            optimizer.step()
            if clear == "after":
                optimizer.zero_grad()
            losses.append(loss.item())
        return losses

    return fine_tune


def tuned_layer_by_layer(backbone, head, optimizer, batches):
    """Goes through the backbone's layers itself, and records them."""
    backbone.eval()
    losses = []
    for inputs, targets in batches:
        features = inputs
        for layer in backbone:
            features = layer(features)
        losses.append(step(optimizer, cross_entropy(head(features.detach()), targets)))
    return losses


def tuned_past_the_near(backbone, head, optimizer, batches):
    """Freezes and clears the backbone's direct children."""
    for parameter in near(backbone).values():
        parameter.requires_grad_(False)
        parameter.grad = None
    backbone.eval()
    losses = []
    for inputs, targets in batches:
        with torch.no_grad():
            features = backbone(inputs)
        head.zero_grad()
        loss = cross_entropy(head(features), targets)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def tuned_past_the_frozen(backbone, head, optimizer, batches):
    """Clears what is to learn; what is frozen in the head keeps its gradient of before, and the optimizer has it."""
    backbone.requires_grad_(False).eval()
    for parameter in backbone.parameters():
        parameter.grad = None
    losses = []
    for inputs, targets in batches:
        loss = cross_entropy(head(backbone(inputs)), targets)
        for parameter in head.parameters():
            if parameter.requires_grad:
                parameter.grad = None
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


RIGHT = [tuned(), tuned_with_own_care, tuned_without_recording]

MISCONCEIVED = {
    "nothing moves": clearing_before_steps(tuned()),
    "old gradients": tuned(clear=False),
    "running statistics": tuned(evaluate=False),
    "recorded for nothing": tuned(record=True, thaw=True, cut=True),
    "everything under no_grad": tuned(everything=True),
    "never cleared": tuned_without_fresh_gradients(clear="never"),
    "gradients from before": tuned_without_fresh_gradients(clear="after"),
}

SLIPS = slips(tuned())
del SLIPS["modes"]  # it may leave the modules in any
LEFT = [leaving(tuned(), mess) for mess in (*MESSES[:3], *MESSES[4:])]


def tuned_at_rate_zero(backbone, head, optimizer, batches):
    """The caller's optimizer has no rate for the backbone afterwards."""
    mine = set(head.parameters())
    for group in optimizer.param_groups:
        if not mine & set(group["params"]):
            group["lr"] = 0.0
    return tuned()(backbone, head, optimizer, batches)


def tuned_at_rest(backbone, head, optimizer, batches):
    """Forgets the momentum of earlier steps."""
    optimizer.state.clear()
    return tuned()(backbone, head, optimizer, batches)


def tuned_on_features_of_a_shape(backbone, head, optimizer, batches):
    """Keeps features by the shape of the inputs that they were computed of."""
    known = {}

    def remembering(inputs):
        return known.setdefault(inputs.shape, features(inputs))

    backbone.eval()
    features, backbone = backbone, remembering
    losses = []
    for inputs, targets in batches:
        with torch.no_grad():
            made = backbone(inputs)
        loss = cross_entropy(head(made), targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def tuned_with_dropout_alone_evaluating(*given):
    """Batch norm stays on."""
    return tuned_in_modes(lambda module: isinstance(module, nn.BatchNorm1d), *given)


def tuned_past_what_was_frozen(backbone, head, optimizer, batches):
    """Clears what it freezes in the backbone: what was frozen before keeps its gradient, and moves along it."""
    for parameter in backbone.parameters():
        if parameter.requires_grad:
            parameter.grad = None
    return tuned(clear=False)(backbone, head, optimizer, batches)


def tuned_without_momentum(backbone, head, optimizer, batches):
    """Zeros for the backbone's gradients, and no momentum and decay for the groups that it is in, for the time."""
    backbone.eval()
    theirs = set(backbone.parameters())
    groups = [group for group in optimizer.param_groups if theirs & set(group["params"])]
    before = [(group["momentum"], group["weight_decay"]) for group in groups]
    for group in groups:
        group["momentum"] = group["weight_decay"] = 0.0
    losses = tuned_zeros(backbone, head, optimizer, batches)
    for group, (momentum, decay) in zip(groups, before, strict=True):
        group["momentum"], group["weight_decay"] = momentum, decay
    return losses


WRONG = [
    said(tuned_past_the_near, "old gradients"),
    tuned_on_features_of_a_shape,
    tuned_at_rate_zero,
    tuned_at_rest,
    *SLIPS.values(),
    tuned_to_tensors := lambda *given: [torch.tensor(loss) for loss in tuned()(*given)],
    tuned_and_moved := leaving(tuned(), lambda model: next(model.parameters()).data.mul_(2)),
    tuned_and_counted := leaving(tuned(), lambda model: [it.add_(1) for it in model.buffers()]),
    tuned_head_frozen := lambda backbone, head, *given: leaving(
        lambda model, *more: tuned()(backbone, model, *more), MESSES[3]
    )(head, *given),
    lambda backbone, head, *given: tuned()(backbone, head.requires_grad_(), *given),
    said(tuned_and_put_back, "a part in training mode"),
    said(tuned_zeros, "old gradients"),
    tuned_with_fewer_parameters,
    tuned_with_another_optimizer,
    said(tuned_with_batch_norm_alone, "a part in training mode"),
    *LEFT,
    said(tuned(evaluate=False, clear=False), "old gradients", "running statistics"),
    said(tuned(record=True, thaw=True), "old gradients", "recorded for nothing"),
    said(tuned_layer_by_layer, "recorded for nothing"),
    said(lambda backbone, head, optimizer, batches: [], "nothing moves"),
    tuned_past_the_frozen,
    said(tuned_with_dropout_alone_evaluating, "running statistics"),
    tuned_and_started_anew := leaving(
        tuned(), lambda model: [it.reset_running_stats() for it in model.modules() if isinstance(it, nn.BatchNorm1d)]
    ),
    tuned_past_what_was_frozen,
    tuned_without_momentum,
]

EQUIVALENT = {
    "tuned_with_fewer_parameters: [it for it in group['params'] if it in mine] -> [it for it in group['params'] if True]": "An optimizer that holds the backbone, too, clears it and finds no gradient there.",
    "tuned_with_fewer_parameters: for group in optimizer.param_groups: ... -> (dropped)": "An optimizer that holds the backbone, too, clears it and finds no gradient there.",
    "tuned_with_fewer_parameters: for group in optimizer.param_groups: ... | backbone.eval() -> (swapped)": "Neither line reads what the other one writes.",
    "tuned_with_fewer_parameters: group['params'] = [it for it in group['params'] if it in mine] -> (dropped)": "An optimizer that holds the backbone, too, clears it and finds no gradient there.",
    "tuned.fine_tune: for p in backbone.parameters(): ... -> (dropped)": '"whether its parameters require gradients afterwards, is up to you", and nothing is recorded under no_grad.',
    "tuned.fine_tune: p.requires_grad_(False) -> (dropped)": '"whether its parameters require gradients afterwards, is up to you", and nothing is recorded under no_grad.',
    "tuned.fine_tune: p.requires_grad_(False) -> p": '"whether its parameters require gradients afterwards, is up to you", and nothing is recorded under no_grad.',
    "tuned.fine_tune: p.requires_grad_(False) -> p.requires_grad_(True)": '"whether its parameters require gradients afterwards, is up to you", and nothing is recorded under no_grad.',
    "tuned.fine_tune: with torch.set_grad_enabled(False): ... -> (its body alone)": "The backbone requires no gradient then, so nothing is recorded; recording is on where it begins.",
    "tuned.fine_tune: torch.set_grad_enabled(False) -> torch.set_grad_enabled(True)": "The backbone requires no gradient then, so nothing is recorded; recording is on where it begins.",
    "tuned.fine_tune: features = features -> (dropped)": "The assignment does nothing.",
    "tuned.fine_tune: with torch.set_grad_enabled(True): ... -> (its body alone)": "The backbone requires no gradient then, so nothing is recorded; recording is on where it begins.",
    "tuned.fine_tune: features = features | with torch.set_grad_enabled(True): ... -> (swapped)": "The backbone requires no gradient then, so nothing is recorded; recording is on where it begins.",
    "tuned.fine_tune: with torch.set_grad_enabled(True): ... | optimizer.zero_grad() -> (swapped)": "The backbone requires no gradient then, so nothing is recorded; recording is on where it begins.",
    "tuned.fine_tune: optimizer.step() | losses.append(loss.item()) -> (swapped)": "Neither line reads what the other one writes.",
    "tuned.fine_tune: backbone.train(False) | for p in backbone.parameters(): ... -> (swapped)": '"whether its parameters require gradients afterwards, is up to you", and nothing is recorded under no_grad.',
    "tuned_with_fewer_parameters: torch.inference_mode -> torch.no_grad": "Nothing is recorded under either.",
    "tuned_with_fewer_parameters: optimizer.zero_grad() -> optimizer.zero_grad(set_to_none=False)": "What gets no gradient in a pass has neither momentum nor decay, so zeros move it as little as None.",
    "tuned_with_fewer_parameters: loss = cross_entropy(head(features.clone()), targets) | optimizer.zero_grad() -> (swapped)": "Neither line reads what the other one writes.",
    "tuned_with_fewer_parameters: optimizer.step() | losses.append(float(loss)) -> (swapped)": "Neither line reads what the other one writes.",
    "tuned_without_recording: parameter.requires_grad_(False) | parameter.grad = None -> (swapped)": "Neither line reads what the other one writes.",
    "tuned_without_recording: head.zero_grad(set_to_none=True) -> head.zero_grad()": "What gets no gradient in a pass has neither momentum nor decay, so zeros move it as little as None.",
    "tuned_without_recording: head.zero_grad(set_to_none=True) -> head.zero_grad(set_to_none=False)": "What gets no gradient in a pass has neither momentum nor decay, so zeros move it as little as None.",
    "tuned_without_recording: head.zero_grad(set_to_none=True) | loss = cross_entropy(head(backbone(inputs)), targets) -> (swapped)": "Neither line reads what the other one writes.",
    "tuned_without_recording: optimizer.step() | losses.append(loss.item()) -> (swapped)": "Neither line reads what the other one writes.",
    "tuned_without_recording: for parameter in backbone.parameters(): ... | backbone.eval() -> (swapped)": "Neither line reads what the other one writes.",
}

GUARDS = {
    **guarded(SLIPS, hooks=LEFT[3], flags=tuned_head_frozen),
    "returns the list of losses as Python floats": {"floats": tuned_to_tensors},
    "Afterwards all numbers of the backbone, parameters and buffers, are what they were, to the bit.": {
        "backbone": tuned_and_moved,
        "buffers": tuned_and_counted,
    },
    "The features are those of evaluation mode": {"value": tuned_with_batch_norm_alone},
    "no graph is recorded inside the backbone": {"recorded": MISCONCEIVED["recorded for nothing"]},
    "After each step the head is where gradient descent with fresh gradients puts it.": {
        "value": MISCONCEIVED["never cleared"]
    },
}


def tuned_and_moved_back(backbone, head, optimizer, batches):
    """The optimizer moves the backbone along old gradients; in the end it has its numbers again."""
    before = copy.deepcopy(backbone.state_dict())
    losses = tuned(clear=False)(backbone, head, optimizer, batches)
    backbone.load_state_dict(before)
    return losses


MISCONCEIVED |= {
    "a part in training mode": tuned_with_batch_norm_alone,
    "put back too late": tuned_and_moved_back,
}


def tuned_over_zeros_and_moved_back(backbone, head, optimizer, batches):
    before = copy.deepcopy(backbone.state_dict())
    losses = tuned_zeros(backbone, head, optimizer, batches)
    backbone.load_state_dict(before)
    return losses


WRONG.append(said(tuned_over_zeros_and_moved_back, "put back too late"))
