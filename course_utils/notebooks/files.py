"""Notebooks as files: read with a message that names what is wrong, and written in one way."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import nbformat


class NotebookError(Exception):
    """A notebook cannot be read, run or released. The message names the file and the cell."""


def read(path: Path) -> Any:
    """Read a notebook. Raises NotebookError where there is none or it is damaged."""
    try:
        notebook = nbformat.reads(path.read_text(encoding="utf-8"), as_version=4)
        nbformat.validate(notebook)
        nbformat.writes(notebook, version=4).encode()  # fails for text that UTF-8 cannot hold
    except FileNotFoundError as error:
        raise NotebookError(f"{path}: there is no such file") from error
    except Exception as error:  # nbformat raises many kinds for damaged files
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise NotebookError(f"{path}: not a notebook in format 4: {reason}") from error
    return notebook


def to_bytes(notebook: Any) -> bytes:
    """Write a notebook in its normal form."""
    text: str = nbformat.writes(notebook, version=4)
    return (text.rstrip("\n") + "\n").encode()
