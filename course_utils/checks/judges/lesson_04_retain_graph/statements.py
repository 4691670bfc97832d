"""Passes as statements to predict about."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

Names = dict[str, Any]


def backward(name: str, **options: Any) -> Callable[[Names], object]:
    return lambda names: names[name].backward(**options)


def grad(of: str, at: str, **options: Any) -> Callable[[Names], object]:
    return lambda names: torch.autograd.grad(names[of], names[at], **options)


RETAIN = {"retain_graph": True}
