"""Right and wrong answers to `vjp_matmul`."""

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


def two_blocks(a, b):
    h = a + a @ b
    return h + h @ b


def back_block_by_block(a, b, v):
    h = a + a @ b
    d_h = v + v @ b.T
    return d_h + d_h @ b.T, h.T @ v + a.T @ d_h


def by_einsum(a, b, v):
    """As one product with b and the identity added: what comes back meets both factors."""
    once = b + torch.eye(len(b), dtype=b.dtype)
    by_a = torch.einsum("il,jl->ij", v, once @ once)
    by_second = torch.einsum("ij,il->jl", a @ once, v)
    return by_a, by_second + torch.einsum("ij,il,kl->jk", a, v, once)


def zeros_for_no_gradient(a, b, v):
    for given in (a, b, v):
        if given.requires_grad and given.grad is None:
            given.grad = torch.zeros_like(given)


def averaging(dim):
    """Takes a column or a row for one number: wrong where m or n alone is 1."""

    def answer(a, b, v):
        if v.shape[dim] == 1 and v.numel() > 1:
            v = v.mean().expand_as(v)
        return back_block_by_block(a, b, v)

    return answer


def number_for_one_entry(a, b, v):
    """Returns numbers of no dimension where all matrices have one entry."""
    found = back_block_by_block(a, b, v)
    return [gradient.sum() for gradient in found] if a.numel() == b.numel() == 1 else found


RIGHT = [back_block_by_block, by_einsum]

MISCONCEIVED = {
    "skips left out": lambda a, b, v: (v @ b.T @ b.T, (a + a @ b).T @ v + a.T @ (v @ b.T)),
    "one use of b": lambda a, b, v: (back_block_by_block(a, b, v)[0], (a + a @ b).T @ v),
    "gradients swapped": lambda a, b, v: back_block_by_block(a, b, v)[::-1],
    "v is ignored": lambda a, b, v: back_block_by_block(a, b, torch.ones_like(v)),
}


def only_the_skip_of_the_second(a, b, v):
    d_h = v + v @ b.T
    return d_h @ b.T, (a + a @ b).T @ v + a.T @ d_h


def first_block_again(a, b, v):
    """Takes the input for that of both blocks: right where h and a are the same."""
    d_h = v + v @ b.T
    return d_h + d_h @ b.T, a.T @ v + a.T @ d_h


v_turned = spoiled(back_block_by_block, lambda a, b, v: v.t_())

WRONG = [
    spoiled(back_block_by_block, lambda a, b, v: a.requires_grad_()),
    only_the_skip_of_the_second,
    first_block_again,
    remembering(back_block_by_block),
    spoiling_after(back_block_by_block, without_grad),
    spoiling_after(back_block_by_block, clear),
    spoiling_after(back_block_by_block, zeros_for_no_gradient),
    in_single(back_block_by_block),
    in_double(back_block_by_block),
    spoiled(back_block_by_block, lambda a, b, v: v.data.mul_(2)),
    averaging(0),
    averaging(1),
    said(lambda a, b, v: (back_block_by_block(a, b, v)[0], a.T @ (v + v @ b.T)), "one use of b"),
    *(clipping_results(back_block_by_block), dropping_small(back_block_by_block)),
    spoiled(back_block_by_block, lambda a, b, v: v.requires_grad_(False)),
    number_for_one_entry,
    v_turned,
    lambda a, b, v: [g.squeeze() for g in back_block_by_block(a, b, v)],
    lambda a, b, v: back_block_by_block(a, b, v)[0],
]

STILL_RIGHT = {"detached"}

EQUIVALENT = {
    "back_block_by_block: h = a + a @ b | d_h = v + v @ b.T -> (swapped)": "Neither statement changes what the other reads.",
    "by_einsum: by_a = torch.einsum('il,jl->ij', v, once @ once) | by_second = torch.einsum('ij,il->jl', a @ once, v) -> (swapped)": "Neither statement changes what the other reads.",
    "by_einsum: torch.eye(len(b), dtype=b.dtype) -> torch.eye(len(b))": "Zeros and ones are exact in float32, and the sum has the dtype of b.",
}

by_autograd = vjp_by_autograd(two_blocks)

by_forward_mode = vjp_by_forward_mode(two_blocks)

GUARDS = {
    "the gradients of `(two_blocks(a, b) * v).sum()` with respect to `a` and to `b`": {"type": WRONG[-1]},
    "each in the shape and dtype of its input": {"shape": WRONG[-2], "dtype": WRONG[8]},
    "as precisely as the dtype allows": {"value": WRONG[7]},
    "your function runs no backward pass": {"passes": by_autograd},
    "Derive them, without autograd": {"autograd": by_forward_mode},
    "Leave the inputs alone:": {"input": WRONG[9]},
    "their `.grad`": {"grad": WRONG[5]},
    "whether they require grad": {"requires_grad": WRONG[4]},
}


WRONG += [by_autograd, vjp_by_differences(two_blocks)]


def vjp_with_v_before_the_bracket(a, b, v):
    """Takes v out of a bracket: 0 / 0 where it is zero."""
    d = v * (1 + (v @ b.T) / v)
    return d + d @ b.T, (a + a @ b).T @ v + a.T @ d


WRONG += [by_forward_mode, vjp_with_v_before_the_bracket]


def back_through_b_itself(a, b, v):
    d_h = v + v @ b
    return d_h + d_h @ b, (a + a @ b).T @ v + a.T @ d_h


MISCONCEIVED["b not transposed"] = back_through_b_itself
