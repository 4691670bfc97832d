"""Whose code a file is: the learner's, the course's, PyTorch's, or a library's."""

from __future__ import annotations

import os
import sysconfig
from pathlib import Path

import torch

COURSE = str(Path(__file__).parents[1]) + os.sep
# The course's own code that stands between a learner and PyTorch, and does nothing with tensors of its own.
BETWEEN = (f"{COURSE}explain{os.sep}", f"{COURSE}audit{os.sep}")
TORCH = str(Path(torch.__file__).parent) + os.sep
_LIBRARIES = tuple({str(sysconfig.get_path(name)) + os.sep for name in ("stdlib", "platstdlib", "purelib", "platlib")})
# Code that a library made, and no file holds.
_MADE = ("<frozen ", "<string>", "<__array_function__", "<eval_with_key>", "<torch_package")
_INSTALLED = (f"{os.sep}site-packages{os.sep}", f"{os.sep}dist-packages{os.sep}")


def is_learners(file: str) -> bool:
    """Return whether the code in `file` is neither the course's nor PyTorch's, Python's or an installed package's."""
    if file.startswith((COURSE, TORCH, *_LIBRARIES, *_MADE)):
        return False
    return not any(part in file for part in _INSTALLED)
