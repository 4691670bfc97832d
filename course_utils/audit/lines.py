"""Which line of the learner's code is running, and what its names stand for."""

from __future__ import annotations

import inspect
import os
import sys
from collections.abc import Iterator
from functools import cache
from types import FrameType
from typing import Any, NamedTuple

from torch import nn

from course_utils.explain import ownership

_MODULES = f"{ownership.TORCH}nn{os.sep}modules"
_CHECKPOINT = f"{ownership.TORCH}utils{os.sep}checkpoint.py"
_ASKING = frozenset({"autograd/__init__.py", "autograd/graph.py", "_tensor.py", "overrides.py"})


class Spot(NamedTuple):
    """One line of one file."""

    file: str
    line: int


is_learners = cache(ownership.is_learners)  # asked for each frame of each event


@cache
def is_torch(file: str) -> bool:
    """Say whether a file is PyTorch's."""
    return file.startswith(ownership.TORCH)


def is_checkpointing(file: str) -> bool:
    """Say whether a file is that of `torch.utils.checkpoint`."""
    return file == _CHECKPOINT


def frames() -> Iterator[FrameType]:
    """Yield the learner's frames that are running, the innermost first."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if is_learners(frame.f_code.co_filename):
            yield frame
        frame = frame.f_back


def between() -> Iterator[FrameType]:
    """Yield the frames between here and the learner's line, the innermost first: what libraries run for it."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and not is_learners(frame.f_code.co_filename):
        yield frame
        frame = frame.f_back


def here() -> Spot | None:
    """Return the learner's line that is running, or None where there is none."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        file = frame.f_code.co_filename
        if is_learners(file):
            return Spot(file, frame.f_lineno)
        frame = frame.f_back
    return None


def spots(limit: int = 4) -> tuple[Spot, ...]:
    """Return the learner's lines that are running, the innermost first."""
    found = []
    for frame in frames():
        found.append(Spot(frame.f_code.co_filename, frame.f_lineno))
        if len(found) == limit:
            break
    return tuple(found)


def called_by_torch(depth: int) -> bool:
    """Say whether the frame `depth` levels above the caller's is PyTorch's own code."""
    return is_torch(sys._getframe(depth + 1).f_code.co_filename)


def asked_directly() -> bool:
    """Say whether nothing of PyTorch's but `backward` and `grad` stands between here and the learner's line."""
    files = (frame.f_code.co_filename for frame in between())
    return all(
        not is_torch(file) or file.removeprefix(ownership.TORCH).replace(os.sep, "/") in _ASKING for file in files
    )


def in_module() -> bool:
    """Say whether a method of one of PyTorch's modules stands between here and the learner's line."""
    return any(frame.f_code.co_filename.startswith(_MODULES) for frame in between())


def names_in(frame: FrameType) -> dict[str, Any]:
    """Return the names of a frame with what they stand for.

    Python keeps the dictionary that it makes for a function's frame, and with it all values: it is emptied here.
    """
    values = frame.f_locals
    found = dict(values)
    if frame.f_code.co_flags & inspect.CO_OPTIMIZED:
        values.clear()
        for name, value in frame.f_globals.items():
            found.setdefault(name, value)
    return found


def module_at(known: dict[str, Any], path: str) -> Any:
    """Return the module that a dotted name stands for in a frame's names; None where it stands for nothing else."""
    first, *rest = path.split(".")
    value = known.get(first)
    for name in rest:
        value = getattr(value, name, None)
    return value if isinstance(value, nn.Module) else None


def name_of(thing: object, limit: int = 4) -> str | None:
    """Return the learner's name for a thing, as the running frames have it: "model", or "self.model"."""
    for number, frame in enumerate(frames()):
        if number == limit:
            break
        found = names_in(frame)
        for name, value in found.items():
            if value is thing and not name.startswith("_"):
                return name
        owner = found.get("self")
        if owner is not None and hasattr(owner, "__dict__"):
            for name, value in {**vars(owner), **(vars(owner).get("_modules") or {})}.items():
                if value is thing:
                    return f"self.{name}"
    return None
