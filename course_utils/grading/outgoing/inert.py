"""Markdown of somebody else, so changed that a page which shows it runs nothing of it."""

from __future__ import annotations

import re

_TAG = re.compile(r"<(?=[A-Za-z/!?])")
# What a link may lead to: the web, mail, and what lies beside. Entities and backslashes can hide any other scheme.
_SAFE = r"(?:https?://[^\s<>&\\]*|mailto:[^\s<>&\\:]*|[\w./#?=%+-]*)(?=[\s)`,]|$)"
_LINK = re.compile(rf"\](?=\s*\(\s*(?!{_SAFE})|\s*:\s*(?!{_SAFE}))")
_MATHS = re.compile(r"\\(?=href|require|style|cssId|class)")


def inert(markdown: str) -> str:
    """Return Markdown with a space in each HTML tag, in each link to what is no page or file, and in MathJax's links.

    nbgrader, like Jupyter's own converters, turns Markdown into HTML as it is: tags and `javascript:` links would run
    in the browser of the teacher, who is logged in. Text, code and formulas stay readable.
    """
    return _MATHS.sub(r"\\ ", _LINK.sub("] \N{ZERO WIDTH SPACE}", _TAG.sub("< ", markdown)))
