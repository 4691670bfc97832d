"""A short memory of backward passes, so that a second one over the same graph can be told from others.

Noted are numbers and code positions only: no tensor, node or frame. Node numbers (`_sequence_nr`) grow with time
within a thread, so a node with a lower number than the count at a pass existed when that pass began.
"""

from __future__ import annotations

import sys
import threading
from collections import deque
from collections.abc import Callable
from types import CodeType
from typing import Any, NamedTuple

import torch

from course_utils.explain.situation import is_learners

# A failing pass is told from so many passes before it.
REMEMBERED = 256


class Pass(NamedTuple):
    """One backward pass: its thread, how many nodes were made before it, its first root's number, and who called."""

    thread: int
    made: int
    root: int
    retained: bool
    code: CodeType
    instruction: int

    @property
    def line(self) -> int:
        """The line that called it."""
        for at, (start, *_) in enumerate(self.code.co_positions()):
            if at == self.instruction // 2:
                return start or self.code.co_firstlineno
        return self.code.co_firstlineno


_passes: deque[Pass] = deque(maxlen=REMEMBERED)
_original: Callable[..., Any] | None = None
_home: Any = torch.autograd


def remember() -> None:
    """Begin to note passes. Where this is already so, nothing changes."""
    global _original
    if _original is not None:
        return
    run = _original = _home._engine_run_backward
    count, ident, note = torch._C._autograd._get_sequence_nr, threading.get_ident, _passes.append
    frame_of, method = sys._getframe, torch.Tensor.backward.__code__

    def _engine_run_backward(outputs: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            caller: Any = frame_of(2)
            if caller.f_code is method:
                caller = caller.f_back
            root = outputs[0].grad_fn
            number = -1 if root is None else root._sequence_nr()
            note(Pass(ident(), count(), number, bool(args[1]), caller.f_code, caller.f_lasti))
        except Exception:  # a GradientEdge has no grad_fn, and a caller of its own kind other arguments
            pass
        try:
            return run(outputs, *args, **kwargs)
        except BaseException as error:
            # The learner's traceback is to be PyTorch's own, without this frame.
            if error.__traceback__ is not None:
                error.__traceback__ = error.__traceback__.tb_next
            raise

    _home._engine_run_backward = _engine_run_backward


def forget() -> None:
    """Stop noting passes, and forget those noted."""
    global _original
    if _original is not None:
        _home._engine_run_backward = _original
        _original = None
    _passes.clear()


def before_the_last() -> list[Pass]:
    """Return the noted passes of this thread, the oldest first, without the last one: that is the one that failed."""
    mine = [it for it in _passes if it.thread == threading.get_ident()]
    return mine[:-1]


def is_learners_pass(it: Pass) -> bool:
    """Return whether the learner's own line started a pass, and no library for them."""
    return is_learners(it.code.co_filename)
