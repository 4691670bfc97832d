"""Every lesson in JupyterLab: opened, run to its end, without an error on the page."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, ConsoleMessage, Page

from course_utils import notebooks
from tests.browser.conftest import Lab, fresh_page, no_errors, run_all, wait_for_notebook

ROOT = Path(__file__).parents[2]
LESSONS = notebooks.lessons(ROOT)
ERRORS = """() => jupyterapp.shell.currentWidget.content.widgets
  .filter((cell) => cell.model.type === 'code' && !(cell.model.getMetadata('tags') || []).includes('raises-exception'))
  .flatMap((cell) => cell.model.outputs.toJSON())
  .filter((output) => output.output_type === 'error' || output.name === 'stderr')
  .map((output) => output.evalue || output.text)"""


CLOSE = "() => { for (const widget of [...jupyterapp.shell.widgets('main')]) widget.dispose(); }"


@pytest.fixture(scope="module")
def desk(browser: Browser, lab: Lab) -> Iterator[Page]:
    """JupyterLab with nothing open. It starts for longer than most lessons run, so it starts once."""
    with fresh_page(browser) as page:
        page.goto(f"{lab.address}/lab?reset")
        page.wait_for_function("window.jupyterapp?.serviceManager.isReady")
        page.evaluate("jupyterapp.restored.then(() => {})")
        yield page


@pytest.mark.parametrize("path", LESSONS, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_a_lesson_runs(desk: Page, path: Path) -> None:
    said: list[str] = []

    def note(message: ConsoleMessage) -> None:
        said.extend([message.text] * (message.type == "error"))

    desk.evaluate(CLOSE)
    desk.evaluate(
        "path => void jupyterapp.commands.execute('docmanager:open', { path })", path.relative_to(ROOT).as_posix()
    )
    wait_for_notebook(desk)
    desk.on("console", note)  # only now: opening, JupyterLab says things of itself
    with no_errors(desk):
        run_all(desk)
    found = desk.evaluate(ERRORS)
    desk.remove_listener("console", note)
    desk.evaluate("jupyterapp.serviceManager.sessions.shutdownAll()")
    assert found == []
    assert said == []
