"""Right and wrong answers to `clip_each_sample`."""

import copy

import torch
from torch import nn
from torch.func import functional_call, grad, vmap
from torch.nn.functional import cross_entropy
from torch.nn.utils import clip_grad_norm_

from tests.answers.near import near
from tests.answers.said import said


def samples_by_vmap(model, images, targets):
    parameters = {name: p.detach() for name, p in model.named_parameters()}

    def loss(parameters, image, target):
        return cross_entropy(functional_call(model, parameters, (image[None],)), target[None])

    return vmap(grad(loss), in_dims=(None, 0, 0))(parameters, images, targets)


def samples_by_batched_grad(model, images, targets):
    """One graph, and one pass for all samples at a time: the seeds are the rows of the identity."""
    losses = cross_entropy(model(images), targets, reduction="none")
    seeds = torch.eye(len(images), dtype=losses.dtype)
    parts = torch.autograd.grad(losses, list(model.parameters()), seeds, allow_unused=True, is_grads_batched=True)
    return {
        name: torch.zeros(len(images), *p.shape, dtype=p.dtype) if part is None else part
        for (name, p), part in zip(model.named_parameters(), parts, strict=True)
    }


def samples_by_jacobian(model, images, targets):
    from torch.func import jacrev

    def losses(parameters):
        return cross_entropy(functional_call(model, parameters, (images,)), targets, reduction="none")

    return jacrev(losses)({name: p.detach() for name, p in model.named_parameters()})


def samples_by_loop(model, images, targets):
    rows = []
    for image, target in zip(images, targets, strict=True):
        loss = cross_entropy(model(image[None]), target[None])
        rows.append(torch.autograd.grad(loss, list(model.parameters()), materialize_grads=True))
    parts = zip(*rows, strict=True)
    return {name: torch.stack(part) for (name, _), part in zip(model.named_parameters(), parts, strict=True)}


def samples_by_retained_passes(model, images, targets):
    losses = cross_entropy(model(images), targets, reduction="none")
    rows = [
        torch.autograd.grad(loss, list(model.parameters()), materialize_grads=True, retain_graph=True)
        for loss in losses
    ]
    parts = zip(*rows, strict=True)
    return {name: torch.stack(part) for (name, _), part in zip(model.named_parameters(), parts, strict=True)}


def clip_samples(each, max_norm):
    norms = sum(part.reshape(len(part), -1).pow(2).sum(1) for part in each.values()).sqrt()
    factors = (max_norm / norms).clamp(max=1.0)
    return {name: torch.tensordot(factors, part, dims=1) / len(norms) for name, part in each.items()}


def clip_samples_row_by_row(each, max_norm):
    """With clip_grad_norm_ on stand-ins, one sample after the other; the model is not run again."""
    count = len(next(iter(each.values())))
    sums = {name: torch.zeros_like(part[0]) for name, part in each.items()}
    for number in range(count):
        rows = [nn.Parameter(torch.zeros_like(part[number])) for part in each.values()]
        for row, part in zip(rows, each.values(), strict=True):
            row.grad = part[number].detach().clone()
        clip_grad_norm_(rows, max_norm)
        for name, row in zip(sums, rows, strict=True):
            sums[name] += row.grad / count
    return sums


def clip_parts(each, max_norm):
    """Each parameter by itself."""
    return {name: clip_samples({name: part}, max_norm)[name] for name, part in each.items()}


def clip_mean(each, max_norm):
    mean = {name: part.mean(0)[None] for name, part in each.items()}
    return clip_samples(mean, max_norm)


def clip_always(each, max_norm):
    norms = sum(part.reshape(len(part), -1).pow(2).sum(1) for part in each.values()).sqrt()
    return {
        name: torch.tensordot(max_norm / norms.clamp(min=1e-30), part, dims=1) / len(norms)
        for name, part in each.items()
    }


def clip_by_a_quotient(each, max_norm):
    """0 / 0 for a sample that teaches nothing."""
    norms = sum(part.reshape(len(part), -1).pow(2).sum(1) for part in each.values()).sqrt()
    factors = norms.clamp(max=max_norm) / norms
    return {name: torch.tensordot(factors, part, dims=1) / len(norms) for name, part in each.items()}


def clip_numbers(each, max_norm):
    return {name: part.clamp(-max_norm, max_norm).mean(0) for name, part in each.items()}


