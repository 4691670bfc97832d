"""Right and wrong answers to `fewest_bytes`."""

import math

import torch
from torch.nn.functional import cross_entropy, linear

from tests.answers.said import said


@torch.no_grad()
def by_slices(model, images, labels):
    rows = math.ceil(len(images) / 20)
    total = 0.0
    for part, label in zip(images.split(rows), labels.split(rows), strict=True):
        total += cross_entropy(model(part), label, reduction="sum").item()
    return total / len(images)


@torch.no_grad()
def written_over(model, images, labels):
    """A tanh writes into the result of the layer before it."""
    total = torch.zeros((), dtype=images.dtype)
    for part, label in zip(images.tensor_split(20), labels.tensor_split(20), strict=True):
        for layer in model:
            part = part.tanh_() if isinstance(layer, torch.nn.Tanh) else layer(part)
        total += cross_entropy(part, label, reduction="sum")
        del part
    return total / len(images)


def at_once(model, images, labels):
    with torch.no_grad():
        return cross_entropy(model(images), labels).item()


def with_graphs(model, images, labels):
    parts = zip(images.tensor_split(20), labels.tensor_split(20), strict=True)
    return sum(cross_entropy(model(part), label, reduction="sum").item() for part, label in parts) / len(images)


@torch.no_grad()
def means_of_means(model, images, labels):
    rows = math.ceil(len(images) / 20)
    losses = [
        cross_entropy(model(part), label).item()
        for part, label in zip(images.split(rows), labels.split(rows), strict=True)
    ]
    return sum(losses) / len(losses)


@torch.no_grad()
def ten_slices(model, images, labels):
    losses = [
        cross_entropy(model(part), label, reduction="sum").item()
        for part, label in zip(images.tensor_split(10), labels.tensor_split(10), strict=True)
    ]
    return sum(losses) / len(images)


@torch.no_grad()
def in_forty_parts(model, images, labels):
    parts = zip(images.tensor_split(40), labels.tensor_split(40), strict=True)
    return sum(cross_entropy(model(part), label, reduction="sum").item() for part, label in parts) / len(images)


@torch.no_grad()
def rows_by_weights(model, images, labels):
    """Calls no layer."""
    total = 0.0
    for part, label in zip(images.split(10), labels.split(10), strict=True):
        for layer in model:
            part = part.tanh_() if isinstance(layer, torch.nn.Tanh) else linear(part, layer.weight, layer.bias)
        total += cross_entropy(part, label, reduction="sum").item()
    return total / len(images)


def attached(model, images, labels):
    value = by_slices(model, images, labels)
    return model[-1].bias.sum() * 0 + value


def adding_up_graphs(model, images, labels):
    parts = zip(images.tensor_split(20), labels.tensor_split(20), strict=True)
    return (sum(cross_entropy(model(part), label, reduction="sum") for part, label in parts) / len(images)).item()


@torch.no_grad()
def keeping_all_results(model, images, labels):
    kept = [images.split(10)]
    for layer in model:
        kept.append([layer(part) for part in kept[-1]])
    return cross_entropy(torch.cat(kept[-1]), labels).item()


def left_evaluating(model, images, labels):
    model.eval()
    return by_slices(model, images, labels)


def spoils_images(model, images, labels):
    value = by_slices(model, images, labels)
    images.zero_()
    return value


_known = {}  # the results of networks that were seen before


class InInferenceMode:
    @torch.inference_mode()
    def __call__(self, *given):
        return written_over(*given)


RIGHT = [by_slices, written_over, InInferenceMode()]

MISCONCEIVED = {
    "mean of means": means_of_means,
    "all at once": at_once,
    "the sum": lambda model, images, labels: by_slices(model, images, labels) * len(images),
    "a graph is recorded": with_graphs,
}

WRONG = [
    said(with_graphs, "a graph is recorded"),
    *(ten_slices, in_forty_parts, rows_by_weights, attached, left_evaluating, spoils_images),
    lambda model, images, labels: _known.setdefault(id(model), by_slices(model, images, labels)),
    *(said(adding_up_graphs, "a graph is recorded"), keeping_all_results),
]

