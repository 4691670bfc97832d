"""From the course's notebooks and texts to pages that Sphinx reads: links, and folds where an answer is given."""

from __future__ import annotations

import re
from base64 import b64decode
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from course_utils.copies import SETTLES, folded, notebooks_of
from course_utils.notebooks import read, to_bytes

QUESTIONS = "notebooks/questions/README.md"
TEXTS = (
    "notebooks/README.md",
    QUESTIONS,
    "TEACHING.md",
    "GRADING.md",
    "SECURITY.md",
    "CONTRIBUTING.md",
)

# A link in Markdown to another file of the course; the text may hold brackets in code.
_LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\[\]]*\])*)\]\((?!https?:|attachment:|#)([^)\s#]+)(#[^)\s]+)?\)")


def prepare(root: Path, to: Path) -> None:
    """Write every page that the site has below `to`. Links to other files become plain text."""
    notebooks = [path for path, _ in notebooks_of(root)]
    pages = frozenset([*(path.resolve() for path in notebooks), *((root / name).resolve() for name in TEXTS)])
    for path in notebooks:
        notebook = read(path)
        for before, cell in zip([None, *notebook.cells], notebook.cells, strict=False):
            _prepare(cell, before, path.parent, pages)
            _detach(cell, to / path.relative_to(root))
        _write(to / path.relative_to(root), to_bytes(notebook))
    for name in TEXTS:
        text = linked((root / name).read_text(encoding="utf-8"), (root / name).parent, pages)
        if name == QUESTIONS:  # other wordings stand on the entries' own pages, where the site's search finds them
            text = re.sub(r"<br>.*", "", text)
        _write(to / name, text.encode())


def linked(text: str, folder: Path, pages: Collection[Path]) -> str:
    """Return Markdown from `folder` whose links are as MyST reads them: anchors unquoted, in angle brackets.

    A link to what is none of `pages` becomes its text; pictures stay as they are.
    """

    def renewed(picture: str, label: str, target: str, place: str) -> str:
        if picture:
            return f"![{label}]({target}{place})"
        if (folder / target).resolve() not in pages:
            return label
        return f"[{label}](<{target}{unquote(place)}>)"

    return relinked(text, renewed)


def relinked(text: str, renewed: Callable[[str, str, str, str], str]) -> str:
    """Return Markdown with each link to another file of the course renewed.

    `renewed` gets "!" for a picture, else "", the label, the target, and the place in it with its #.
    """
    return _LINK.sub(lambda found: renewed(*(part or "" for part in found.groups())), text)


def _prepare(cell: Any, before: Any, folder: Path, pages: Collection[Path]) -> None:
    tags = cell.metadata.get("tags", [])
    if cell.cell_type == "markdown":
        cell.source = linked(cell.source, folder, pages)
        if SETTLES in tags:
            cell.source = folded(cell.source, "After you have thought about it")
    elif "predict" in tags:  # its source holds the reasons, which come after the choice
        cell.metadata["tags"] = [*tags, "remove-input"]
    elif "folded" in tags:
        cell.metadata["tags"] = [*tags, "hide-input"]
    elif before is not None and before.cell_type == "markdown" and "**Predict" in before.source:
        cell.metadata["tags"] = [*tags, "hide-output"]


def _detach(cell: Any, page: Path) -> None:
    """Write the pictures attached to a cell beside its page, for Sphinx reads no attachments, and name them there."""
    for name, kinds in cell.pop("attachments", {}).items():
        (content,) = kinds.values()
        picture = page.with_name(f"{page.stem}-{name}")
        _write(picture, b64decode(content))
        cell.source = cell.source.replace(f"](attachment:{name})", f"]({picture.name})")


def _write(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
