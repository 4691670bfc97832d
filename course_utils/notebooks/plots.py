"""Plots of two builds compared as pictures: rounding changes their bytes, and nothing that can be seen."""

from __future__ import annotations

import base64
import io
from typing import Any

import numpy as np
from matplotlib.image import imread

# By how many of 255 levels the red, green or blue of a pixel may change. A curve whose numbers are rounded otherwise
# lies a small part of a pixel beside the old one: that is 1 level under all settings of `make portable`, and was 7
# with an error of two units added to the last place of every product and sum. A curve moved by a tenth of a pixel
# changes its edges by 25, and another colour by more.
LEVELS = 16

PNG = "image/png"


def alike(one: str, other: str) -> bool:
    """Return whether two PNG pictures, in base64, have one size and differ nowhere by more than `LEVELS`.

    A picture that cannot be decoded is like no other.
    """
    try:
        first, second = _levels(one), _levels(other)
    except (OSError, SyntaxError, ValueError):
        return False
    return first.shape == second.shape and bool(np.abs(first - second).max() <= LEVELS)


def keep_stored(notebook: Any, stored: Any) -> None:
    """Give each plot in `notebook` the bytes of the plot at its place in `stored`, if the two are alike."""
    before = {cell.get("id"): _plots(cell) for cell in stored.cells}
    for cell in notebook.cells:
        for new, old in zip(_plots(cell), before.get(cell.id, []), strict=False):
            if new[PNG] != old[PNG] and alike(new[PNG], old[PNG]):
                new[PNG] = old[PNG]


def _plots(cell: Any) -> list[Any]:
    return [output.data for output in cell.get("outputs", []) if PNG in output.get("data", {})]


def _levels(picture: str) -> Any:
    """Return a picture's levels, of shape (height, width, channels), int16 from 0 to 255."""
    decoded = imread(io.BytesIO(base64.b64decode(picture)), format="png")
    return np.rint(decoded * 255).astype(np.int16)
