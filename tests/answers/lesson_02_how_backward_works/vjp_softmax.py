"""Right and wrong answers to `vjp_softmax`."""

import torch


def softmax_in_one_line(y, v, dim):
    return y * (v - (v * y).sum(dim, keepdim=True))


def softmax_by_jacobian(y, v, dim):
    rows, weights = y.movedim(dim, -1), v.movedim(dim, -1)
    jacobian = torch.diag_embed(rows) - rows[..., :, None] * rows[..., None, :]
    return (jacobian @ weights[..., None])[..., 0].movedim(-1, dim)


RIGHT = [softmax_in_one_line, softmax_by_jacobian]

MISCONCEIVED = {
    "only the diagonal": lambda y, v, dim: v * y * (1 - y),
    "softmax once more": lambda y, v, dim: softmax_in_one_line(y.softmax(dim), v, dim),
    "dim is ignored": lambda y, v, dim: softmax_in_one_line(y, v, -1),
    "summed over everything": lambda y, v, dim: y * (v - (v * y).sum()),
    "the factor y is missing": lambda y, v, dim: v - (v * y).sum(dim, keepdim=True),
}

WRONG = [
    lambda y, v, dim: softmax_in_one_line(y, v, abs(dim)),
    lambda y, v, dim: y * (v - v.sum(dim, keepdim=True)),
    lambda y, v, dim: y * v,
]
