"""Markdown of somebody else, so changed that a page which shows it runs nothing of it."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

_TAG = re.compile(r"<(?=[A-Za-z/!?])")
# What a link may lead to: the web, mail, a picture attached to the cell, and what lies beside. Entities and
# backslashes can hide any other scheme.
_SAFE = (
    r"(?:https?://[^\s<>&\\]*|mailto:[^\s<>&\\:]*|attachment:[\w.-]+|[\w./#?=%+-]*)"  # and then the link ends
    r"(?=[\s)`,]|$)"
)
_LINK = re.compile(rf"\](?=\s*\(\s*(?!{_SAFE})|\s*:\s*(?!{_SAFE}))")
MAX_MARKDOWN = 50_000  # characters; what is longer takes a converter long
MAX_FORMULAS = 100  # in one cell: it looks for the end of each, to the end of the cell
_MATHS = re.compile(r"\\(?=href|require|style|cssId|class)")


def inert(markdown: str) -> str:
    """Return Markdown with a space in each HTML tag, in each link to what is no page or file, and in MathJax's links.

    nbgrader, like Jupyter's own converters, turns Markdown into HTML as it is: tags and `javascript:` links would run
    in the browser of the teacher, who is logged in. Text, code and formulas stay readable.
    """
    return _MATHS.sub(r"\\ ", _LINK.sub("] \N{ZERO WIDTH SPACE}", _TAG.sub("< ", markdown)))


def converts(markdown: str) -> bool:
    """Tell whether nbconvert makes HTML of this Markdown: where it fails in one cell, nbgrader writes no feedback.

    It does so for a picture that is attached to the cell and not there, as those of learners are not. What would take
    it long is not tried.
    """
    if len(markdown) > MAX_MARKDOWN or markdown.count("\\begin") > MAX_FORMULAS:
        return False
    try:
        _converter()(markdown)
    except Exception:  # whatever a converter does not expect
        return False
    return True


@cache
def _converter() -> Any:
    from nbconvert.filters.markdown import markdown2html

    return markdown2html
