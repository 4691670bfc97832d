"""Running a cell once more with every call of PyTorch's watched, to find the line that wrote into a tensor."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from types import FrameType
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from course_utils.explain.ownership import is_learners
from course_utils.graph.alive import tensors_in
from course_utils.graph.memory import memory_of

# So many writes are remembered; a cell that writes more often is one of a long loop, whose last ones matter.
MAX_WRITES = 10_000


@dataclass(frozen=True)
class Write:
    """One call that raised a tensor's version: the tensor's memory, its version after it, and where it stands."""

    memory: Any
    version: int
    function: str
    file: str
    line: int


class Writes(TorchFunctionMode):
    """Notes which calls change which tensors. It compares versions before and after, and keeps no tensor."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[Write] = []

    def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        given = [it for it in tensors_in((*args, *kwargs.values())) if not it.is_inference()]
        before = [it._version for it in given]
        result = function(*args, **kwargs)
        for tensor, version in zip(given, before, strict=True):
            if tensor._version > version and len(self.found) < MAX_WRITES:
                frame = _learners(sys._getframe(1))
                if frame is not None:
                    name = getattr(function, "__name__", "?")
                    where = frame.f_code.co_filename, frame.f_lineno
                    self.found.append(Write(memory_of(tensor)[0], tensor._version, name, *where))
        return result

    def last_into(self, tensor: torch.Tensor) -> Write | None:
        """Return the write that gave a tensor its present version; None where none was seen."""
        key = memory_of(tensor)[0]
        found = [it for it in self.found if it.memory == key and it.version == tensor._version]
        return found[-1] if found else None


def _learners(frame: FrameType | None) -> FrameType | None:
    while frame is not None and not is_learners(frame.f_code.co_filename):
        frame = frame.f_back
    return frame
