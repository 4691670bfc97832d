"""Notebooks as sources: executed, put into one normal form, and exercises released from their masters."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from course_utils.checks.guidance import BEGIN as BEGIN
    from course_utils.checks.guidance import END as END
    from course_utils.notebooks.building import FOLDERS as FOLDERS
    from course_utils.notebooks.building import build as build
    from course_utils.notebooks.building import differing as differing
    from course_utils.notebooks.building import lessons as lessons
    from course_utils.notebooks.building import sources as sources
    from course_utils.notebooks.building import write as write
    from course_utils.notebooks.exercises import STUB as STUB
    from course_utils.notebooks.exercises import mark_exercises as mark_exercises
    from course_utils.notebooks.exercises import release as release
    from course_utils.notebooks.exercises import without_answers as without_answers
    from course_utils.notebooks.files import NotebookError as NotebookError
    from course_utils.notebooks.files import read as read
    from course_utils.notebooks.files import to_bytes as to_bytes
    from course_utils.notebooks.normal import name_cells as name_cells
    from course_utils.notebooks.normal import normalise as normalise
    from course_utils.notebooks.plots import keep_stored as keep_stored
    from course_utils.notebooks.running import run as run

# Each name is loaded when it is first used: `course lab` only copies notebooks, and needs neither PyTorch nor kernels.
_HOME = {
    "BEGIN": "checks.guidance",
    "END": "checks.guidance",
    "FOLDERS": "notebooks.building",
    "STUB": "notebooks.exercises",
    "NotebookError": "notebooks.files",
    "build": "notebooks.building",
    "differing": "notebooks.building",
    "keep_stored": "notebooks.plots",
    "lessons": "notebooks.building",
    "mark_exercises": "notebooks.exercises",
    "name_cells": "notebooks.normal",
    "normalise": "notebooks.normal",
    "read": "notebooks.files",
    "release": "notebooks.exercises",
    "run": "notebooks.running",
    "sources": "notebooks.building",
    "to_bytes": "notebooks.files",
    "without_answers": "notebooks.exercises",
    "write": "notebooks.building",
}

__all__ = list(_HOME)


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"course_utils.notebooks has no {name!r}; it has {', '.join(_HOME)}")
    return getattr(import_module(f"course_utils.{_HOME[name]}"), name)
