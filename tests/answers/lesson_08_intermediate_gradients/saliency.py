"""Right and wrong answers to `saliency`."""

import copy
from functools import partial

import torch
from torch import nn

from tests.answers.leaving import leaving
from tests.answers.lesson_08_intermediate_gradients.side_effects import switch_on
from tests.answers.said import said
from tests.answers.twice import around, frozen_on_a_walk, gradients_on_a_walk, gradients_where_live, modes_on_a_walk


def own_score(scores, labels):
    return scores[torch.arange(len(labels)), labels].sum()


def strongest_of(gradient):
    return gradient.abs().amax(1)


def maps_of(model, images, labels, score=own_score, strongest=strongest_of, mode=False):
    modes = {module: module.training for module in model.modules()}
    for module, training in modes.items():
        module.training = training and mode
    with torch.enable_grad():
        pixels = images.clone().requires_grad_()
        (gradient,) = torch.autograd.grad(score(model(pixels), labels), pixels)
    for module, training in modes.items():
        module.training = training
    return strongest(gradient)


def saliency_by_seed(model, images, labels):
    modes = [(module, module.training) for module in model.modules()]
    model.train(False)
    pixels = images.clone().requires_grad_()
    with torch.enable_grad():
        scores = model(pixels)
    scores.backward(nn.functional.one_hot(labels, 4), inputs=[pixels])
    for module, training in modes:
        module.training = training
    return pixels.grad.abs().max(dim=1).values


def saliency_on_a_copy(model, images, labels):
    model = copy.deepcopy(model).eval()
    with torch.enable_grad():
        pixels = images.clone().requires_grad_()
        model(pixels).gather(1, labels[:, None]).sum().backward()
    return pixels.grad.abs().amax(1)


def saliency_by_func(model, images, labels):
    modes = {module: module.training for module in model.modules()}
    model.eval()
    try:
        return torch.func.grad(lambda x: model(x)[range(len(labels)), labels].sum())(images).detach().abs().amax(1)
    finally:
        for module, training in modes.items():
            module.training = training


def saliency_with_norms_in_evaluation(model, images, labels):
    """Puts batch norms into evaluation mode, and no other module."""
    norms = [module for module in model.modules() if isinstance(module, nn.BatchNorm2d) and module.training]
    for norm in norms:
        norm.eval()
    result = maps_of(model, images, labels, mode=True)
    for norm in norms:
        norm.train()
    return result


def saliency_and_gradients(model, images, labels):
    """Runs backward, which reaches the parameters."""
    modes = {module: module.training for module in model.modules()}
    model.eval()
    with torch.enable_grad():
        pixels = images.clone().requires_grad_()
        model(pixels)[torch.arange(len(labels)), labels].sum().backward()
    for module, training in modes.items():
        module.training = training
    return pixels.grad.abs().amax(1)


def saliency_and_zero_grad(model, images, labels):
    result = saliency_and_gradients(model, images, labels)
    model.zero_grad()
    return result


def saliency_and_train(model, images, labels):
    result = maps_of(model, images, labels)
    model.train()
    return result


def saliency_and_eval(model, images, labels):
    result = maps_of(model, images, labels)
    model.eval()
    return result


def saliency_freezing(model, images, labels):
    model.requires_grad_(False)
    return saliency_and_gradients(model, images, labels)


def saliency_on_the_images(model, images, labels):
    modes = {module: module.training for module in model.modules()}
    model.eval()
    with torch.enable_grad():
        model(images.requires_grad_())[torch.arange(len(labels)), labels].sum().backward(inputs=[images])
    for module, training in modes.items():
        module.training = training
    return images.grad.abs().amax(1)


def saliency_one_by_one(model, images, labels):
    return torch.cat([maps_of(model, image[None], label[None]) for image, label in zip(images, labels, strict=True)])


def saliency_by_passes(model, images, labels):
    """One run, and a pass for each image."""
    modes = {module: module.training for module in model.modules()}
    model.eval()
    with torch.enable_grad():
        pixels = images.clone().requires_grad_()
        own = model(pixels)[torch.arange(len(labels)), labels]
        last = len(labels) - 1
        rows = [torch.autograd.grad(score, pixels, retain_graph=n < last)[0][n] for n, score in enumerate(own)]
    for module, training in modes.items():
        module.training = training
    return torch.stack(rows).abs().amax(1)


