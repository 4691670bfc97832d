"""Noticing that somebody computes with a module's numbers and does not run the module."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from torch import nn
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._python_dispatch import TorchDispatchMode

from course_utils.checks.observers import telling
from course_utils.graph.alive import tensors_in

HAND = "a run by hand"
# What layers compute with their weights. Norms, penalties and updates of weights are other operations.
_LAYERS = frozenset(
    (
        *("convolution", "addmm", "mm", "bmm", "baddbmm", "addbmm", "mv", "addmv", "dot", "vdot", "linear", "einsum"),
        *("native_batch_norm", "native_layer_norm", "embedding", "_cdist_forward"),
    )
)

_stacks: list[ExitStack] = []  # what is left when the case that is noticed ends
# Where the numbers of noticed modules lie, and what was made of these outside of runs: clones, casts, sums.
_weights: dict[int, StorageWeakRef] = {}
_running = [0]  # runs of noticed modules that are under way


def watch(module: nn.Module) -> None:
    """Have what is computed with a module's parameters noticed from now on, until `noticed` ends.

    Where no module is watched, no mode is entered: under one, PyTorch's `_foreach` operations raise no version.
    """
    if _stacks:
        if not _weights:
            _stacks[-1].enter_context(Noticing())  # type: ignore[no-untyped-call]
        for parameter in module.parameters():
            _add(parameter)


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
        tensors = list(tensors_in((args, list((kwargs or {}).values())))) if apart else []
        watched = [tensor for tensor in tensors if _watched(tensor)]
        result = function(*args, **(kwargs or {}))
        if watched:
            most = max(tensor.numel() for tensor in watched)
            made = list(tensors_in([result]))
            if _is_layer(function.overloadpacket.__name__, most, made) and len(watched) < len(tensors):
                telling.tell(HAND)
            else:
                for tensor in made:
                    if most <= tensor.numel():
                        _add(tensor)
        return result


def _is_layer(name: str, most: int, made: Sequence[torch.Tensor]) -> bool:
    """Say whether an operation on weights, of at most so many numbers, is a layer's: it may be a product of each."""
    return name in _LAYERS or (name == "mul" and any(tensor.numel() > most for tensor in made))


def noticed(run: Callable[[], Any]) -> Any:
    """Return what `run` returns, and notice in the second way of observing what is computed by hand."""
    if not telling.otherwise():
        return run()
    _weights.clear()
    with ExitStack() as stack:
        _stacks.append(stack)
        stack.callback(_stacks.clear)
        return run()


def _watched(tensor: torch.Tensor) -> bool:
    storage = _storage(tensor)
    reference = None if storage is None else _weights.get(storage._cdata)
    return reference is not None and not reference.expired()


def _add(tensor: torch.Tensor) -> None:
    storage = _storage(tensor)
    if storage is not None:
        _weights[storage._cdata] = StorageWeakRef(storage)


def _storage(tensor: torch.Tensor) -> torch.UntypedStorage | None:
    try:
        return tensor.untyped_storage() if tensor.layout is torch.strided else None
    except (RuntimeError, NotImplementedError):  # a tensor without numbers of its own
        return None
