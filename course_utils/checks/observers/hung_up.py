"""Hooks that are functions of C: they leave no frame that says whose they are, unless one is put around them."""

from __future__ import annotations

import functools
import types
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from torch import nn

from course_utils.checks.observers.replacing import replaced

_OF_C = (types.BuiltinFunctionType, types.MethodWrapperType, types.MethodDescriptorType, functools.partial, type)
_PLACES: tuple[tuple[Any, str], ...] = (
    (torch.Tensor, "register_hook"),
    (torch.Tensor, "register_post_accumulate_grad_hook"),
    (nn.Module, "register_forward_hook"),
    (nn.Module, "register_forward_pre_hook"),
    (nn.Module, "register_full_backward_hook"),
    (nn.Module, "register_full_backward_pre_hook"),
)
# A frame in a file of nobody's. Its function is in no cycle: what a hook holds is let go with the hook.
_FRAME = """
def framed(hook):
    def called(*given, **named):
        return hook(*given, **named)
    return called
"""
_framing: dict[str, Any] = {}
exec(compile(_FRAME, "<a hook>", "exec"), _framing)


@contextmanager
def with_frames(theirs: Callable[[], bool]) -> Iterator[None]:
    """Put a frame around such hooks where they are hung up while the body runs, by whom `theirs` says yes to.

    An observer's own stay as they are: it knows them by what they are.
    """
    with ExitStack() as stack:
        for kind, name in _PLACES:
            stack.enter_context(replaced(kind, name, _registering(getattr(kind, name), theirs)))
        yield


def _registering(register: Callable[..., Any], theirs: Callable[[], bool]) -> Callable[..., Any]:
    @functools.wraps(register)
    def call(self: Any, hook: Any, *given: Any, **named: Any) -> Any:
        return register(
            self, _framing["framed"](hook) if isinstance(hook, _OF_C) and theirs() else hook, *given, **named
        )

    return call
