"""Watching a module's runs at its class, beside a `forward` of its own that is a decoy: the second way of observing.

No type tells the two ways apart: a class has its own `forward` again when the case ends.
"""

from __future__ import annotations

import types
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from torch import nn

from course_utils.checks.observers import by_hand, telling
from course_utils.checks.observers.replacing import replaced

Forward = Callable[..., Any]

# What watches each module's runs, outermost last, and those of whatever holds its decoy: a deep copy, say.
_watching: weakref.WeakKeyDictionary[nn.Module, list[Forward]] = weakref.WeakKeyDictionary()
_of_copies: weakref.WeakKeyDictionary[Forward, list[Forward]] = weakref.WeakKeyDictionary()
_asking: set[type[nn.Module]] = set()  # classes whose runs ask who watches them


def watch(module: nn.Module, watched: Forward) -> None:
    """Call `watched(module, run, *inputs)` in place of each run of a module, in a case that is noticed."""
    ways = _ways_of(module)
    if ways:  # it is noticed already, and has a decoy
        ways.append(watched)
        return
    original = weakref.ref(module)
    runs, calls, results = [0], [0], list[None]()

    def counted(self: nn.Module, run: Forward, *inputs: Any, **named: Any) -> Any:
        result = run(self, *inputs, **named)
        runs[0] += 1
        return result

    def told(module: nn.Module, given: tuple[Any, ...], result: Any) -> None:
        results.append(None)

    def forward(self: nn.Module, *inputs: Any, **named: Any) -> Any:
        result = type(self).forward(self, *inputs, **named)
        calls[0] += 1
        told(self, (*inputs, *named.values()), result)
        return result

    named_after(forward, type(module))
    module.forward = types.MethodType(forward, module)
    _watching[module] = _of_copies[forward] = [watched, counted]
    if type(module) not in _asking:
        by_hand.until_it_ends(_asked(type(module)))

    def touched() -> bool:
        own = original()
        moved = own is not None and getattr(vars(own).get("forward"), "__func__", None) is not forward
        return moved or runs != calls or len(results) != calls[0]

    telling.lay(touched)


def named_after(forward: Forward, kind: type[nn.Module]) -> None:
    """Have a function show itself as the `forward` of a class does: by no name can the ways of observing be told."""
    run = kind.forward
    forward.__module__, forward.__qualname__, forward.__doc__ = run.__module__, run.__qualname__, run.__doc__


def _ways_of(module: nn.Module) -> list[Forward]:
    decoy = getattr(vars(module).get("forward"), "__func__", None)
    return _watching.get(module) or (_of_copies.get(decoy) if isinstance(decoy, types.FunctionType) else None) or []


@contextmanager
def _asked(kind: type[nn.Module]) -> Iterator[None]:
    """Have a class's runs ask who watches the module, while the body runs."""
    run = kind.forward

    def forward(self: nn.Module, *inputs: Any, **named: Any) -> Any:
        ways = _ways_of(self) if type(self) is kind else []
        return _through(ways, run, self, *inputs, **named)

    named_after(forward, kind)
    _asking.add(kind)
    try:
        with replaced(kind, "forward", forward):
            yield
    finally:
        _asking.remove(kind)


def _through(ways: Sequence[Forward], run: Forward, module: nn.Module, *inputs: Any, **named: Any) -> Any:
    if not ways:
        return run(module, *inputs, **named)
    *inner, outer = ways
    return outer(module, lambda self, *given, **more: _through(inner, run, self, *given, **more), *inputs, **named)