def saliency_after_a_look(model, images, labels):
    """Runs a copy to see how many classes there are."""
    with torch.no_grad():
        classes = copy.deepcopy(model).eval()(images).shape[1]
    return maps_of(model, images, labels.clamp(0, classes - 1))


RIGHT = [maps_of, saliency_by_seed, saliency_on_a_copy, saliency_by_func]


def saliency_without_switching(model, images, labels):
    twin = copy.deepcopy(model).eval()
    pixels = images.clone().requires_grad_()
    (gradient,) = torch.autograd.grad(own_score(twin(pixels), labels), pixels)
    return strongest_of(gradient)


MISCONCEIVED = {
    "the loss in place of the score": partial(maps_of, score=nn.functional.cross_entropy),
    "in training mode": partial(maps_of, mode=True),
    "with a sign": partial(maps_of, strongest=lambda gradient: gradient.amax(1)),
    "gradients stay off": saliency_without_switching,
    "the highest score": partial(maps_of, score=lambda scores, labels: scores.amax(1).sum()),
    "all scores": partial(maps_of, score=lambda scores, labels: scores.sum()),
    "the probability in place of the score": partial(
        maps_of, score=lambda scores, labels: own_score(scores.softmax(1), labels)
    ),
    "channels together": partial(maps_of, strongest=lambda gradient: gradient.abs().sum(1)),
    "parameters got gradients": saliency_and_gradients,
}


def saliency_keeping_the_graph(model, images, labels):
    modes = {module: module.training for module in model.modules()}
    model.eval()
    with torch.enable_grad():
        pixels = images.clone().requires_grad_()
        (gradient,) = torch.autograd.grad(own_score(model(pixels), labels), pixels, retain_graph=True)
    for module, training in modes.items():
        module.training = training
    return strongest_of(gradient)


ONE_SLIP = {
    "graph": lambda model, images, labels: maps_of(model, images, labels).requires_grad_(),
    "kept": saliency_keeping_the_graph,
    "labels": lambda model, images, labels: (maps_of(model, images, labels), labels.zero_())[0],
    "mode": leaving(maps_of, switch_on),
}


def saliency_of_known_kinds(model, images, labels):
    """Switches the layers that one knows; a module may ask for its own mode."""
    kinds = (nn.modules.batchnorm._BatchNorm, nn.modules.dropout._DropoutNd)
    modes = {module: module.training for module in model.modules() if isinstance(module, kinds)}
    for module in modes:
        module.training = False
    with torch.enable_grad():
        pixels = images.clone().requires_grad_()
        (gradient,) = torch.autograd.grad(own_score(model(pixels), labels).sum(), pixels)
    for module, training in modes.items():
        module.training = training
    return gradient.abs().amax(1)


def saliency_where_the_whole_trains(model, images, labels):
    """Asks the model itself for its mode, and not its parts."""
    return maps_of(model, images, labels, mode=not model.training)


def saliency_with_one_flag(model, images, labels):
    """Freezes everything, and gives back to all what the first parameter had."""
    flag = next(model.parameters()).requires_grad
    model.requires_grad_(False)
    result = maps_of(model, images, labels)
    model.requires_grad_(flag)
    return result


def saliency_with_children_evaluating(model, images, labels):
    """Evaluates the model and its direct children, and leaves alone what is inside them."""
    modes = {module: module.training for module in (model, *model.children())}
    for module in modes:
        module.training = False
    maps = maps_of(model, images, labels, mode=True)
    for module, training in modes.items():
        module.training = training
    return maps


def saliency_with_modes_put_back(put_back):
    """Evaluates everything, and puts modes back in a wrong way."""

    def saliency(model, images, labels):
        modes = {module: module.training for module in model.modules()}
        model.eval()
        maps = maps_of(model, images, labels)
        put_back(model, modes)
        return maps

    return saliency


def modes_by_train(model, modes):
    for module, training in modes.items():
        module.train(training)


def modes_of_children(model, modes):
    for module in (model, *model.children()):
        module.training = modes[module]


def modes_and_counts(model, modes):
    """Puts modes back, and begins to count anew."""
    for module, training in modes.items():
        module.training = training
        if hasattr(module, "num_batches_tracked"):
            module.num_batches_tracked.zero_()


def saliency_without_a_pass(model, images, labels):
    with torch.enable_grad():
        model.eval()(images.clone().requires_grad_())
    return torch.zeros_like(images[:, 0])


