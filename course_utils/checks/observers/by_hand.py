"""Noticing that somebody computes with a module's numbers and does not run the module."""

from __future__ import annotations

import contextlib
import functools
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

from course_utils.checks.frames import is_course
from course_utils.checks.observers import exits, hung_up, telling
from course_utils.checks.observers.operations import distinct, is_elementwise, is_product, written
from course_utils.checks.observers.storages import Storages
from course_utils.graph.alive import tensors_in

HAND = "a run by hand"
READ = "weights read one by one"

# Who began an operation is told by the files of frames, which no assignment to `__name__` changes: past PyTorch's own
# and the course's, its modules and other modes.
_TORCH = str(Path(torch.__file__).parent) + os.sep
_ENGINE, _OBSERVERS = str(torch.autograd.graph.__file__), str(Path(__file__).parent) + os.sep
# They pass on who runs a module, and who asks for numbers.
_BETWEEN = {str(Path(__file__).with_name(name)) for name in ("forwards.py", "exits.py", "hung_up.py")}
_STANDARD = (str(contextlib.__file__), str(functools.__file__))
_CALLING_HOOKS = str(nn.modules.module.__file__)

_stacks: list[ExitStack] = []  # what is left when the case that is noticed ends
_entered: list[object] = []  # the mode that notices, once it is entered in this case
# The numbers of noticed modules, and what was made of these outside of runs: clones, casts, sums. Then what went into
# their runs, and what was made of that there or by the answer, the engine's gradients apart.
_weights, _data = Storages(), Storages()
_met = Storages()  # what weights have met, number by number, before it went into a run
_reads: dict[int, int] = {}  # how many numbers were taken out of each of them, one by one


def watch(module: nn.Module) -> None:
    """Have what is computed with a module's parameters noticed from now on, until `noticed` ends.

    Where no module is watched, no mode is entered: it takes time.
    """
    parameters = list(module.parameters())
    if _stacks and parameters:
        if not _entered:
            _entered.append(_stacks[-1].enter_context(Noticing()))  # type: ignore[no-untyped-call]
            until_it_ends(exits.noticed(_leaves))
            until_it_ends(hung_up.with_frames(by_an_answer))
        _weights.add_all(parameters)


