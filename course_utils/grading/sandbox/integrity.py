"""Noticing that learner code changed PyTorch, Python or the course, and putting it back."""

from __future__ import annotations

import builtins
import ctypes
import operator
import sys
import types
from collections.abc import Iterable, Iterator
from functools import cache
from typing import Any

import torch
from torch.utils._device import DeviceContext
from torch.utils.hooks import RemovableHandle

# What observers call, apart from the course's own modules and classes. Each name more costs time in every child: to
# look at a thing is to count a reference to it, and so to copy the page that the child shared with its parent.
WATCHED = (
    *("torch", "torch.autograd", "torch.autograd.function", "torch.autograd.graph", "torch.autograd.forward_ad"),
    *("torch.autograd.grad_mode", "torch.nn.functional", "torch.func", "torch._tensor", "torch.utils.hooks"),
    *("torch.utils._python_dispatch", "torch.overrides", "msgspec.msgpack", "gc", "weakref", "copy", "contextlib"),
    *("signal", "time", "collections", "itertools", "numpy", "tracemalloc"),
)
CLASSES = (torch.Tensor, torch.nn.Module, torch.nn.Parameter, torch.autograd.Function, torch.nn.Linear, RemovableHandle)
_PART_NAMES = ("__code__", "__defaults__", "__kwdefaults__")
_map, _id, _len, _every, _bytes = map, id, len, all, bytes
_same = operator.is_
# set_default_dtype binds torch.Storage anew, and torch._dynamo torch.manual_seed when it is imported, which is whenever
# an answer first uses torch.func or an optimizer. Observers and scenes call neither of them: a test holds it.
_CHANGING = {"Storage", "manual_seed"}
_NOT_CODE = (int, float, str, bytes, bool, list, dict, set, tuple, type(None))


def used_by(names: Iterable[str]) -> list[str]:
    """Return the modules of the course that these use, themselves among them, told by what their names stand for.

    Two things are not seen: what a module imports only inside a function, and one of which it has plain data alone, as
    a dict of functions. A test holds that nothing which observes needs such a thing unseen.
    """
    used: dict[str, None] = {}
    waiting = [name for name in names if name in sys.modules]
    while waiting:
        name = waiting.pop()
        if name in used:
            continue
        used[name] = None
        for value in vars(sys.modules[name]).values():
            home = value.__name__ if isinstance(value, types.ModuleType) else getattr(value, "__module__", None)
            if isinstance(home, str) and home.partition(".")[0] == "course_utils" and home in sys.modules:
                waiting.append(home)
    return list(used)


class Original:
    """What the watched modules and classes held when this was made, to compare and to restore."""

    def __init__(self, names: Iterable[str]) -> None:
        """Watch PyTorch, Python and these modules of the course, as far as they are loaded, and their classes."""
        modules = [module for name in dict.fromkeys((*WATCHED, *names)) if (module := sys.modules.get(name))]
        classes = dict.fromkeys(CLASSES) | dict.fromkeys(
            thing
            for module in modules
            for thing in vars(module).values()
            if isinstance(thing, type) and thing.__module__.startswith("course_utils")
        )
        self._holders: list[tuple[Any, str, dict[str, Any]]] = [
            *((module, module.__name__, _code_in(module)) for module in modules),
            *((kind, f"{kind.__module__}.{kind.__qualname__}", _code_in(kind)) for kind in classes),
            (builtins, "builtins", _code_in(builtins)),
        ]
        functions = dict.fromkeys(
            function
            for holder, _, held in self._holders
            if isinstance(holder, types.ModuleType | type)
            for value in held.values()
            if isinstance(function := _function(value), types.FunctionType)
        )
        # Comparing all values of a holder, or all functions, at once takes a tenth of the time of one by one. What else
        # changes, as the numbers of hooks do, costs a look at its own holder only.
        self._values = [vars(holder).values() for holder, _, _ in self._holders]
        self._before = [list(values) for values in self._values]
        self._functions = list(functions)
        self._parts = [[getattr(function, name) for name in _PART_NAMES] for function in self._functions]
        self._words = list(_map(_words, self._functions))
        self._written = list(_map(_bytes, self._words))

    def restore(self) -> list[str]:
        """Put everything back, and return the names of what had been changed."""
        changed = [name for holder, name in self._differences()]
        if list(_map(_bytes, self._words)) != self._written:
            for function, words, written, parts in zip(
                self._functions, self._words, self._written, self._parts, strict=True
            ):
                if _bytes(words) != written:
                    changed.append(f"{function.__module__}.{function.__qualname__}")
                    for name, value in zip(_PART_NAMES, parts, strict=True):
                        setattr(function, name, value)
        while torch._C._len_torch_function_stack():
            if type(torch._C._pop_torch_function_stack()) is DeviceContext:  # by torch.set_default_device
                torch._GLOBAL_DEVICE_CONTEXT.device_context = None
            else:
                changed.append("the stack of torch function modes")
        while torch._C._len_torch_dispatch_stack():
            changed.append("the stack of torch dispatch modes")
            torch._C._pop_torch_dispatch_stack(None)
        return list(dict.fromkeys(changed))

    def _differences(self) -> Iterator[tuple[Any, str]]:
        """Yield what differs, after putting it back."""
        for (holder, name, held), values, before in zip(self._holders, self._values, self._before, strict=True):
            if _len(values) == _len(before) and _every(_map(_same, values, before)):
                continue
            now = vars(holder)
            for key, value in held.items():
                if now.get(key) is not value:
                    yield holder, f"{name}.{key}"
                    setattr(holder, key, value)
            if len(now) != len(held):
                for key in [key for key in now if key not in held and _shadows(holder, key)]:
                    yield holder, f"{name}.{key}"
                    delattr(holder, key)


def _words(function: types.FunctionType) -> ctypes.Array[ctypes.c_size_t]:
    """Return the memory in which a function holds its code and its defaults.

    Who asks for them by name raises an audit event each time, and the sandbox listens to those: for a thousand of them
    that takes 2 ms, this 0.1. Nor is a reference counted, for which a child would copy a page.
    """
    return (ctypes.c_size_t * _len(_PART_NAMES)).from_address(_id(function) + _place_of_parts())


@cache
def _place_of_parts() -> int:
    """Return how far into a function the words for its parts begin. They follow each other in CPython 3.11 to 3.14."""

    def function(one: int = 1, *, two: int = 2) -> None: ...

    words = ctypes.c_size_t * (types.FunctionType.__basicsize__ // ctypes.sizeof(ctypes.c_size_t))
    found = list(words.from_address(_id(function)))
    wanted = [_id(getattr(function, name)) for name in _PART_NAMES]
    places = [at for at in range(_len(found)) if found[at : at + _len(wanted)] == wanted]
    if not places:
        raise RuntimeError(f"functions of Python {sys.version.split()[0]} hold their code and defaults elsewhere")
    return places[0] * ctypes.sizeof(ctypes.c_size_t)


def _code_in(holder: Any) -> dict[str, Any]:
    return {
        key: value for key, value in vars(holder).items() if not isinstance(value, _NOT_CODE) and key not in _CHANGING
    }


def _shadows(holder: Any, key: str) -> bool:
    """Say whether a name that is new in a module or class hides another that was found before."""
    if isinstance(holder, type):
        ours = any(key in vars(base) for base in holder.__mro__[1:])
        return ours and not isinstance(vars(holder)[key], _NOT_CODE)
    return hasattr(builtins, key) and holder is not builtins and not key.startswith("__")


def _function(value: Any) -> Any:
    return value.__func__ if isinstance(value, staticmethod | classmethod) else value