WRONG = [
    said(saliency_with_children_evaluating, "in training mode"),
    *map(saliency_with_modes_put_back, (modes_by_train, modes_of_children, modes_and_counts)),
    partial(maps_of, strongest=lambda gradient: gradient[:, [0, 1, -1]].abs().amax(1)),
    saliency_of_known_kinds,
    said(saliency_where_the_whole_trains, "in training mode"),
    saliency_with_one_flag,
    partial(maps_of, strongest=lambda gradient: strongest_of(gradient).clamp(max=1e3)),
    *ONE_SLIP.values(),
    said(saliency_and_zero_grad, "parameters got gradients"),
    saliency_and_train,
    saliency_and_eval,
    saliency_freezing,
    saliency_on_the_images,
    saliency_one_by_one,
    saliency_by_passes,
    saliency_with_norms_in_evaluation,
    said(partial(maps_of, score=lambda scores, labels: scores.max(1).values.sum()), "the highest score"),
    said(partial(maps_of, score=lambda scores, labels: scores.mean(0).sum() * len(labels)), "all scores"),
    partial(maps_of, score=lambda scores, labels: scores[:, labels].sum()),
    said(
        partial(maps_of, score=lambda scores, labels: scores.softmax(1)[range(len(labels)), labels].sum()),
        "the probability in place of the score",
    ),
    said(partial(maps_of, strongest=lambda gradient: gradient.norm(dim=1)), "channels together"),
    partial(maps_of, strongest=lambda gradient: gradient),
    lambda *given: maps_of(*given).squeeze(),
    saliency_without_a_pass,
    said(partial(maps_of, strongest=lambda gradient: gradient.amax(1).abs()), "with a sign"),
    saliency_after_a_look,
    around(maps_of, lambda model: modes_on_a_walk(model, False)),
    around(maps_of, frozen_on_a_walk),
    said(around(maps_of, gradients_on_a_walk), "parameters got gradients"),
    said(around(maps_of, gradients_where_live), "parameters got gradients"),
]

EQUIVALENT = {
    "strongest_of: gradient.abs() -> gradient.abs_()": "The gradient is the function's own, so writing into it hurts nobody.",
    "maps_of: training and mode -> False": "`mode` is False in the right answer, so nothing trains in either.",
    "maps_of: training and mode -> not training and mode": "`mode` is False in the right answer, so nothing trains in either.",
    "maps_of: training and mode -> True and mode": "`mode` is False in the right answer, so nothing trains in either.",
    "maps_of: images.clone() -> images.detach()": '"The images require no gradient": a leaf that shares their memory is read only, and gets its own .grad.',
    "saliency_by_seed: images.clone() -> images.detach()": '"The images require no gradient": a leaf that shares their memory is read only, and gets its own .grad.',
    "saliency_by_seed: pixels.grad.abs() -> pixels.grad.abs_()": "The gradient is the function's own, so writing into it hurts nobody.",
    "saliency_by_seed: model.train(False) | pixels = images.clone().requires_grad_() -> (swapped)": "The two do not read what the other writes: the pass needs no modes any more, and pixels are made without the model.",
    "saliency_by_seed: scores.backward(nn.functional.one_hot(labels, 4), inputs=[pixels]) | for module, training in modes: ... -> (swapped)": "The two do not read what the other writes: the pass needs no modes any more, and pixels are made without the model.",
    "saliency_on_a_copy: images.clone() -> images.detach()": '"The images require no gradient": a leaf that shares their memory is read only, and gets its own .grad.',
    "saliency_on_a_copy: model(pixels).gather(1, labels[:, None]) -> model(pixels).gather(-1, labels[:, None])": "The scores have two dimensions: dim 1 is the last one.",
    "saliency_on_a_copy: pixels.grad.abs() -> pixels.grad.abs_()": "The gradient is the function's own, so writing into it hurts nobody.",
}

GUARDS = {
    "the gradient of that score with respect to the image": {"value": MISCONCEIVED["the loss in place of the score"]},
    "without a graph": {"graph": ONE_SLIP["graph"]},
    "Run the model, or a copy of it, once": {"runs": saliency_after_a_look},
    "one backward pass that frees what it used": {"kept": ONE_SLIP["kept"], "passes": saliency_by_passes},
    "Afterwards everything is as before: each module's mode": {
        "model": saliency_and_train,
        "labels": ONE_SLIP["labels"],
    },
    "the images": {"images": saliency_on_the_images},
    "The caller may have switched gradients off, and they stay off.": {"mode": ONE_SLIP["mode"]},
}
