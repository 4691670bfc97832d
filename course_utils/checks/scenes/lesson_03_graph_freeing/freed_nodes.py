"""What an answer to `freed_nodes` is tried on."""

from __future__ import annotations

import torch

from course_utils.checks.data import Case
from course_utils.checks.scenes.lesson_03_graph_freeing.leaves import leaf, numbers

Named = dict[str, torch.Tensor]


def partly_freed(case: Case) -> tuple[torch.Tensor, Named, Named]:
    """Return the case's loss, the tensors whose nodes have names, and the leaves."""
    seed = case.given["seed"]
    x, constant = leaf(seed, 3, 4), numbers(seed + 1, 3, 4)
    match case.given["scene"]:
        case "fresh":
            h = x.exp()
            m = h.sin()
            z = m * h
            loss = z.sum()
            return loss, {"h": h, "m": m, "z": z, "loss": loss}, {"x": x}
        case "upper part":
            h = x.exp()
            m = h.sin()
            z = m**3  # the first thing that its node saves is a number
            loss = z.sum()
            torch.autograd.grad(loss, h)
            return loss, {"h": h, "m": m, "z": z, "loss": loss}, {"x": x}
        case "one branch":
            trunk = x.exp()
            left, right = trunk.sin(), trunk.cos()
            moved = left + 1
            moved.sum().backward()
            joined = moved * right
            loss = joined.sum()
            tensors = {"trunk": trunk, "left": left, "right": right, "moved": moved, "joined": joined, "loss": loss}
            return loss, tensors, {"x": x}
        case "both branches":
            left, right = x.sin(), x.cos()
            left.sum().backward()
            right.sum().backward()
            joined = left + right
            loss = joined.sum()
            return loss, {"left": left, "right": right, "joined": joined, "loss": loss}, {"x": x}
        case "constant":
            h = x * constant
            m = h.exp()
            loss = m.sum()
            torch.autograd.grad(loss, h)
            return loss, {"h": h, "m": m, "loss": loss}, {"x": x}
        case "written":
            h = x.exp()
            h.sum().backward()
            m = h.exp()  # what its node saves is its result
            z = m * m
            top = z.sin()
            loss = top.sum()
            torch.autograd.grad(loss, z)
            m.detach().add_(1)
            return loss, {"h": h, "m": m, "z": z, "top": top, "loss": loss}, {"x": x}
        case "retained":
            h = x.exp()
            z = h * x
            loss = z.sum()
            loss.backward(retain_graph=True)
            return loss, {"h": h, "z": z, "loss": loss}, {"x": x}
        case "rows picked":
            h = x + 1
            picked = h[torch.tensor([0, 2, 2])]
            m = picked.exp()
            spread, mean = torch.std_mean(m)  # of one node, both of which are used
            loss = spread * mean  # its own node saves something, too
            loss.backward()
            return loss, {"h": h, "picked": picked, "m": m, "spread": spread, "loss": loss}, {"x": x}
    h = y = x.exp()  # doublings
    tensors = {"h": h}
    for number in range(30):
        tensors[f"double {number + 1}"] = y = y + y
    loss = y.sum()
    loss.backward()
    return loss, {**tensors, "loss": loss}, {"x": x}
