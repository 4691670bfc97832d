"""What an answer to `count_saved_bytes` is tried on."""

from __future__ import annotations

import torch
from torch import nn

from course_utils.checks.data import Case
from course_utils.checks.scenes.lesson_03_graph_freeing.leaves import leaf, numbers


def keeping(case: Case) -> tuple[torch.Tensor, list[torch.Tensor]]:
    """Return the case's loss, and the tensors besides leaves that are not to be counted.

    Where the case asks for a pass "between" two calls, none has run yet.
    """
    seed, rows = case.given["seed"], case.given["rows"]
    x, mask = leaf(seed, rows, 5), numbers(seed + 1, rows, 5)
    match case.given["scene"]:
        case "nothing":
            return (x + mask).sum(), []
        case "one result":
            return x.exp().sum().exp().sqrt(), [mask]  # which the graph does not keep, as it does the loss itself
        case "used twice":
            y = x.exp()
            return (y * y.sin()).sum(), []
        case "two views":
            base = leaf(seed, 10 * rows) - 1
            return (base[:2] * base[3:5]).sum(), []
        case "model":
            norm = nn.LayerNorm(7, elementwise_affine=False)  # it has no leaf, and its node keeps three tensors
            model = nn.Sequential(nn.Linear(5, 7), nn.Tanh(), norm, nn.Linear(7, 2))
            loss = model(mask).pow(2).mean()
            model[3].weight.requires_grad_(False)  # it is the leaf of its node all the same
            return loss, [mask]
        case "mask":
            return ((x + 1) * mask).sigmoid().sum(), [mask[1:, 2:].t(), mask[1]]  # neither begins where the memory does
        case "activations":  # which the caller keeps: results with a graph, one of them seen through a view
            y, z = x.exp(), x.sin()
            return (y * y.sin() * z).sum(), [y, z.t()[1:]]
        case "number and buffers":  # the number is no tensor before the product makes one of it
            buffered = nn.BatchNorm1d(5, affine=False).eval()
            return (3 * buffered(x)).exp().sum(), []
        case "rows picked":
            return (x.exp()[:, torch.tensor([0, 2, 2])] * x[:, :3]).sum(), []
        case "doublings":
            y = x.double().exp()
            for _ in range(30):
                y = y + y
            return y.sum(), []
        case "partly freed":
            h = x.exp().tanh().exp().tanh()  # four results that stay, so that no order of reading meets them all first
            m = h.sin().tanh().exp()
            loss = (m * m).sum()
            torch.autograd.grad(loss, h)
            return loss, []
        case "a branch freed":  # the older one: freed nodes stand before others in any order, or after them
            older = x.exp().tanh()
            newer = (x + 1).sin()
            older.sum().backward()
            return (older * newer).sum(), []
    return (x.exp() * x.sin()).sum(), []  # before and after backward