def sampler(find=samples_by_vmap, clip=clip_samples, change=lambda name, part, count: part, before=None):
    def clip_each_sample(model, images, targets, max_norm):
        if before:
            before(model, images, targets)
        result = clip(find(model, images, targets), max_norm)
        return {name: change(name, part, len(images)) for name, part in result.items()}

    return clip_each_sample


def samples_with_graph(model, images, targets):
    losses = cross_entropy(model(images), targets, reduction="none")
    seeds = torch.eye(len(images), dtype=losses.dtype)
    parameters = list(model.parameters())
    parts = torch.autograd.grad(losses, parameters, seeds, allow_unused=True, is_grads_batched=True, create_graph=True)
    return {
        name: torch.zeros(len(images), *p.shape, dtype=p.dtype) if part is None else part
        for (name, p), part in zip(model.named_parameters(), parts, strict=True)
    }


def samples_by_backward(model, images, targets):
    """One image at a time through backward and .grad."""
    rows = []
    for image, target in zip(images, targets, strict=True):
        model.zero_grad()
        cross_entropy(model(image[None]), target[None]).backward()
        rows.append([torch.zeros_like(p) if p.grad is None else p.grad.clone() for p in model.parameters()])
    parts = zip(*rows, strict=True)
    return {name: torch.stack(part) for (name, _), part in zip(model.named_parameters(), parts, strict=True)}


def samples_by_copy(model, images, targets):
    """On a copy of the model: nothing of the given one is touched, but each image runs by itself."""
    return samples_by_loop(copy.deepcopy(model), images, targets)


def samples_by_new_model(model, images, targets):
    """On a model made anew, that nobody watches."""
    new = type(model)().to(images.dtype)
    new.load_state_dict(model.state_dict())
    return samples_by_loop(new, images, targets)


def samples_by_hooks(model, images, targets):
    """Without functorch: one pass with expanded copies of the parameters, one for each sample."""
    names = [name for name, _ in model.named_parameters()]
    wide = [p.detach().expand(len(images), *p.shape).clone().requires_grad_() for p in model.parameters()]

    def run(image, *parameters):
        return functional_call(model, dict(zip(names, parameters, strict=True)), (image[None],))[0]

    scores = vmap(run)(images, *wide)
    parts = torch.autograd.grad(cross_entropy(scores, targets, reduction="sum"), wide, materialize_grads=True)
    return dict(zip(names, parts, strict=True))


def samples_without_unused(model, images, targets):
    """Has no entry for a parameter that gets no gradient."""
    losses = cross_entropy(model(images), targets, reduction="none")
    seeds = torch.eye(len(images), dtype=losses.dtype)
    parts = torch.autograd.grad(losses, list(model.parameters()), seeds, allow_unused=True, is_grads_batched=True)
    names = [name for name, _ in model.named_parameters()]
    return {name: part for name, part in zip(names, parts, strict=True) if part is not None}


def samples_near(model, images, targets):
    """Gradients for the model's own parameters and those of its direct children."""

    def loss(parameters, image, target):
        return cross_entropy(functional_call(model, parameters, (image[None],)), target[None])

    return vmap(grad(loss), in_dims=(None, 0, 0))(near(model), images, targets)


def clip_with_all_images_each_time(model, images, targets, max_norm):
    """Runs all images for each sample, and takes one loss of them."""
    parameters = dict(model.named_parameters())
    rows = []
    for number in range(len(images)):
        loss = cross_entropy(model(images), targets, reduction="none")[number]
        rows.append(torch.autograd.grad(loss, list(parameters.values()), materialize_grads=True))
    each = {name: torch.stack(parts) for name, parts in zip(parameters, zip(*rows, strict=True), strict=True)}
    return clip_samples(each, max_norm)


RIGHT = [
    sampler(),
    sampler(samples_by_batched_grad, clip_samples_row_by_row),
    sampler(samples_by_jacobian),
    sampler(samples_by_hooks),
]

PASS_FOR_EACH = sampler(samples_by_retained_passes)

MISCONCEIVED = {
    "one after the other": sampler(samples_by_loop),
    "a pass for each sample": PASS_FOR_EACH,
    "the mean clipped": sampler(clip=clip_mean),
    "each parameter by itself": sampler(clip=clip_parts),
    "short ones stretched": sampler(clip=clip_always),
    "a sum, not a mean": sampler(change=lambda name, part, count: part * count),
    "written to .grad": sampler(before=lambda model, images, targets: model.zero_grad()),
}

