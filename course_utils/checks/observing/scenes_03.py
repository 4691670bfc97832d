"""What lesson 03's answers are tried on: graphs with one difficulty each, a loop to train, a stack of blocks."""

from __future__ import annotations

import torch
from torch import nn

from course_utils.checks.data import Case
from course_utils.checks.observing.batches import Batch

Named = dict[str, torch.Tensor]


def numbers(seed: int, *shape: int) -> torch.Tensor:
    """Return numbers between 0.5 and 1.5."""
    return torch.rand(shape, generator=torch.Generator().manual_seed(seed)) + 0.5


def leaf(seed: int, *shape: int) -> torch.Tensor:
    """Return a leaf that requires grad."""
    return numbers(seed, *shape).requires_grad_()


# For counting bytes: a loss, and the tensors whose memory is there anyway.


def keeping(case: Case) -> tuple[torch.Tensor, list[torch.Tensor]]:
    """Return the case's loss, and the tensors besides leaves that are not to be counted."""
    seed, rows = case.given["seed"], case.given["rows"]
    x, mask = leaf(seed, rows, 5), numbers(seed + 1, rows, 5)
    match case.given["scene"]:
        case "nothing":
            return (x + mask).sum(), []
        case "one result":
            return x.exp().sum(), []
        case "used twice":
            y = x.exp()
            return (y * y.sin()).sum(), []
        case "two views":
            base = leaf(seed, 10 * rows) - 1
            return (base[:2] * base[3:5]).sum(), []
        case "model":
            model = nn.Sequential(nn.Linear(5, 7), nn.Tanh(), nn.Linear(7, 2))
            return model(mask).pow(2).mean(), [mask]
        case "mask":
            return ((x + 1) * mask).sigmoid().sum(), [mask.t()]
        case "rows picked":
            return (x.exp()[torch.tensor([0, 2, 2])] * x[:3]).sum(), []
        case "doublings":
            y = x.exp()
            for _ in range(30):
                y = y + y
            return y.sum(), []
        case "partly freed":
            h = x.exp()
            m = h.sin()
            loss = (m * m).sum()
            torch.autograd.grad(loss, h)
            return loss, []
    loss = (x.exp() * x.sin()).sum()  # after backward
    loss.backward()
    return loss, []


# For finding what is freed: a loss, and every node's tensor by name.


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
            z = m * m
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
            z = h * h
            top = z.sin()
            loss = top.sum()
            torch.autograd.grad(loss, z)
            h.detach().add_(1)
            return loss, {"h": h, "z": z, "top": top, "loss": loss}, {"x": x}
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
            loss = m.sum()
            loss.backward()
            return loss, {"h": h, "picked": picked, "m": m, "loss": loss}, {"x": x}
    h = y = x.exp()  # doublings
    tensors = {"h": h}
    for number in range(30):
        tensors[f"double {number + 1}"] = y = y + y
    loss = y.sum()
    loss.backward()
    return loss, {**tensors, "loss": loss}, {"x": x}


# A loop to train.


def trainee(case: Case) -> tuple[nn.Sequential, torch.optim.Optimizer, list[Batch]]:
    """Return a model, its optimizer and batches of uneven sizes."""
    seed, sizes = case.given["seed"], case.given["sizes"]
    torch.manual_seed(seed)
    model = nn.Sequential(nn.Linear(4, 9), nn.Tanh(), nn.Linear(9, 3))
    batches = [(numbers(seed + n, size, 4), numbers(seed - n, size, 3)) for n, size in enumerate(sizes, 1)]
    return model, torch.optim.SGD(model.parameters(), lr=0.2), batches


# A deep stack.


class Block(nn.Module):
    """A residual step with a little noise. Where gradients are recorded, it keeps its input and what dropout needs."""

    def __init__(self, scale: float, noise: float) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.tensor(scale))
        self.noise = noise

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = torch.sin(self.scale * x)
        return x + 0.1 * (nn.functional.dropout(y, self.noise, self.training) if self.noise else y)


def stack(case: Case) -> tuple[nn.Sequential, torch.Tensor]:
    """Return the case's blocks and their input, in float64."""
    seed, count = case.given["seed"], case.given["blocks"]
    scales = numbers(seed, count).tolist()
    noisy = case.given["noisy"]
    blocks = nn.Sequential(*(Block(scale, 0.3 if n in noisy else 0.0) for n, scale in enumerate(scales)))
    return blocks.double(), numbers(seed + 1, case.given["size"]).double().requires_grad_()