EQUIVALENT = {
    "InInferenceMode.__call__: def __call__(self, *given): ... -> (without @torch.inference_mode())": "What it calls switches recording off itself.",
    "by_slices: total += cross_entropy(model... -> total = total + cross_entropy(model...": "The same sum, in place or not.",
    "by_slices: cross_entropy(model(part), label, reduction='sum').item() -> cross_entropy(model(part), label, reduction='sum')": "A tensor with one number is one real number, too.",
    "written_over: isinstance(layer, torch.nn.Tanh) -> False": "Ours writes over; the task asks for 25 times fewer bytes, which slices alone reach.",
    "written_over: part.tanh_() if isinstance(lay... -> part.tanh() if isinstance(lay...": "Ours writes over; the task asks for 25 times fewer bytes, which slices alone reach.",
    "written_over: total += cross_entropy(part, label, reduction='sum') -> total = total + cross_entropy(part, label, reduction='sum')": "The same sum, in place or not.",
    "written_over: del part -> (dropped)": "The scores of one slice are few bytes.",
}

GUARDS = {
    "the mean cross-entropy over all images": {"value": means_of_means},
    "25 times fewer bytes": {"peak": with_graphs},
    "200 products of matrices": {"products": in_forty_parts},
    "without a graph": {"attached": attached},
    "keep their numbers": {"changed": spoils_images},
    "a function leaves modes, flags, hooks": {"left": left_evaluating},
}


@torch.no_grad()
def means_of_means_in_even_parts(model, images, labels):
    parts = zip(images.tensor_split(20), labels.tensor_split(20), strict=True)
    return sum(cross_entropy(model(part), label).item() for part, label in parts) / 20


@torch.no_grad()
def twenty_whole_parts(model, images, labels):
    size = len(images) // 20
    parts = list(zip(images.split(size), labels.split(size), strict=True))[:20]
    return sum(cross_entropy(model(part), label).item() for part, label in parts) / 20


WRONG += [
    said(means_of_means_in_even_parts, "mean of means"),
    lambda model, images, labels: by_slices(model, images[:400], labels[:400]),
    lambda model, images, labels: 2.3,
]

MISCONCEIVED["the rest left out"] = twenty_whole_parts


def part_by_part(scores_of):
    """Adds up the losses of twenty parts; `scores_of` runs the model on one."""

    @torch.no_grad()
    def answer(model, images, labels):
        parts = zip(images.tensor_split(20), labels.tensor_split(20), strict=True)
        losses = [cross_entropy(scores_of(model, part), label, reduction="sum").item() for part, label in parts]
        return sum(losses) / len(images)

    return answer


def over(part, made):
    return part.copy_(made) if made.shape == part.shape else made


@part_by_part
def written_into_the_images(model, part):
    """Keeps a layer's results where the images are, if they have room there."""
    result = part
    for layer in model:
        result = over(part, layer(result))
    return result


def in_single_precision(model, images, labels):
    """The model comes back to double precision, and its numbers do not."""
    model.float().double()
    return by_slices(model, images, labels)


WRONG += [written_into_the_images, in_single_precision]


@part_by_part
def by_single_products(model, result):
    """Multiplies in single precision, a layer's parameters as well."""
    for layer in model:
        if isinstance(layer, torch.nn.Tanh):
            result = result.tanh_()
        else:
            result = torch.addmm(layer.bias.float(), result.float(), layer.weight.float().T)
    return result


@part_by_part
def written_over_from_the_first(model, part):
    """Keeps what the first layer gives where the images are, if it has room there."""
    return model[1:](over(part, model[0](part)))


WRONG += [by_single_products, written_over_from_the_first]


def switching_recording_on(*given):
    """A validation may be called with recording off."""
    result = by_slices(*given)
    torch.set_grad_enabled(True)
    return result


WRONG.append(switching_recording_on)
