"""Hooks that are functions of C: they leave no frame that says whose they are, unless one is put around them."""

from __future__ import annotations

import functools
import types
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn

_OF_C = (types.BuiltinFunctionType, types.MethodWrapperType, types.MethodDescriptorType, functools.partial, type)
_PLACES: tuple[tuple[Any, str], ...] = (
    (torch.Tensor, "register_hook"),
    (torch.Tensor, "register_post_accumulate_grad_hook"),
    (nn.Module, "register_forward_hook"),
    (nn.Module, "register_forward_pre_hook"),
    (nn.Module, "register_full_backward_hook"),
    (nn.Module, "register_full_backward_pre_hook"),
)
_FRAME = compile("def called(*given, **named):\n    return hook(*given, **named)\n", "<a hook>", "exec")


@contextmanager
def with_frames() -> Iterator[None]:
    """Put a frame of nobody's around such hooks, which are hung up while the body runs."""
    before = [getattr(kind, name) for kind, name in _PLACES]
    for (kind, name), register in zip(_PLACES, before, strict=True):
        setattr(kind, name, _registering(register))
    try:
        yield
    finally:
        for (kind, name), register in zip(_PLACES, before, strict=True):
            setattr(kind, name, register)


def _registering(register: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(register)
    def call(self: Any, hook: Any, *given: Any, **named: Any) -> Any:
        return register(self, _framed(hook) if isinstance(hook, _OF_C) else hook, *given, **named)

    return call


def _framed(hook: Any) -> Any:
    names = {"hook": hook}
    exec(_FRAME, names)
    return names["called"]
