"""Which data loader is at work: asking its sampler for rows, or fetching them."""

from __future__ import annotations

import sys
from types import FrameType
from typing import Any

from course_utils.audit.lines import is_learners, is_torch

_DEEP = 12


def loading() -> tuple[Any, Any]:
    """Return the iterator of a data loader that asks for the next rows here, and the sampler that it asks."""
    frame: FrameType | None = sys._getframe(1)
    sampler = None
    while frame is not None:
        code = frame.f_code
        if is_torch(code.co_filename):
            if code.co_name == "__iter__" and sampler is None:
                sampler = frame.f_locals.get("self")
            if code.co_name == "_next_index":
                return frame.f_locals.get("self"), sampler
        frame = frame.f_back
    return None, None


def fetching() -> Any:
    """Return the iterator of a data loader that makes a batch here; None where none does."""
    frame: FrameType | None = sys._getframe(1)
    for _ in range(_DEEP):
        if frame is None or is_learners(frame.f_code.co_filename):
            return None
        if frame.f_code.co_name == "_next_data":
            return frame.f_locals.get("self")
        frame = frame.f_back
    return None
