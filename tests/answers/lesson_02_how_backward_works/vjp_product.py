"""Right and wrong answers to `vjp_product`."""

import torch

from tests.answers.lesson_02_how_backward_works.pairs import (
    clear,
    in_double,
    in_single,
    remembering,
    spoiling_after,
    vjp_by_autograd,
    without_grad,
)
from tests.answers.lesson_02_how_backward_works.spoiled import spoiled


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


RIGHT = [product_by_sum_to_size, product_by_sums, vjp_by_autograd(torch.mul)]

MISCONCEIVED = {
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
    spoiled(product_by_sums, lambda a, b, v: v.mul_(2)),
    lambda a, b, v: ((v * b).sum_to_size(a.shape), (v * a).sum_to_size(b.shape) * (b.dim() > 1)),
]

STILL_RIGHT = {"detached"}

GUARDS = {
    "the gradients of `(a * b * v).sum()` with respect to `a` and to `b`": {"value": WRONG[-1], "type": WRONG[3]},
    "each in the shape and dtype of its input": {"shape": WRONG[0], "dtype": WRONG[8]},
    "Leave the inputs alone:": {"input": WRONG[9]},
    "their `.grad`": {"grad": WRONG[6]},
    "whether they require grad": {"requires_grad": WRONG[5]},
}
