"""Every lesson in JupyterLab: opened, run to its end, without an error on the page."""

from pathlib import Path

import pytest
from playwright.sync_api import Page

from course_utils import notebooks
from tests.browser.conftest import Lab, open_notebook, run_all

ROOT = Path(__file__).parents[2]
LESSONS = sorted((ROOT / "notebooks").glob("*.ipynb"))
ERRORS = """() => jupyterapp.shell.currentWidget.content.widgets
  .filter((cell) => cell.model.type === 'code' && !(cell.model.getMetadata('tags') || []).includes('raises-exception'))
  .flatMap((cell) => cell.model.outputs.toJSON())
  .filter((output) => output.output_type === 'error' || output.name === 'stderr')
  .map((output) => output.evalue || output.text)"""


@pytest.mark.parametrize("path", LESSONS, ids=lambda path: path.stem)
def test_a_lesson_runs(lab: Lab, page: Page, path: Path) -> None:
    said: list[str] = []
    page.on("console", lambda message: said.append(message.text) if message.type == "error" else None)
    open_notebook(page, lab, f"notebooks/{path.name}")
    said.clear()  # what JupyterLab says of itself when it starts
    run_all(page, sum(cell.cell_type == "code" for cell in notebooks.read(path).cells))
    assert page.evaluate(ERRORS) == []
    assert said == []
