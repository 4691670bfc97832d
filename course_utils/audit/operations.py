"""The full tier: every function of PyTorch's that the learner's code calls, with its line."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from typing import Any

import torch
from torch.overrides import TorchFunctionMode, _get_current_function_mode, _pop_mode, _push_mode

from course_utils.audit.desk import Desk
from course_utils.audit.events import Op, sequence_now
from course_utils.audit.lines import Spot

# Lines are kept for so many operations.
_MOST = 20_000

# So many functions are remembered with their names. PyTorch has some 1,500.
_FUNCTIONS = 4_000

# Properties that make a tensor. All others only say something, or hold nothing that the watch has not heard of.
_MAKING = frozenset(f"{name}.__get__" for name in ("data", "T", "mT", "H", "mH", "real", "imag"))


_Hearer = tuple[type[Any], Callable[[Op], None]]  # a check's class, and its method


class Lines:
    """Where operations were called from, by the sequence numbers of their nodes."""

    def __init__(self) -> None:
        self._ends: list[int] = []
        self._spots: list[tuple[int, Spot, str]] = []

    def add(self, began: int, ended: int, spot: Spot, name: str) -> None:
        if len(self._ends) >= _MOST:
            del self._ends[: _MOST // 2], self._spots[: _MOST // 2]
        self._ends.append(ended)
        self._spots.append((began, spot, name))

    def of(self, number: int) -> Spot | None:
        """Return the line that made the node with a sequence number."""
        at = bisect_right(self._ends, number)
        if at < len(self._spots) and self._spots[at][0] <= number:
            return self._spots[at][1]
        return None


class Operations(TorchFunctionMode):
    """Tells of functions while the full tier runs. What PyTorch calls in passes and steps of optimizers is left out."""

    def __init__(self, lines: Lines | None = None) -> None:
        super().__init__()
        self.lines = Lines() if lines is None else lines
        self._recorder: Desk | None = None
        self._wanted: dict[str, list[_Hearer]] = {}
        self._every: list[_Hearer] = []
        self._known: dict[Any, tuple[str, tuple[_Hearer, ...] | None]] = {}

    @staticmethod
    def spots_of(operations: Operations | None) -> Lines:
        return Lines() if operations is None else operations.lines

    def begin(self, recorder: Desk) -> None:
        self._recorder = recorder
        for check in recorder.checks:
            for name in check.functions:
                (self._every if name == "*" else self._wanted.setdefault(name, [])).append(
                    (type(check), check.function)
                )
        self.__enter__()  # type: ignore[no-untyped-call]

    def end(self) -> bool:
        """Leave, if no other mode was entered since; else stay and say nothing any more."""
        self._recorder = None
        return self.step_aside()

    def step_aside(self) -> bool:
        """Leave for a while. Returns False where another mode stands above."""
        if _get_current_function_mode() is not self:
            return False
        _pop_mode()
        return True

    def step_back(self) -> None:
        _push_mode(self)

    def __torch_function__(
        self, function: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        recorder = self._recorder
        if recorder is None:
            return function(*args, **kwargs)
        name, hearers = self._known.get(function) or self._know(function)
        if hearers is None or recorder.quiet or torch.compiler.is_compiling():
            return function(*args, **kwargs)
        began = sequence_now()
        out = function(*args, **kwargs)
        ended = sequence_now()
        event = Op(name, function, args, kwargs, out, began, ended)
        if ended > began and event.spot is not None:
            self.lines.add(began, ended, event.spot, name)
        if hearers:
            with torch._C.DisableTorchFunctionSubclass():
                _tell(recorder, hearers, event)
        return out

    def _know(self, function: Callable[..., Any]) -> tuple[str, tuple[_Hearer, ...] | None]:
        """Return a function's name and who wants to hear of it, and remember both; None where nobody looks at all."""
        name = getattr(function, "__name__", "")
        if name == "__get__" or name == "__set__":
            name = f"{getattr(getattr(function, '__self__', None), '__name__', '')}.{name}"
        silent = name.endswith(".__get__") and name not in _MAKING
        every = () if name.endswith(".__get__") and name != "data.__get__" else self._every
        found = name, None if silent else (*every, *self._wanted.get(name, ()))
        if len(self._known) < _FUNCTIONS:
            self._known[function] = found
        return found


def _tell(recorder: Desk, hearers: tuple[_Hearer, ...], event: Op) -> None:
    broken = recorder.broken
    for check, hear in hearers:
        if check not in broken:
            try:
                hear(event)
            except Exception as error:
                broken[check] = f"the check itself failed: {type(error).__name__}: {error}"
