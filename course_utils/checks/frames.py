"""Whose code runs: the learner's, a library's, or the course's; and whether a library is being imported."""

from __future__ import annotations

import os
import sysconfig
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from types import FrameType
from typing import Literal

Kind = Literal["learner", "library", "course", "import system"]

_COURSE = str(Path(__file__).parents[1]) + os.sep
_LIBRARIES = tuple(
    {str(sysconfig.get_path(name)) + os.sep for name in ("stdlib", "platstdlib", "purelib", "platlib")} | {"<frozen "}
)
# Where else pip and Debian install: for a user, or in the environment below a virtual one.
_INSTALLED = tuple(f"{os.sep}{folder}{os.sep}" for folder in ("site-packages", "dist-packages"))
_IMPORT_SYSTEM = "<frozen importlib._bootstrap"  # and what begins so: <frozen importlib._bootstrap_external>
# Code without a file is typed in, or made by whatever library or learner calls it (by dataclasses, sympy, exec).
_TYPED = ("<ipython-input", "<python-input", "<stdin>", "<console>")


def is_course(file: str) -> bool:
    """Return whether the code in `file` belongs to this package."""
    return file.startswith(_COURSE)


def is_learners(file: str) -> bool:
    """Return whether the code in `file` is neither the course's nor an installed library's."""
    return not file.startswith((_COURSE, *_LIBRARIES)) and not any(folder in file for folder in _INSTALLED)


def learners(frame: FrameType | None) -> Iterator[FrameType]:
    """Yield the frames of the code that the course has called, without those of libraries, innermost first."""
    while frame is not None and not is_course(frame.f_code.co_filename):
        if is_learners(frame.f_code.co_filename):
            yield frame
        frame = frame.f_back


def importing(frame: FrameType | None) -> bool:
    """Return whether what runs in `frame` is a library's import, or Python looking for a module.

    Not so where the learner's code runs as a part of it: a module of the learner's own, or a function that an import
    calls.
    """
    return next((kind for kind in _kinds(frame) if kind != "library"), "course") == "import system"


def inside_import(frame: FrameType | None) -> bool:
    """Return whether a library's import waits for what runs in `frame`, the learner's code included."""
    return any(kinds == ("library", "import system") for kinds in pairwise(_kinds(frame)))


def _kinds(frame: FrameType | None) -> Iterator[Kind]:
    """Yield whose code runs, from the innermost frame out to the course's own, which called the rest."""
    while frame is not None:
        kind = _kind(frame)
        if kind is not None:
            yield kind
        if kind == "course":
            return
        frame = frame.f_back


def _kind(frame: FrameType) -> Kind | None:
    """Return whose code a frame runs, None where its caller's kind says so. A module of the course's is a library."""
    code = frame.f_code
    file = code.co_filename
    if file.startswith(_IMPORT_SYSTEM):
        return "import system"
    if is_course(file):
        return "library" if code.co_name == "<module>" else "course"
    if not is_learners(file):
        return "library"
    return None if file.startswith("<") and not file.startswith(_TYPED) else "learner"
