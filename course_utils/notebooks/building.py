"""What `course build` does: execute lessons and masters, and write what every notebook should hold."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from course_utils.ask.entries import EntryError
from course_utils.ask.page import PAGE, page
from course_utils.notebooks.exercises import release
from course_utils.notebooks.files import NotebookError, read, to_bytes
from course_utils.notebooks.plots import keep_stored
from course_utils.notebooks.running import run

# Where the notebooks stand that a build executes: lessons, what goes deeper than they, questions, and masters.
FOLDERS = ("notebooks", "notebooks/deeper", "notebooks/questions", "solutions")


def build(root: Path, names: Iterable[str] = ()) -> dict[Path, bytes]:
    """Return what every built notebook under `root` should hold, by path; nothing is written.

    The notebooks of `FOLDERS` are executed in fresh kernels and normalised; exercises/ is released from the masters.
    The page of all questions is made from them. A plot that looks like the stored one keeps its bytes. `names` limits
    this to notebooks whose file name begins with one of them.

    Raises NotebookError for the first notebook that cannot be built; one that cannot be read starts no kernel.
    """
    chosen = sources(root, names)
    stored = {path: read(path) for path in chosen}
    built: dict[Path, bytes] = {}
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for path, notebook in zip(chosen, pool.map(run, chosen), strict=True):
            keep_stored(notebook, stored[path])
            built[path] = to_bytes(notebook)
            if path.parent.name == "solutions":
                built[root / "exercises" / path.name] = to_bytes(release(notebook, path))
    if any(path.parent.name == "questions" for path in chosen):
        try:
            built[root / PAGE] = page(root).encode()
        except EntryError as error:
            raise NotebookError(str(error)) from error
    return built


def sources(root: Path, names: Iterable[str] = ()) -> list[Path]:
    """Return the notebooks of `FOLDERS` under `root`, or those whose file name begins with one of `names`.

    Raises NotebookError where there are none.
    """
    chosen = tuple(names)
    found = [
        path
        for folder in FOLDERS
        for path in sorted((root / folder).glob("*.ipynb"))
        if not chosen or path.name.startswith(chosen)
    ]
    if not found:
        wanted = f" that begin with {' or '.join(chosen)}" if chosen else ""
        raise NotebookError(f"no notebooks{wanted} in {root / 'notebooks'} or {root / 'solutions'}")
    return found


def lessons(root: Path) -> list[Path]:
    """Return the notebooks under `root` that are read from start to end: the lessons, then what goes deeper."""
    return [path for path in sources(root) if path.parent.name not in ("questions", "solutions")]


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
