"""The colours of all pictures, for light pages and dark ones.

After Okabe and Ito, darker or lighter where text needs it: colour-blind readers tell them apart, and shapes, words and
strokes say the same again. Text has a contrast of at least 4.5 to 1 on each ground that it stands on.
"""

from __future__ import annotations

from typing import NamedTuple


class Palette(NamedTuple):
    """Grounds and inks of one kind of page."""

    paper: str
    leaf: str  # ground of leaves
    start: str  # ground of where the graph starts
    work: str  # ground of the node at work
    ink: str
    grey: str
    faint: str  # strokes of what is yet to come
    blue: str
    orange: str
    green: str


LIGHT = Palette(
    "#FFFFFF", "#EAF4FB", "#F3F3F3", "#FFF3E6", "#222222", "#5F5F5F", "#8A8A8A", "#0072B2", "#A84300", "#00694D"
)
DARK = Palette(
    "#16181D", "#10303F", "#2B2E35", "#3D2A17", "#E8E8E8", "#A9ADB5", "#7C818A", "#79C0F5", "#FFA866", "#4FD1A5"
)

BLUE, ORANGE, GREEN, INK, GREY = LIGHT.blue, LIGHT.orange, LIGHT.green, LIGHT.ink, LIGHT.grey


def style(selector: str) -> str:
    """Return the style that gives what `selector` matches the colours as CSS variables, light and dark."""
    pairs = zip(Palette._fields, LIGHT, DARK, strict=True)
    colours = " ".join(f"--{name}: light-dark({light}, {dark});" for name, light, dark in pairs)
    return f"{selector}{{{colours}}}{followed(selector)}"


def followed(selector: str) -> str:
    """Return the style by which what `selector` matches follows JupyterLab's theme, elsewhere the reader's system."""
    inside = "" if selector == "body" else f" {selector}"
    return (
        f"{selector}{{color-scheme:light dark}}"
        f'body[data-jp-theme-light="true"]{inside}{{color-scheme:light}}'
        f'body[data-jp-theme-light="false"]{inside}{{color-scheme:dark}}'
    )