IN_SINGLE_PRECISION = sampler(change=lambda name, part, count: part.float())
WITH_A_GRAPH = sampler(samples_with_graph)
SEEDED = sampler(before=lambda model, images, targets: torch.manual_seed(0))
WITHOUT_UNUSED = sampler(samples_without_unused)
RUN_TWICE = sampler(before=lambda model, images, targets: model(images))
CLIPPED_BY_A_QUOTIENT = sampler(clip=clip_by_a_quotient)


def clip_and_clear_targets(model, images, targets, max_norm):
    result = sampler()(model, images, targets, max_norm)
    targets.zero_()
    return result


def clip_under_every_name(model, images, targets, max_norm):
    """Gives the gradient of a parameter with two names twice."""
    by_name = RIGHT[0](model, images, targets, max_norm)
    by_id = {id(p): by_name[name] for name, p in model.named_parameters()}
    return {name: by_id[id(p)] for name, p in model.named_parameters(remove_duplicate=False)}


def samples_without_a_batch(model, images, targets):
    """Gives the model an image without the batch's dimension."""
    parameters = {name: p.detach() for name, p in model.named_parameters()}

    def loss(parameters, image, target):
        return cross_entropy(functional_call(model, parameters, (image,)).reshape(-1), target)

    return vmap(grad(loss), in_dims=(None, 0, 0))(parameters, images, targets)


MISCONCEIVED["zero divided by zero"] = CLIPPED_BY_A_QUOTIENT

WRONG = [
    sampler(samples_near),
    clip_under_every_name,
    lambda model, *given: RIGHT[0](model, *given) | {name: 0 * b for name, b in model.named_buffers()},
    lambda *given: {name: part for name, part in RIGHT[0](*given).items() if "." in name},  # those of layers only
    IN_SINGLE_PRECISION,
    clip_and_clear_targets,
    SEEDED,
    WITH_A_GRAPH,
    RUN_TWICE,
    said(CLIPPED_BY_A_QUOTIENT, "zero divided by zero"),
    sampler(clip=lambda each, max_norm: clip_samples(each, min(max_norm, 1e3))),
    sampler(clip=lambda each, max_norm: clip_samples(each, max(max_norm, 1.0))),
    sampler(change=lambda name, part, count: part * count / max(count, 2)),
    said(sampler(samples_by_backward), "one after the other"),
    said(sampler(samples_by_copy), "one after the other"),
    said(sampler(samples_by_new_model), "one after the other"),
    said(clip_with_all_images_each_time, "one after the other"),
    sampler(clip=clip_numbers),
    sampler(clip=lambda each, max_norm: {name: part.mean(0) for name, part in each.items()}),
    sampler(clip=lambda each, max_norm: each),
    sampler(change=lambda name, part, count: part.abs()),
    sampler(before=lambda model, images, targets: model.eval()),
    sampler(before=lambda model, images, targets: images.mul_(1.0).add_(0.1)),
    lambda model, images, targets, max_norm: list(sampler()(model, images, targets, max_norm).values()),
    lambda model, images, targets, max_norm: dict.fromkeys(dict(model.named_parameters()), 0.0),
    sampler(samples_without_a_batch),
]

