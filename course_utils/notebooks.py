"""Notebooks as sources: executed, put into one normal form, and exercises released from their masters."""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import nbformat
from jupyter_client.kernelspec import NoSuchKernel
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError

from course_utils.checks.guidance import BEGIN, END
from course_utils.checks.registry import UnknownExercise, exercise_called

CELL_SECONDS = 120
KERNEL = "python3"
STUB = "# Your answer here."

_CHECK = re.compile(r"^check\((.*)\)$", re.MULTILINE)
_WELL_FORMED = re.compile(r"""["'](\w+)["'], *(\w+)""")
_READABLE_ID = re.compile(r"^(?![0-9a-f]{8}$)(?![0-9a-f]{8}-)[a-z0-9][a-z0-9-]{0,63}$")
_ADDRESS = re.compile(r"\b0x[0-9a-fA-F]{6,}\b")
_METADATA = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}


class NotebookError(Exception):
    """A notebook cannot be read, run or released. The message names the file and the cell."""


def build(root: Path, names: Iterable[str] = ()) -> dict[Path, bytes]:
    """Return what every built notebook under `root` should hold, by path; nothing is written.

    Lessons (notebooks/) and masters (solutions/) are executed in fresh kernels and normalised; exercises/ is
    released from the masters. `names` limits this to notebooks whose file name begins with one of them.

    Raises NotebookError for the first notebook that cannot be built.
    """
    chosen = tuple(names)
    sources = [
        path
        for folder in ("notebooks", "solutions")
        for path in sorted((root / folder).glob("*.ipynb"))
        if not chosen or path.name.startswith(chosen)
    ]
    if not sources:
        wanted = f" that begin with {' or '.join(chosen)}" if chosen else ""
        raise NotebookError(f"no notebooks{wanted} in {root / 'notebooks'} or {root / 'solutions'}")
    built: dict[Path, bytes] = {}
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for path, notebook in zip(sources, pool.map(run, sources), strict=True):
            built[path] = to_bytes(notebook)
            if path.parent.name == "solutions":
                built[root / "exercises" / path.name] = to_bytes(release(notebook, path))
    return built


def write(built: dict[Path, bytes]) -> list[Path]:
    """Write what differs, each file in one step, and return the paths that changed.

    Raises NotebookError where a file cannot be written; what was not yet replaced stays as it was.
    """
    changed = differing(built)
    written: list[tuple[Path, Path]] = []
    try:
        for path in changed:
            path.parent.mkdir(exist_ok=True)
            with tempfile.NamedTemporaryFile(dir=path.parent, suffix=".tmp", delete=False) as file:
                written.append((Path(file.name), path))
                file.write(built[path])
            Path(file.name).chmod(0o644)
        for temporary, path in written:
            temporary.replace(path)
    except OSError as error:
        for temporary, _ in written:
            temporary.unlink(missing_ok=True)
        raise NotebookError(f"{error.filename}: cannot be written: {error.strerror}") from error
    return changed


def differing(built: dict[Path, bytes]) -> list[Path]:
    """Return the paths whose files are missing or hold other bytes."""
    return [path for path, content in built.items() if not path.exists() or path.read_bytes() != content]


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


def run(path: Path) -> Any:
    """Read, name, execute and normalise one notebook. Raises NotebookError naming the cell that fails."""
    notebook = read(path)
    notebook.cells = [cell for cell in notebook.cells if cell.source.strip()]
    name_cells(notebook.cells)
    mark_exercises(notebook.cells, path)
    client = NotebookClient(
        notebook, timeout=CELL_SECONDS, kernel_name=KERNEL, resources={"metadata": {"path": str(path.parent)}}
    )
    with tempfile.TemporaryDirectory() as scratch:
        # Checks that run here are not the reader's progress.
        environment = {**os.environ, "COURSE_PROGRESS": str(Path(scratch) / "progress.sqlite")}
        try:
            with client.setup_kernel(env=environment, stderr=subprocess.DEVNULL):
                for index, cell in enumerate(notebook.cells):
                    _run_cell(client, cell, index, f"{path}, cell {cell.id}")
        except NoSuchKernel as error:
            message = f"{path}: there is no Jupyter kernel called {KERNEL}. Install the course again: `make setup`"
            raise NotebookError(message) from error
    return normalise(notebook, path)


def _run_cell(client: NotebookClient, cell: Any, index: int, place: str) -> None:
    try:
        client.execute_cell(cell, index)
    except CellExecutionError as error:
        raise NotebookError(f"{place}: raised {error.ename}: {error.evalue}") from error
    except CellTimeoutError as error:
        raise NotebookError(f"{place}: still running after {CELL_SECONDS} seconds") from error
    except DeadKernelError as error:
        raise NotebookError(f"{place}: the kernel died") from error
    for output in cell.get("outputs", []):
        if output.output_type == "error" and "nbgrader" in cell.metadata:  # check cells may raise, a master's not
            raise NotebookError(f"{place}: the master's own answer fails: {output.ename}: {output.evalue}")


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