class Noticing(TorchDispatchMode):
    """Tells of each operation of a layer on weights that are watched, where neither a run nor the engine began it."""

    def __torch_dispatch__(
        self, function: Any, types: Sequence[type], args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        result = function(*args, **kwargs) if kwargs else function(*args)
        tensors = list(tensors_in((*args, *kwargs.values()) if kwargs else args))
        watched = [tensor for tensor in tensors if tensor in _weights]
        alone = len(watched) == len(tensors)
        data = not alone and any(tensor.numel() > 1 and tensor in _data for tensor in tensors)
        if result is None:  # an operation in place on a list
            _raise_versions(function, args)
        if not watched and not data:
            return result
        results = tensors_in([result]) if result is not None else written(function, args, kwargs or {})
        _follow(function, tensors, watched, data, result, [tensor for tensor in results if tensor.numel() > 1])
        return result


def _follow(
    function: Any,
    tensors: Sequence[torch.Tensor],
    watched: Sequence[torch.Tensor],
    data: bool,
    result: Any,
    made: Sequence[torch.Tensor],
) -> None:
    """Tell what an operation on weights or data is, or follow what it has made of them."""
    frame = sys._getframe(2)
    who, alone = _began(frame), len(watched) == len(tensors)
    if who == "an answer" and watched:
        if isinstance(result, bool | int | float | complex):
            _read(watched[0])
        elif not alone and (_multiplies(function, tensors, watched, made) or (data and is_elementwise(function))):
            telling.tell(HAND)
        else:
            for tensor in made:
                if not _weights.add(tensor):  # where its numbers go from there, nobody sees
                    telling.tell(READ)
            if is_elementwise(function):
                _met.add_all(tensor for tensor in tensors if tensor.numel() > 1 and tensor not in _weights)
    elif alone or (who == "the engine" and not data and is_elementwise(function) and _is_scaled(tensors, watched)):
        _weights.add_all(made)
    elif data and who != "the engine" and not (who == "an answer" and _mixed(tensors) and _in_the_engine(frame)):
        _data.add_all(tensor for tensor in made if tensor not in _weights)


def _leaves(tensor: torch.Tensor) -> None:
    """Tell of an answer that takes all of a weight's numbers out of PyTorch, itself or by another library."""
    if tensor in _weights and tensor.numel() > 1 and by_an_answer():
        telling.tell(READ)


def begins(given: tuple[Any, ...]) -> None:
    """Follow what goes into a run of a module that is noticed, and tell of what was computed of it with weights."""
    if _entered:
        tensors = [tensor for tensor in tensors_in(given) if tensor.numel() > 1 and tensor not in _weights]
        if any(tensor in _met for tensor in tensors):
            telling.tell(HAND)
        _data.add_all(tensors)


def by_an_answer() -> bool:
    """Say whether an operation was begun by an answer's own code, be it in a hook, and not by a run or the engine."""
    return _began(sys._getframe(2)) == "an answer"


def _began(frame: FrameType | None) -> str:
    """Say who began an operation: "an answer", "the engine", "an observer", which every run has, or "" for nobody."""
    above = ""
    while frame is not None:
        code = frame.f_code
        whose = _whose(code.co_filename)
        # A mode's own function is another observer's, which stands in between.
        if whose != "passing" and not (whose == "an observer" and code.co_name == "__torch_dispatch__"):
            return whose
        if code.co_filename == _CALLING_HOOKS and above in _STANDARD:  # Python's own, hung up as a hook
            return "an answer"
        above = code.co_filename
        frame = frame.f_back
    return ""


def _in_the_engine(frame: FrameType | None) -> bool:
    while frame is not None:
        if frame.f_code.co_filename == _ENGINE:
            return True
        frame = frame.f_back
    return False


@functools.cache
def _whose(file: str) -> str:
    if file == _ENGINE:
        return "the engine"
    if file.startswith(_OBSERVERS) and file not in _BETWEEN:
        return "an observer"
    return "passing" if is_course(file) or file.startswith(_TORCH) or file in _STANDARD else "an answer"


def _multiplies(
    function: Any, tensors: Sequence[torch.Tensor], weights: Sequence[torch.Tensor], made: Sequence[torch.Tensor]
) -> bool:
    """Say whether an operation multiplies weights as a layer does, or has made more numbers than they are."""
    most = max(map(distinct, weights))
    spreads = torch.Tag.pointwise in function.tags and most > 1 and any(tensor.numel() > most for tensor in made)
    whole = any(not it.dtype.is_floating_point and not it.dtype.is_complex for it in weights)  # what was made of them
    return spreads or is_product(function, tensors, made, whole)


def _is_scaled(tensors: Sequence[torch.Tensor], weights: Sequence[torch.Tensor]) -> bool:
    """Say whether weights meet nothing but one number, as in the gradient of what they were multiplied by."""
    return bool(weights) and all(tensor in _weights or distinct(tensor) == 1 for tensor in tensors)


def _mixed(tensors: Sequence[torch.Tensor]) -> bool:
    return any(tensor.numel() > 1 and tensor not in _data for tensor in tensors)


def _raise_versions(function: Any, args: tuple[Any, ...]) -> None:
    """Raise the versions that PyTorch does not where a mode is active: by them an answer could tell that one is."""
    if function.overloadpacket.__name__.startswith("_foreach_") and args:
        torch.autograd.graph.increment_version(args[0])


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
    with in_a_case():
        return run()


@contextmanager
def in_a_case() -> Iterator[None]:
    """Notice what is computed by hand while the body runs."""
    for followed in (_weights, _data, _met, _reads):
        followed.clear()
    with ExitStack() as stack:
        _stacks.append(stack)
        stack.callback(_stacks.clear)
        stack.callback(_entered.clear)
        yield


def until_it_ends(context: AbstractContextManager[None]) -> None:
    """Enter a context that is left when the case that is noticed ends."""
    _stacks[-1].enter_context(context)