EQUIVALENT = {
    "clip_samples: part.reshape(len(part), -1).pow(2).sum(1) -> part.reshape(len(part), -1).pow(2).sum(-1)": "It has two dimensions then: dim 1 is the last one.",
    "sampler.clip_each_sample: return {name: change(name, part, len(images)) for name, part in result.items()} -> return result": "In the right answers `change` gives back what it gets.",
    "samples_by_batched_grad: torch.eye(len(images), dtype=losses.dtype) -> torch.eye(len(images))": "The seeds are ones and zeros, and PyTorch takes them in single precision, too.",
    "samples_by_batched_grad: ...s_grads_batched=True) -> ...s_grads_batched=True, retain_graph=True)": "Whether the graph could be used again is not asked for; it goes when the function ends, and the results are detached.",
    "samples_by_batched_grad: ...s_grads_batched=True) -> ...s_grads_batched=True, create_graph=True)": "Whether the graph could be used again is not asked for; it goes when the function ends, and the results are detached.",
    "clip_samples_row_by_row: torch.zeros_like -> torch.ones_like #2": "Only the shape is used, or it is the same for all samples: the stand-in's own numbers are never read.",
    "clip_samples_row_by_row: part[number].detach().clone() -> part[number].detach()": "Copies that are never written, or are the function's own: sharing memory, or a graph behind them that is not asked, changes no result.",
    "clip_samples_row_by_row: part[number].detach().clone -> part[number].detach().detach": "Copies that are never written, or are the function's own: sharing memory, or a graph behind them that is not asked, changes no result.",
    "clip_samples_row_by_row: part[number].detach() -> part[number]": "Copies that are never written, or are the function's own: sharing memory, or a graph behind them that is not asked, changes no result.",
    "clip_samples_row_by_row: part[number].detach -> part[number].clone": "Copies that are never written, or are the function's own: sharing memory, or a graph behind them that is not asked, changes no result.",
    "clip_samples_row_by_row: count = len(next(iter(each.values()))) | sums = {name: torch.zeros_like(part[0]) for name, part in each.items()} -> (swapped)": "Neither statement reads what the other writes.",
    "sampler.clip_each_sample: return {name: change(name, part, len(images)) for name, part in result.items()} -> return result #2": "In the right answers `change` gives back what it gets.",
    "sampler.clip_each_sample: return {name: change(name, part, len(images)) for name, part in result.items()} -> return result #3": "In the right answers `change` gives back what it gets.",
    "samples_by_hooks: p.detach().expand(len(images), *p.shape).clone() -> p.detach().expand(len(images), *p.shape)": "Copies that are never written, or are the function's own: sharing memory, or a graph behind them that is not asked, changes no result.",
    "samples_by_hooks: p.detach().expand(len(images), *p.shape).clone -> p.detach().expand(len(images), *p.shape).detach": "Copies that are never written, or are the function's own: sharing memory, or a graph behind them that is not asked, changes no result.",
    "samples_by_hooks: p.detach().expand -> p.expand": "Copies that are never written, or are the function's own: sharing memory, or a graph behind them that is not asked, changes no result.",
    "samples_by_hooks: p.detach().expand -> p.clone().expand": "Copies that are never written, or are the function's own: sharing memory, or a graph behind them that is not asked, changes no result.",
    "samples_by_hooks: ...terialize_grads=True) -> ...terialize_grads=True, retain_graph=True)": "Whether the graph could be used again is not asked for; it goes when the function ends, and the results are detached.",
    "samples_by_hooks: names = [name for name, _ in model.named_parameters()] | wide = [p.detach().expand(len(images), *p.shape).clone().requir... -> (swapped)": "Copies that are never written, or are the function's own: sharing memory, or a graph behind them that is not asked, changes no result.",
}

GUARDS = {
    "Each sample's gradient, all parameters taken together, is clipped to the norm `max_norm`": {
        "value": MISCONCEIVED["each parameter by itself"]
    },
    "left alone otherwise, also if it is zero": {"value": CLIPPED_BY_A_QUOTIENT},
    "Then the mean over samples is taken.": {"value": MISCONCEIVED["a sum, not a mean"]},
    "of the parameter's shape and dtype": {"dtype": IN_SINGLE_PRECISION},
    "may run once, on all images together": {"runs": RUN_TWICE},
    "with one backward pass at most": {"passes": PASS_FOR_EACH},
    "`.grad`, the model and what is given stay as they are": {
        "grad": MISCONCEIVED["written to .grad"],
        "numbers": clip_and_clear_targets,
        "flags": SEEDED,
    },
    "results require no gradient": {"attached": WITH_A_GRAPH},
    "One may take no part in the loss: its entry is zeros.": {"dict": WITHOUT_UNUSED},
}


WRONG += [sampler(change=lambda name, part, count: part.double()), WITHOUT_UNUSED]


def clip_in_pieces(model, images, targets, max_norm):
    """Runs the model once for every eight images, to save memory."""
    sums = {}
    for some, wanted in zip(images.split(8), targets.split(8), strict=True):
        for name, part in RIGHT[0](model, some, wanted, max_norm).items():
            sums[name] = sums.get(name, 0) + len(some) * part
    return {name: total / len(images) for name, total in sums.items()}


WRONG.append(clip_in_pieces)


def samples_at_one_name(model, images, targets):
    """Puts its own numbers where a parameter is named first, and leaves a second place as it is."""
    parameters = {name: p.detach() for name, p in model.named_parameters()}

    def loss(parameters, image, target):
        scores = functional_call(model, parameters, (image[None],), tie_weights=False)
        return cross_entropy(scores, target[None])

    return vmap(grad(loss), in_dims=(None, 0, 0))(parameters, images, targets)


WRONG += [sampler(samples_at_one_name)]
