"""Right and wrong answers to `vjp_softmax`."""

import torch

from tests.answers.lesson_02_how_backward_works.pairs import clear, remembering, spoiling_after, without_grad
from tests.answers.lesson_02_how_backward_works.spoiled import spoiled
from tests.answers.magnitudes import clipping_results, dropping_small
from tests.answers.said import said


def softmax_in_one_line(y, v, dim):
    return y * (v - (v * y).sum(dim, keepdim=True))


def softmax_by_jacobian(y, v, dim):
    rows, weights = y.movedim(dim, -1), v.movedim(dim, -1)
    jacobian = torch.diag_embed(rows) - rows[..., :, None] * rows[..., None, :]
    return (jacobian @ weights[..., None])[..., 0].movedim(-1, dim)


def softmax_of_matrices(y, v, dim):
    """A batch of matrices has its softmax in one of the last two dimensions."""
    return softmax_in_one_line(y, v, dim if y.dim() < 3 or dim < 0 else max(dim, 1))


def softmax_by_logarithm(y, v, dim):
    """Takes the logarithm for the input: where the output is 0 it is -inf, and the gradient NaN."""
    y, v = y.detach(), v.detach()
    x = y.log().requires_grad_()
    (gradient,) = torch.autograd.grad(x.softmax(dim), x, v)
    return gradient + 0 * x.detach()


def softmax_where_it_broadcasts(y, v, dim):
    """Keeps the summed dimension only where the shapes would not broadcast without it: in a square they do."""
    along = (v * y).sum(dim)
    try:
        return y * (v - along)
    except RuntimeError:
        return y * (v - along.unsqueeze(dim))


def softmax_along_a_size(y, v, dim):
    """Sums along the last dimension of the size that `dim` has."""
    last = max(place for place, size in enumerate(y.shape) if size == y.shape[dim])
    return softmax_in_one_line(y, v, last)


def softmax_of_a_product(y, v, dim):
    """Takes the softmax of one number for the number."""
    return y * v if y.shape[dim] == 1 else softmax_in_one_line(y, v, dim)


RIGHT = [softmax_in_one_line, softmax_by_jacobian]

MISCONCEIVED = {
    "only the diagonal": lambda y, v, dim: v * y * (1 - y),
    "softmax once more": lambda y, v, dim: softmax_in_one_line(y.softmax(dim), v, dim),
    "dim is ignored": lambda y, v, dim: softmax_in_one_line(y, v, -1),
    "summed over everything": lambda y, v, dim: y * (v - (v * y).sum()),
    "the factor y is missing": lambda y, v, dim: v - (v * y).sum(dim, keepdim=True),
}


def softmax_square_without_keepdim(y, v, dim):
    """Lets the sums of a square broadcast along its last dimension, whichever they belong to."""
    sums = (y * v).sum(dim)
    return y * (v - (sums if y.dim() == 2 and len(y) == y.shape[1] else sums.unsqueeze(dim)))


WRONG = [
    lambda y, v, dim: softmax_in_one_line(y, v, abs(dim)),
    lambda y, v, dim: y * (v - v.sum(dim, keepdim=True)),
    lambda y, v, dim: y * v,
    softmax_of_matrices,
    remembering(softmax_in_one_line, 1),
    spoiling_after(softmax_in_one_line, without_grad),
    spoiling_after(softmax_in_one_line, clear),
    lambda y, v, dim: softmax_in_one_line(y.double(), v, dim),
    lambda y, v, dim: softmax_in_one_line(y, v, dim).reshape(-1),
    spoiled(softmax_in_one_line, lambda y, v, dim: v.data.mul_(2)),
    softmax_by_logarithm,
    spoiled(softmax_in_one_line, lambda y, v, dim: y.requires_grad_()),
    *(clipping_results(softmax_in_one_line), dropping_small(softmax_in_one_line)),
    *(
        softmax_where_it_broadcasts,
        softmax_square_without_keepdim,
        said(softmax_along_a_size, "dim is ignored"),
        softmax_of_a_product,
    ),
    lambda y, v, dim: softmax_in_one_line(y, v, dim).squeeze(),
    lambda y, v, dim: [softmax_in_one_line(y, v, dim)],
]

STILL_RIGHT = {"detached"}

GUARDS = {
    "Return the gradient of `(y * v).sum()` with respect to the softmax's *input*": {
        "value": WRONG[1],
        "type": WRONG[-1],
    },
    "a softmax along the dimension `dim`, which may be negative": {"value": WRONG[0]},
    "in the shape and dtype of `y`": {"shape": WRONG[8], "dtype": WRONG[7]},
    "Leave `y` and `v` alone: their numbers": {"input": WRONG[9]},
    "their `.grad`": {"grad": WRONG[6]},
    "whether they require grad": {"requires_grad": WRONG[5]},
}


def softmax_from_the_end_as_the_last(y, v, dim):
    return RIGHT[0](y, v, dim if dim >= 0 else -1)


WRONG += [said(softmax_from_the_end_as_the_last, "dim is ignored")]


def softmax_from_the_end_as_the_second(y, v, dim):
    return RIGHT[0](y, v, dim if dim >= 0 or y.dim() == 1 else 1)


WRONG += [softmax_from_the_end_as_the_second]


def softmax_v_before_the_bracket(y, v, dim):
    """Takes v out of the bracket: 0 / 0 where it is zero."""
    return y * v * (1 - (y * v).sum(dim, keepdim=True) / v)


WRONG += [softmax_v_before_the_bracket]
