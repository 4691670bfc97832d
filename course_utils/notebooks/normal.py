"""The one form in which a notebook is kept."""

from __future__ import annotations

import os
import re
import tempfile
from pathlib import Path
from typing import Any

import nbformat

from course_utils.notebooks.files import NotebookError

_READABLE_ID = re.compile(r"^(?![0-9a-f]{8}$)(?![0-9a-f]{8}-)[a-z0-9][a-z0-9-]{0,63}$")
# The tag of a cell whose output is the machine's own, as seconds are, and is not stored. Such a cell has nbval's own
# tag, too, which keeps it from being compared.
LIVE = "live"
# Tags of cells whose source is folded: a prediction's holds the reasons, which come after the choice.
_FOLDED = {"predict", "folded"}
_ADDRESS = re.compile(r"\b0x[0-9a-fA-F]{6,}\b")
_METADATA = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}


def name_cells(cells: list[Any]) -> None:
    """Give readable ids to cells without one: the last heading and a number. Ids that are readable stay."""
    taken: set[str] = set()
    for cell in cells:
        if not _READABLE_ID.match(cell.get("id", "")) or cell.id in taken:
            cell.id = ""
        taken.add(cell.id)
    heading = "start"
    for cell in cells:
        title = re.search(r"^#+ +(.+)$", cell.source, re.MULTILINE) if cell.cell_type == "markdown" else None
        if title:
            heading = re.sub(r"[^a-z0-9]+", "-", title[1].lower()).strip("-")[:40].strip("-")
        if not cell.id:
            numbers = (f"{heading}-{number}" for number in range(2, len(cells) + 2))
            cell.id = next(name for name in (heading, *numbers) if name not in taken)
            taken.add(cell.id)


def normalise(notebook: Any, path: Path) -> Any:
    """Return the one form in which a notebook is kept: counts from 1, little metadata, merged streams, no LIVE outputs.

    Raises NotebookError where an output holds a memory address or a path of this machine.
    """
    count = 0
    cells = []
    for cell in notebook.cells:
        metadata = {key: cell.metadata[key] for key in ("nbgrader", "tags") if cell.metadata.get(key)}
        if _FOLDED & set(metadata.get("tags", ())):
            metadata["jupyter"] = {"source_hidden": True}
        kept = {"cell_type": cell.cell_type, "id": cell.id, "metadata": metadata, "source": cell.source.strip("\n")}
        if cell.get("attachments"):  # pictures pasted into the text
            kept["attachments"] = cell.attachments
        if cell.cell_type == "code":
            count += 1
            outputs = [] if LIVE in metadata.get("tags", ()) else _merged(cell.outputs)
            kept |= {"execution_count": count, "outputs": [_output(item, count) for item in outputs]}
            _refuse_machine_details(kept["outputs"], f"{path}, cell {cell.id}")
        cells.append(nbformat.from_dict(kept))
    return nbformat.from_dict({"cells": cells, "metadata": _METADATA, "nbformat": 4, "nbformat_minor": 5})


def _merged(outputs: list[Any]) -> list[Any]:
    merged: list[Any] = []
    for output in outputs:
        last = merged[-1] if merged else None
        if output.output_type == "stream" and last is not None and last.get("name") == output.name:
            last.text += output.text
        else:
            merged.append(output)
    return merged


def _output(output: Any, count: int) -> dict[str, Any]:
    kind = output.output_type
    if kind == "stream":
        return {"output_type": kind, "name": output.name, "text": output.text}
    if kind == "error":  # the traceback holds paths and colours; its last line says what happened
        line = f"{output.ename}: {output.evalue}"
        return {"output_type": kind, "ename": output.ename, "evalue": output.evalue, "traceback": [line]}
    kept = {"output_type": kind, "data": dict(output.data), "metadata": dict(output.metadata)}
    return {**kept, "execution_count": count} if kind == "execute_result" else kept


def _refuse_machine_details(outputs: list[Any], place: str) -> None:
    for output in outputs:
        texts = [output.get("text", ""), output.get("evalue", "")]
        texts += [text for kind, text in output.get("data", {}).items() if kind.startswith("text/")]
        for text in map(str, texts):
            found = _ADDRESS.search(text)
            if found:
                raise NotebookError(
                    f"{place}: the output holds a memory address ({found[0]}), which changes on every run"
                )
            for private in {str(Path.home()), str(Path.cwd()), tempfile.gettempdir()} - {"/"}:
                if private + os.sep in text:
                    raise NotebookError(f"{place}: the output holds a path of this machine ({private})")
