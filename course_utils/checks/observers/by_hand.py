"""Noticing that somebody computes with a module's numbers and does not run the module."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

from course_utils.checks.observers import telling

HAND = "a run by hand"
# What layers compute with their weights. Norms, penalties and updates of weights are other operations.
_LAYERS = frozenset(("convolution", "addmm", "mm", "bmm", "baddbmm", "linear", "native_batch_norm", "embedding"))

_stacks: list[ExitStack] = []  # what is left when the case that is noticed ends
_weights: set[int] = set()  # where the numbers of noticed modules lie
_running = [0]  # runs of noticed modules that are under way


def watch(module: nn.Module) -> None:
    """Have what is computed with a module's parameters noticed from now on, until `noticed` ends.

    Where no module is watched, no mode is entered: under one, PyTorch's `_foreach` operations raise no version.
    """
    if _stacks:
        if not _weights:
            _stacks[-1].enter_context(Noticing())  # type: ignore[no-untyped-call]
        _weights.update(parameter.untyped_storage().data_ptr() for parameter in module.parameters())


@contextmanager
def running() -> Iterator[None]:
    """Say that a noticed module runs while the body does."""
    _running[0] += 1
    try:
        yield
    finally:
        _running[0] -= 1


class Noticing(TorchDispatchMode):
    """Tells of each operation of a layer on weights that are watched, outside of all runs and of backward passes."""

    def __torch_dispatch__(
        self, function: Any, types: Sequence[type], args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        apart = _weights and not _running[0] and torch._C._current_graph_task_id() == -1
        if apart and function.overloadpacket.__name__ in _LAYERS and any(map(_watched, args)):
            telling.tell(HAND)
        return function(*args, **(kwargs or {}))


def noticed(run: Callable[[], Any]) -> Any:
    """Return what `run` returns, and notice in the second way of observing what is computed by hand."""
    if not telling.otherwise():
        return run()
    _weights.clear()
    with ExitStack() as stack:
        _stacks.append(stack)
        stack.callback(_stacks.clear)
        return run()


def _watched(value: object) -> bool:
    return isinstance(value, torch.Tensor) and value.layout is torch.strided and _place(value) in _weights


def _place(tensor: torch.Tensor) -> int:
    try:
        return tensor.untyped_storage().data_ptr()
    except (RuntimeError, NotImplementedError):  # a tensor without numbers of its own
        return -1
