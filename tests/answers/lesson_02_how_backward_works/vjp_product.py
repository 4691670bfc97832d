"""Right and wrong answers to `vjp_product`."""

import torch

from tests.answers.lesson_02_how_backward_works.pairs import (
    clear,
    in_double,
    in_single,
    remembering,
    spoiling_after,
    vjp_by_autograd,
    vjp_by_differences,
    vjp_by_forward_mode,
    without_grad,
)
from tests.answers.lesson_02_how_backward_works.spoiled import spoiled
from tests.answers.magnitudes import clipping_results, dropping_small
from tests.answers.said import said


def product_by_sums(a, b, v):
    def back(gradient, shape):
        added = gradient.dim() - len(shape)
        gradient = gradient.sum(tuple(range(added))) if added else gradient
        for dim, size in enumerate(shape):
            if size == 1:
                gradient = gradient.sum(dim, keepdim=True)
        return gradient

    return back(v * b, a.shape), back(v * a, b.shape)


def product_by_sum_to_size(a, b, v):
    return [(v * b).sum_to_size(a.shape), (v * a).sum_to_size(b.shape)]


def bringing_back(way):
    return lambda a, b, v: (way(v * b, a.shape), way(v * a, b.shape))


def over_missing_sizes(gradient, shape):
    """Sums the dimensions whose size the input has nowhere: in a square, a row has it."""
    for dim in reversed(range(gradient.dim())):
        if gradient.shape[dim] not in shape:
            gradient = gradient.sum(dim)
    return gradient.reshape(shape) if gradient.numel() == shape.numel() else gradient


def from_the_left(gradient, shape):
    """Looks from the left for the dimensions that the input has: in a square, a row is then a column."""
    dim = 0
    while gradient.dim() > len(shape):
        if dim < len(shape) and gradient.shape[dim] == shape[dim]:
            dim += 1
        else:
            gradient = gradient.sum(dim)
    return gradient.sum_to_size(shape)


def number_for_one_entry(gradient, shape):
    return gradient.sum() if shape.numel() == 1 else gradient.sum_to_size(shape)


def as_it_is_by_count(gradient, shape):
    """Takes as many numbers for the same shape."""
    return gradient if gradient.numel() == shape.numel() else gradient.sum_to_size(shape)


RIGHT = [product_by_sum_to_size, product_by_sums]


def over_missing_dimensions(gradient, given):
    """Sums over dimensions that an input has not, and over none of size 1."""
    while gradient.dim() > len(given):
        gradient = gradient.sum(0)
    return gradient


MISCONCEIVED = {
    "dimensions of size 1 left": bringing_back(over_missing_dimensions),
    "lined up from the left": bringing_back(from_the_left),
    "one number without dimensions": bringing_back(number_for_one_entry),
    "not summed back": lambda a, b, v: (v * b, v * a),
    "gradients swapped": lambda a, b, v: product_by_sums(b, a, v),
    "v is ignored": lambda a, b, v: product_by_sums(a, b, torch.ones_like(v)),
}

WRONG = [
    lambda a, b, v: ((v * b).sum_to_size(a.shape), v * a),
    lambda a, b, v: tuple(g.float() for g in product_by_sums(a, b, v)),
    lambda a, b, v: (product_by_sums(a, b.mul_(2), v)[0] / 2, product_by_sums(a, b, v)[1]),
    lambda a, b, v: product_by_sums(a, b, v)[0],
    remembering(product_by_sums),
    spoiling_after(product_by_sums, without_grad),
    spoiling_after(product_by_sums, clear),
    in_single(product_by_sums),
    in_double(product_by_sums),
    spoiled(product_by_sums, lambda a, b, v: v.data.mul_(2)),
    *(clipping_results(product_by_sums), dropping_small(product_by_sums)),
    said(bringing_back(from_the_left), "lined up from the left"),
    said(bringing_back(number_for_one_entry), "one number without dimensions"),
    *(said(bringing_back(way), "not summed back") for way in (over_missing_sizes, as_it_is_by_count)),
    spoiled(product_by_sums, lambda a, b, v: v.requires_grad_(False)),
    lambda a, b, v: ((v * b).sum_to_size(a.shape), (v * a).sum_to_size(b.shape) * (b.dim() > 1)),
]

STILL_RIGHT = {"detached"}

by_autograd = vjp_by_autograd(torch.mul)

by_forward_mode = vjp_by_forward_mode(torch.mul)

GUARDS = {
    "the gradients of `(a * b * v).sum()` with respect to `a` and to `b`": {"value": WRONG[-1], "type": WRONG[3]},
    "each in the shape and dtype of its input": {"shape": WRONG[0], "dtype": WRONG[8]},
    "your function runs no backward pass": {"passes": by_autograd},
    "Derive them, without autograd": {"autograd": by_forward_mode},
    "Leave the inputs alone:": {"input": WRONG[9]},
    "their `.grad`": {"grad": WRONG[6]},
    "whether they require grad": {"requires_grad": WRONG[5]},
}


WRONG += [by_autograd, vjp_by_differences(torch.mul)]


def over_strides_of_zero(gradient, given):
    """Takes a stride of 0 for a sign of broadcasting: an input that is an expanded tensor has it, too."""
    for dim, stride in enumerate(given.expand(gradient.shape).stride()):
        gradient = gradient if stride else gradient.sum(dim, keepdim=True)
    return gradient.sum_to_size(given.shape)


WRONG += [lambda a, b, v: (over_strides_of_zero(v * b, a), over_strides_of_zero(v * a, b))]

WRONG += [by_forward_mode, said(bringing_back(over_missing_dimensions), "dimensions of size 1 left")]
