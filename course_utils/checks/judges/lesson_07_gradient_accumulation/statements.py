"""Statements that leave something in `.grad`, or move a weight, and tables of them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch

Statements = Callable[[torch.Tensor, torch.optim.Optimizer], Any]


def _nothing(w: torch.Tensor, optimizer: torch.optim.Optimizer) -> None:
    return


def _pass(factor: float, w: torch.Tensor, optimizer: torch.optim.Optimizer) -> None:
    (factor * w).backward()


def _two_uses(w: torch.Tensor, optimizer: torch.optim.Optimizer) -> None:
    (w * w + w).backward()


def _unused(w: torch.Tensor, optimizer: torch.optim.Optimizer) -> None:
    (3 * torch.tensor(5.0, requires_grad=True)).backward()


def _by_grad(w: torch.Tensor, optimizer: torch.optim.Optimizer) -> None:
    torch.autograd.grad(3 * w, w)


def _clear(w: torch.Tensor, optimizer: torch.optim.Optimizer) -> None:
    optimizer.zero_grad()


def _fill(w: torch.Tensor, optimizer: torch.optim.Optimizer) -> None:
    optimizer.zero_grad(set_to_none=False)


def _step(w: torch.Tensor, optimizer: torch.optim.Optimizer) -> None:
    optimizer.step()


def _freeze(w: torch.Tensor, optimizer: torch.optim.Optimizer) -> None:
    w.requires_grad_(False)


_THREE, _FOUR = partial(_pass, 3.0), partial(_pass, 4.0)

# The statements of each entry; the ones with `kept` note .grad after the first statement and ask for that tensor.
GRADS: dict[str, tuple[Statements, ...]] = {
    "fresh": (_nothing,),
    "twice": (_THREE, _FOUR),
    "two_uses": (_two_uses,),
    "times_zero": (partial(_pass, 0.0),),
    "unused": (_unused,),
    "by_grad": (_by_grad,),
    "stepped": (_THREE, _step),
    "cleared": (_THREE, _clear),
    "cleared_then": (_THREE, _clear, _FOUR),
    "filled": (_THREE, _fill),
    "filled_fresh": (_fill,),
    "frozen": (_THREE, _freeze),
    "kept_added": (_THREE, _FOUR),
    "kept_cleared": (_THREE, _clear),
    "kept_filled": (_THREE, _fill),
}


MOVES: dict[str, tuple[str, dict[str, float], str]] = {
    "sgd_none": ("SGD", {}, "clear"),
    "sgd_zero": ("SGD", {}, "fill"),
    "momentum_none": ("SGD", {"momentum": 0.9}, "clear"),
    "momentum_zero": ("SGD", {"momentum": 0.9}, "fill"),
    "decay_none": ("SGD", {"weight_decay": 0.1}, "clear"),
    "decay_zero": ("SGD", {"weight_decay": 0.1}, "fill"),
    "adam_none": ("Adam", {}, "clear"),
    "adam_zero": ("Adam", {}, "fill"),
    "adam_fresh_zero": ("Adam", {}, "fresh"),
    "adamw_fresh_zero": ("AdamW", {}, "fresh"),
    "frozen_left": ("SGD", {}, "freeze"),
    "frozen_none": ("SGD", {"momentum": 0.9}, "clear, freeze"),
}
