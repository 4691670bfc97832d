"""A short memory of backward passes, so that a second one over the same graph can be told from others.

Noted are numbers and code positions: no tensor, node or frame is kept. Node numbers (`_sequence_nr`) grow with time
within a thread, so a node with a lower number than the count at a pass existed when that pass began.
"""

from __future__ import annotations

import itertools
import sys
import threading
from collections import deque
from collections.abc import Callable
from types import CodeType
from typing import Any, NamedTuple

import torch

from course_utils.explain.ownership import is_learners

# A failing pass is told from so many passes before it.
REMEMBERED = 256


class Pass(NamedTuple):
    """One backward pass: its thread, how many nodes were made before it, where it started, and who called."""

    thread: int
    made: int
    root: int
    retained: bool
    code: CodeType
    instruction: int

    @property
    def line(self) -> int:
        """The line that called it."""
        return self.position[0] or self.code.co_firstlineno

    @property
    def position(self) -> tuple[int | None, int | None, int | None, int | None]:
        """The call itself: first and last line, first and last column."""
        return next(itertools.islice(self.code.co_positions(), self.instruction // 2, None), (None,) * 4)

    def started_from(self, tensor: torch.Tensor) -> bool:
        """Return whether this pass began at a tensor that is alive now.

        It did if it began at the same address, and the tensor's node was there already: then so was the tensor, and
        nothing else could have been at its address.
        """
        node = tensor.grad_fn
        return id(tensor) == self.root and node is not None and node._sequence_nr() < self.made


_passes: deque[tuple[Any, ...]] = deque(maxlen=REMEMBERED)
_original: Callable[..., Any] | None = None
_home: Any = torch.autograd


def remember() -> None:
    """Begin to note passes. Where this is already so, nothing changes.

    What is paid at every pass is as little as can be: a plain tuple, which is made into a Pass when it is asked for.
    """
    global _original
    if _original is not None:
        return
    run = _original = _home._engine_run_backward
    count, ident, note = torch._C._autograd._get_sequence_nr, threading.get_ident, _passes.append
    frame_of, method = sys._getframe, torch.Tensor.backward.__code__

    def _engine_run_backward(
        outputs: Any, seeds: Any, retain: Any, create: Any, inputs: Any, allow_unreachable: Any, accumulate_grad: Any
    ) -> Any:
        try:
            caller: Any = frame_of(2)
            code = caller.f_code
            if code is method:
                caller = caller.f_back
                code = caller.f_code
            note((ident(), count(), id(outputs[0]), retain, code, caller.f_lasti))
        except Exception:  # a pass that nobody's code called: it is not noted, and runs
            pass
        try:
            return run(outputs, seeds, retain, create, inputs, allow_unreachable, accumulate_grad)
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


def remembering() -> bool:
    """Return whether passes are noted."""
    return _original is not None


def before_the_last() -> list[Pass]:
    """Return the noted passes of this thread, the oldest first, without the last one: that is the one that failed."""
    here = threading.get_ident()
    return [Pass(*it) for it in _passes if it[0] == here][:-1]


def is_learners_pass(it: Pass) -> bool:
    """Return whether the learner's own line started a pass, and no library for them."""
    return is_learners(it.code.co_filename)
