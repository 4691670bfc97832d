"""Noticing that somebody computes with a module's numbers and does not run the module."""

from __future__ import annotations

import contextlib
import functools
import os
import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import FrameType
from typing import Any

import torch
from torch import nn
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._python_dispatch import TorchDispatchMode

from course_utils.checks.frames import is_course
from course_utils.checks.observers import telling
from course_utils.checks.observers.operations import distinct, is_product, written
from course_utils.graph.alive import tensors_in

HAND = "a run by hand"
READ = "weights read one by one"

# Who began an operation is told by the files of frames, which no assignment to `__name__` changes: past PyTorch's own
# and the course's, its modules and other modes.
_TORCH = str(Path(torch.__file__).parent) + os.sep
_ENGINE, _OBSERVERS = str(torch.autograd.graph.__file__), str(Path(__file__).parent) + os.sep
_PASSING = (_TORCH, str(contextlib.__file__), str(functools.__file__))

_stacks: list[ExitStack] = []  # what is left when the case that is noticed ends
_entered: list[object] = []  # the mode that notices, once it is entered in this case
# Where the numbers of noticed modules lie, and what was made of these outside of runs: clones, casts, sums.
_weights: dict[int, StorageWeakRef] = {}
_reads: dict[int, int] = {}  # how many numbers were taken out of each of them, one by one


def watch(module: nn.Module) -> None:
    """Have what is computed with a module's parameters noticed from now on, until `noticed` ends.

    Where no module is watched, no mode is entered: under one, PyTorch's `_foreach` operations raise no version.
    """
    parameters = list(module.parameters())
    if _stacks and parameters:
        if not _entered:
            _entered.append(_stacks[-1].enter_context(Noticing()))  # type: ignore[no-untyped-call]
        for parameter in parameters:
            _add(parameter)


class Noticing(TorchDispatchMode):
    """Tells of each operation of a layer on weights that are watched, where neither a run nor the engine began it."""

    def __torch_dispatch__(
        self, function: Any, types: Sequence[type], args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        result = function(*args, **kwargs) if kwargs else function(*args)
        tensors = list(tensors_in((*args, *kwargs.values()) if kwargs else args))
        watched = [tensor for tensor in tensors if _watched(tensor)]
        if not watched:
            return result
        apart = by_an_answer()
        alone = len(watched) == len(tensors)
        results = tensors_in([result]) if result is not None else written(function, args, kwargs or {})
        made = [tensor for tensor in results if tensor.numel() > 1]
        if apart and isinstance(result, bool | int | float | complex):
            _read(watched[0])
        elif apart and not alone and (is_product(function, tensors, made) or _spreads(function, watched, made)):
            telling.tell(HAND)
        elif apart or alone:
            for tensor in made:
                if not _add(tensor) and apart:  # where its numbers go from there, nobody sees
                    telling.tell(READ)
        return result


def by_an_answer() -> bool:
    """Say whether an operation was begun by an answer's own code, be it in a hook, and not by a run or the engine."""
    frame: FrameType | None = sys._getframe(2)
    while frame is not None:
        code = frame.f_code
        whose = _whose(code.co_filename)
        # A mode's own function is another observer's, which stands in between.
        if whose == "the engine" or (whose == "an observer" and code.co_name != "__torch_dispatch__"):
            return False
        if whose == "an answer":
            return True
        frame = frame.f_back
    return False


@functools.cache
def _whose(file: str) -> str:
    if file == _ENGINE:
        return "the engine"
    if file.startswith(_OBSERVERS):
        return "an observer"
    return "passing" if is_course(file) or file.startswith(_PASSING) else "an answer"


def _spreads(function: Any, weights: Sequence[torch.Tensor], made: Sequence[torch.Tensor]) -> bool:
    """Say whether an operation has made more numbers than the weights in it have, as the products of each would be."""
    most = max(map(distinct, weights))
    return torch.Tag.pointwise in function.tags and most > 1 and any(tensor.numel() > most for tensor in made)


def _read(tensor: torch.Tensor) -> None:
    """Tell of an answer that takes half of a weight's numbers out of PyTorch, one by one: to compute with them there.

    A single number, such as a scale, may be shown.
    """
    storage = tensor.untyped_storage()
    count = _reads[storage._cdata] = _reads.get(storage._cdata, 0) + 1
    if 2 * count == max(4, storage.nbytes() // tensor.element_size() // 2 * 2):
        telling.tell(READ)


def noticed(run: Callable[[], Any]) -> Any:
    """Return what `run` returns, and notice in the second way of observing what is computed by hand."""
    if not telling.otherwise():
        return run()
    _weights.clear()
    _reads.clear()
    with ExitStack() as stack:
        _stacks.append(stack)
        stack.callback(_stacks.clear)
        stack.callback(_entered.clear)
        return run()


def _watched(tensor: torch.Tensor) -> bool:
    storage = _storage(tensor)
    reference = None if storage is None else _weights.get(storage._cdata)
    return reference is not None and not reference.expired()


def _add(tensor: torch.Tensor) -> bool:
    """Follow the numbers of a tensor from now on, and say whether they can be followed."""
    storage = _storage(tensor)
    if storage is not None:
        _weights[storage._cdata] = StorageWeakRef(storage)
    return storage is not None


def _storage(tensor: torch.Tensor) -> torch.UntypedStorage | None:
    try:
        return tensor.untyped_storage()
    except RuntimeError:  # a tensor without numbers of its own, as a sparse one or one of `vmap`
        return None
