"""Noticing that somebody calls the nodes of a graph, and does not have the engine run them."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from torch._C._autograd import _disable_profiler_legacy, _enable_profiler_legacy
from torch._C._profiler import ProfilerConfig, ProfilerState, RecordScope, _ExperimentalConfig

from course_utils.checks.observers import telling

CALLED = "a node called by hand"

# What PyTorch's record says of the engine's own step, in which it runs one node, whose name follows.
_STEP = "autograd::engine::evaluate_function: "
_NODE = RecordScope.BACKWARD_FUNCTION.value

# All of a long training would take twice its time. So the record holds what comes up to the third pass, and of each
# later one, with what follows it, by chance: 2 of 3, 2 of 4, ... Nobody can tell beforehand which.
ALWAYS = 2
_random_bytes = os.urandom

_watched: list[int] = []  # the thread whose nodes are noticed
_open: list[None] = []  # an entry while the record is on


@contextmanager
def noticed() -> Iterator[None]:
    """Tell of nodes that are called by hand in this thread while the body runs.

    PyTorch records each node that runs, whoever runs it, and each step of the engine: a node outside such a step, or a
    second one in it, was called. A node of a `torch.autograd.Function` that is applied is not recorded. Who ends the
    record is told of, too.
    """
    if _watched:
        yield
        return
    _watched[:] = [threading.get_ident()]
    _begin()
    try:
        yield
    finally:
        _end()
        _watched.clear()


def passed(count: int) -> None:
    """Say that a pass begins, the how many-th. The record goes on with it, begins or ends."""
    if threading.get_ident() in _watched:
        if count <= ALWAYS or int.from_bytes(_random_bytes(4)) * count < ALWAYS * 2**32:
            _begin()
        else:
            _end()


def _begin() -> None:
    if _open:
        return
    try:
        settings = ProfilerConfig(ProfilerState.CPU, False, False, False, False, False, _ExperimentalConfig())
        _enable_profiler_legacy(settings)
        _open[:] = [None]
    except RuntimeError:  # somebody else keeps a record
        telling.tell(CALLED)


def _end() -> None:
    if not _open:
        return
    _open.clear()
    try:
        called = any(map(_has_calls, _disable_profiler_legacy()))
    except RuntimeError:
        called = True
    if called:
        telling.tell(CALLED)


def _has_calls(thread: Iterable[Any]) -> bool:
    """Say whether in the record of one thread a node ran outside the engine's steps."""
    events = list(thread)
    nodes = [number for number, event in enumerate(events) if event.scope() == _NODE]
    # Nearly always a node's run stands right behind its step's begin, and then the others need no reading.
    return not all(number and _begins(events[number - 1], events[number]) for number in nodes) and _calls_in(events)


def _begins(step: Any, node: Any) -> bool:
    return bool(step.scope() == RecordScope.FUNCTION.value and step.name() == _STEP + node.name())


def _calls_in(events: Iterable[Any]) -> bool:
    open_steps: list[str] = []  # the name of the node that may run next in each thing that is under way, or ""
    for event in events:
        if event.kind() == "pop" and open_steps:
            open_steps.pop()
        elif event.kind() == "push":
            name, scope = event.name(), event.scope()
            if scope == _NODE:
                if not open_steps or open_steps[-1] != name:
                    return True
                open_steps[-1] = ""
            step = scope == RecordScope.FUNCTION.value and name.startswith(_STEP)
            open_steps.append(name.removeprefix(_STEP) if step else "")
    return False
