"""Noticing that a module runs, however it is called."""

from __future__ import annotations

import traceback
import types
import weakref
from collections.abc import Callable
from typing import Any

from torch import nn
from torch.utils import checkpoint
from torch.utils.checkpoint import _StopRecomputationError

from course_utils.checks.frames import is_course
from course_utils.checks.observers import by_hand, forwards, telling
from course_utils.checks.observers.forwards import Forward

Told = Callable[[nn.Module, tuple[Any, ...], Any], None]

# What is told beside the runs themselves: those of copies, all that began, the runs of its first part, and those that
# an error ended. Who goes through a module's layers without running it is seen by the difference.
COPIES, BEGUN, PART, CUT = " of copies", " begun", " of its first part", " cut"


def notice(module: nn.Module, told: Told, begins: Callable[[], None] | None = None, name: str = "") -> None:
    """Call `told(module, inputs, result)` after each run of a module: by a call, by `forward`, in a copy or a thread.

    `begins` is called before each. Inputs given by name come after the others. A hook sees only calls: an answer that
    calls `model.forward(x)` would count as none, a right one and one that hides its runs alike. Where an answer may go
    through the layers one by one, notice a layer instead. `name` is that of the observation's entry that counts these
    runs, where there is one: under it each is told to who listens, when it is counted.
    The module's hooks, type and state are as before; what it holds more is its own `forward`.
    """
    original = weakref.ref(module)

    def tell(runs: nn.Module) -> None:
        if name:
            telling.tell(name if runs is original() else name + COPIES)

    def watched(self: nn.Module, run: Forward, *inputs: Any, **named: Any) -> Any:
        if name:
            telling.tell(name + BEGUN)
        by_hand.begins((*inputs, *named.values()))
        if begins is not None:
            tell(self)
            begins()
        try:
            result = run(self, *inputs, **named)
        except BaseException as error:
            if name and not _by_others(error):
                telling.tell(name + CUT)
            raise
        if begins is None:
            tell(self)
        told(self, (*inputs, *named.values()), result)
        return result

    def part_watched(self: nn.Module, run: Forward, *inputs: Any, **named: Any) -> Any:
        telling.tell(name + PART)
        return run(self, *inputs, **named)

    _watch(module, watched)
    by_hand.watch(module)
    part = first_part(module)
    if name and part is not None:
        _watch(part, part_watched)


def _by_others(error: BaseException) -> bool:
    """Say whether it was not the answer that broke a run off.

    A layer of the scene raised the error, as some do: the last to run was the course's own code. Or a checkpoint had
    all that it computes again.
    """
    last = [frame.f_code.co_filename for frame, _ in traceback.walk_tb(error.__traceback__)][-1]
    return is_course(last) or (isinstance(error, _StopRecomputationError) and last == checkpoint.__file__)


def _watch(module: nn.Module, watched: Forward) -> None:
    if telling.otherwise():
        forwards.watch(module, watched)
        return
    before = vars(module).get("forward")  # a module may be watched twice
    inner = None if before is None else before.__func__

    def forward(self: nn.Module, *inputs: Any, **named: Any) -> Any:
        return watched(self, inner or type(self).forward, *inputs, **named)

    forwards.named_after(forward, type(module))
    # A bound method: copy.deepcopy binds the copy's to the copy.
    module.forward = types.MethodType(forward, module)


def first_part(module: nn.Module) -> nn.Module | None:
    """Return the first layer inside a module, which runs whenever that does; None where there is none."""
    inside = (part for part in module.modules() if part is not module)
    return next((part for part in inside if not next(part.children(), None)), None)
