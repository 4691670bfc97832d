"""Sentences and headings, as HTML and as anchors."""

from __future__ import annotations

import re
from html import escape


def marked(text: str) -> str:
    """Return a sentence as HTML: escaped, with what stands between backticks as code."""
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(text))


def anchor(heading: str) -> str:
    """Return a heading as Jupyter makes an anchor of it: without markup, spaces as dashes."""
    return heading.replace("`", "").strip().replace(" ", "-")
