"""Warnings of PyTorch's, explained as they are given."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from course_utils.explain.explaining import by_rule
from course_utils.explain.explanation import Explanation
from course_utils.explain.situation import situation_of_stack


@contextmanager
def warnings_explained(tell: Callable[[Explanation], None], failed: Callable[[Exception], None]) -> Iterator[None]:
    """Show warnings as before, and then hand what can be said of each to `tell`, once for each code and line."""
    show = warnings.showwarning
    told: set[tuple[str, str, int]] = set()

    def _show(message: Any, category: Any, filename: str, lineno: int, file: Any = None, line: Any = None) -> None:
        show(message, category, filename, lineno, file, line)
        try:
            situation = situation_of_stack(category, str(message), filename, lineno, sys._getframe(1))
            found = None if situation is None else by_rule(situation)
            if found is not None:
                at = found.where[-1] if found.where else None
                key = found.code, "" if at is None else at.file, 0 if at is None else at.line
                if key not in told:
                    told.add(key)
                    tell(found)
        except Exception as error:
            failed(error)

    warnings.showwarning = _show
    try:
        yield
    finally:
        if warnings.showwarning is _show:  # else the learner's code has put its own there
            warnings.showwarning = show