def mark_exercises(cells: list[Any], path: Path) -> None:
    """Write nbgrader's metadata (schema 3): solution cells, and locked check cells with their points.

    A cell with solution markers belongs to the first check that follows it. A check cell may raise, so that
    "run all" goes on to the next exercise.

    Raises NotebookError where a check has no solution cell, no exercise, or another name than its exercise.
    """
    answer = None
    known: set[str] = set()
    for cell in cells:
        if cell.cell_type != "code":
            continue
        if BEGIN in cell.source:
            if END not in cell.source.partition(BEGIN)[2]:
                raise NotebookError(f"{path}, cell {cell.id}: {BEGIN!r} has no {END!r} after it")
            if answer is not None:
                raise NotebookError(f"{path}, cell {answer.id}: no check follows this solution")
            answer = cell
        found = _CHECK.findall(cell.source)
        if not found or path.parent.name != "solutions":
            continue
        parts = _WELL_FORMED.fullmatch(found[0])
        if len(found) > 1 or parts is None or parts[1] != parts[2] or parts[1] in known:
            raise NotebookError(
                f'{path}, cell {cell.id}: a check cell holds one check, of the form check("name", name), '
                f"and each exercise is checked once; this one holds check({'), check('.join(found)})"
            )
        name = parts[1]
        known.add(name)
        if answer is None:
            raise NotebookError(f"{path}, cell {cell.id}: check({name!r}) has no solution cell before it")
        try:
            points = exercise_called(name).points
        except UnknownExercise as error:
            raise NotebookError(f"{path}, cell {cell.id}: {error}") from error
        common = {"schema_version": 3, "task": False}
        answer.metadata["nbgrader"] = {**common, "grade": False, "solution": True, "locked": False, "grade_id": name}
        cell.metadata["nbgrader"] = {
            **{**common, "grade": True, "solution": False, "locked": True},
            **{"grade_id": f"check_{name}", "points": points},
        }
        cell.metadata["tags"] = ["raises-exception"]
        answer = None
    if answer is not None:
        raise NotebookError(f"{path}, cell {answer.id}: no check follows this solution")


def normalise(notebook: Any, path: Path) -> Any:
    """Return the one form in which a notebook is kept: counts from 1, minimal metadata, merged streams.

    Raises NotebookError where an output holds a memory address or a path of this machine.
    """
    count = 0
    cells = []
    for cell in notebook.cells:
        metadata = {key: cell.metadata[key] for key in ("nbgrader", "tags") if cell.metadata.get(key)}
        kept = {"cell_type": cell.cell_type, "id": cell.id, "metadata": metadata, "source": cell.source.strip("\n")}
        if cell.get("attachments"):  # pictures pasted into the text
            kept["attachments"] = cell.attachments
        if cell.cell_type == "code":
            count += 1
            kept |= {"execution_count": count, "outputs": [_output(item, count) for item in _merged(cell.outputs)]}
            _refuse_machine_details(kept["outputs"], f"{path}, cell {cell.id}")
        cells.append(nbformat.from_dict(kept))
    return nbformat.from_dict({"cells": cells, "metadata": _METADATA, "nbformat": 4, "nbformat_minor": 5})


def release(master: Any, path: Path) -> Any:
    """Return the exercise notebook of a master: answers cut out, outputs cleared.

    Raises NotebookError where a marker is left over.
    """
    notebook = nbformat.from_dict(master)
    for cell in notebook.cells:
        if cell.cell_type == "code":
            markers = [line.strip() for line in cell.source.split("\n") if line.strip() in (BEGIN, END)]
            if markers != [BEGIN, END] * (len(markers) // 2):
                raise NotebookError(f"{path}, cell {cell.id}: {BEGIN!r} and {END!r} do not alternate")
            cell.source = without_answers(cell.source)
            cell.outputs, cell.execution_count = [], None
        if BEGIN in cell.source or END in cell.source:
            raise NotebookError(f"{path}, cell {cell.id}: a solution marker is left after the answers are cut out")
    return notebook


def without_answers(source: str) -> str:
    """Replace each region between solution markers by a comment, as nbgrader does."""
    lines, inside = [], False
    for line in source.split("\n"):
        if line.strip() == BEGIN and not inside:
            inside = True
            lines.append(line.partition("#")[0] + STUB)
        elif line.strip() == END and inside:
            inside = False
        elif not inside:
            lines.append(line)
    return "\n".join(lines)


def to_bytes(notebook: Any) -> bytes:
    """Write a notebook in its normal form."""
    text: str = nbformat.writes(notebook, version=4)
    return (text.rstrip("\n") + "\n").encode()


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
