"""Running a notebook in a fresh kernel."""

from __future__ import annotations

import os
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from jupyter_client.kernelspec import NoSuchKernel
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError

from course_utils.notebooks.exercises import mark_exercises
from course_utils.notebooks.files import NotebookError, read
from course_utils.notebooks.normal import name_cells, normalise

CELL_SECONDS = 120
KERNEL = "python3"


def run(path: Path, kernel: str | None = None) -> Any:
    """Read, name, execute and normalise one notebook, in a new kernel of the kind `KERNEL` or `kernel`.

    Raises NotebookError naming the cell that fails.
    """
    kernel = kernel or KERNEL
    notebook = read(path)
    notebook.cells = [cell for cell in notebook.cells if cell.source.strip()]
    name_cells(notebook.cells)
    mark_exercises(notebook.cells, path)
    client = NotebookClient(
        notebook, timeout=CELL_SECONDS, kernel_name=kernel, resources={"metadata": {"path": str(path.parent)}}
    )
    with tempfile.TemporaryDirectory() as scratch:
        # Checks that run here are not the reader's progress.
        environment = {**os.environ, "COURSE_PROGRESS": str(Path(scratch) / "progress.sqlite")}
        try:
            with client.setup_kernel(env=environment, stderr=subprocess.DEVNULL):
                for index, cell in enumerate(notebook.cells):
                    _run_cell(client, cell, index, f"{path}, cell {cell.id}")
        except NoSuchKernel as error:
            message = f"{path}: there is no Jupyter kernel called {kernel}. Install the course again: `make setup`"
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
