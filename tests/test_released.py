"""The exercise notebooks as a learner gets them: they run, and every check says "not attempted"."""

import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from jupyter_client import AsyncKernelManager
from jupyter_core.utils import run_sync
from nbclient import NotebookClient
from nbformat.v4 import new_code_cell

from course_utils import notebooks
from course_utils.checks.registry import exercises

ROOT = Path(__file__).parents[1]
RELEASED = sorted((ROOT / "exercises").glob("*.ipynb"))


@pytest.fixture(scope="module")
def kernel(tmp_path_factory) -> Iterator[AsyncKernelManager]:
    """One kernel for all: most of a run would be spent on importing PyTorch. Each notebook finds it empty."""
    manager = AsyncKernelManager(kernel_name="python3")
    progress = tmp_path_factory.mktemp("released") / "progress.sqlite"
    environment = {**os.environ, "COURSE_PROGRESS": str(progress)}
    run_sync(manager.start_kernel)(cwd=str(ROOT / "exercises"), env=environment)
    yield manager
    run_sync(manager.shutdown_kernel)(now=True)


@pytest.mark.parametrize("path", RELEASED, ids=lambda path: path.stem)
def test_every_check_says_not_attempted(path, kernel):
    notebook = notebooks.read(path)
    emptied = new_code_cell("%reset -f")
    notebook.cells.insert(0, emptied)
    client = NotebookClient(notebook, km=kernel)
    try:
        client.execute()
    finally:
        client.kc.stop_channels()
    notebook.cells.remove(emptied)
    told = []
    for cell in notebook.cells:
        if cell.cell_type != "code":
            continue
        failed = [output for output in cell.outputs if output.output_type == "error"]
        assert not [output for output in cell.outputs if output.get("name") == "stderr"]
        if cell.metadata.get("nbgrader", {}).get("grade"):
            (error,) = failed
            assert error.ename == "CheckFailed"
            told.append(re.match(r"(\w+): not attempted\.", error.evalue)[1])
        else:
            assert not failed
    assert told == [exercise.id for exercise in exercises().values() if exercise.lesson == path.stem]


@pytest.mark.parametrize("path", RELEASED, ids=lambda path: path.stem)
def test_no_answer_is_left(path):
    text = path.read_text(encoding="utf-8")
    assert "SOLUTION" not in text
    master = notebooks.read(ROOT / "solutions" / path.name)
    for cell in master.cells:
        if notebooks.BEGIN in cell.source:
            answer = cell.source.partition(notebooks.BEGIN)[2].partition(notebooks.END)[0]
            assert answer.strip() not in "\n".join(other.source for other in notebooks.read(path).cells)


@pytest.mark.parametrize("path", RELEASED, ids=lambda path: path.stem)
def test_nbgrader_releases_the_same_cells(path, tmp_path):
    """nbgrader's own preprocessors make of a master what `course build` makes of it."""
    from nbgrader.preprocessors import ClearOutput, ClearSolutions
    from traitlets.config import Config

    config = Config()
    config.ClearSolutions.code_stub = {"python": notebooks.STUB}
    master = notebooks.read(ROOT / "solutions" / path.name)
    theirs, _ = ClearSolutions(config=config).preprocess(master, {})
    theirs, _ = ClearOutput(config=config).preprocess(theirs, {})
    ours = notebooks.read(path)
    assert [cell.source for cell in theirs.cells] == [cell.source for cell in ours.cells]
    assert [cell.metadata for cell in theirs.cells] == [cell.metadata for cell in ours.cells]


def test_nbgrader_accepts_the_masters_metadata():
    from nbgrader.preprocessors import CheckCellMetadata

    for path in sorted((ROOT / "solutions").glob("*.ipynb")):
        CheckCellMetadata().preprocess(notebooks.read(path), {})
