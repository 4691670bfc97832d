"""JupyterLab on a copy of the course, in a real headless browser."""

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Error, Page, Playwright, expect, sync_playwright

from course_utils import copies, doctor
from docs.site import build

ROOT = Path(__file__).parents[2]
SERVER_OPTIONS = (
    *("--no-browser", "--allow-root", "--IdentityProvider.token=", "--LabApp.news_url="),
    *("--LabApp.expose_app_in_browser=True", "--ServerApp.root_dir=."),
)
BROWSER_OPTIONS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-dev-shm-usage"]


# The first check of a session imports much of PyTorch, and two tests run at a time.
expect.set_options(timeout=60_000)


class Lab(NamedTuple):
    """A running JupyterLab: where it answers, and the folder that it shows."""

    address: str
    folder: Path


def chromium(playwright: Playwright) -> str:
    """Return a Chromium to run: $CHROMIUM, an installed one, or the one that Playwright fetched."""
    found = doctor.chromium() or playwright.chromium.executable_path
    if not Path(found).exists():
        message = "no Chromium: install it, or run `.venv/bin/playwright install chromium`"
        if os.environ.get("CI"):
            pytest.fail(message)
        pytest.skip(message)
    return found


@pytest.fixture(scope="package")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """Serve a copy of the notebooks, and beside it a learner's copy: what a test types must not reach the sources."""
    folder = tmp_path_factory.mktemp("lab")
    for name in ("notebooks", "exercises"):
        shutil.copytree(ROOT / name, folder / "course" / name, ignore=shutil.ignore_patterns(".ipynb_checkpoints"))
    (folder / "course" / "solutions").mkdir()  # lesson 11 runs the engine of its master
    shutil.copy(ROOT / "solutions" / "11_build_your_own.ipynb", folder / "course" / "solutions")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    environment = {**os.environ, "COURSE_PROGRESS": str(folder / "progress.sqlite")}
    folders = {f"JUPYTER_{kind}_DIR": str(folder / kind.lower()) for kind in ("CONFIG", "DATA", "RUNTIME")}
    environment |= folders
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JUPYTER_DATA_DIR", folders["JUPYTER_DATA_DIR"])  # where the copy is signed
        copies.renew(ROOT, folder / "course" / copies.FOLDER)
    with (folder / "log").open("w") as log:
        server = subprocess.Popen(
            [sys.executable, "-m", "jupyterlab", f"--port={port}", *SERVER_OPTIONS],
            **{"cwd": folder / "course", "env": environment, "stdout": log, "stderr": log, "start_new_session": True},
        )
    address = f"http://127.0.0.1:{port}"
    try:
        _wait_for(address, server, folder / "log")
        yield Lab(address, folder / "course")
    finally:
        os.killpg(server.pid, signal.SIGTERM)
        server.wait(30)


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    """One Chromium for all these tests.

    It ends with them, and not with the session: while it runs, this thread counts as one with an event loop, and
    nbclient, which others test, starts its own.
    """
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(playwright), args=BROWSER_OPTIONS)
        yield browser
        browser.close()


@pytest.fixture(scope="package")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the site, without a warning of Sphinx's, and return its folder."""
    out = tmp_path_factory.mktemp("site") / "site"
    assert build(ROOT, out) == []
    return out


@pytest.fixture
def phone(browser: Browser) -> Iterator[Page]:
    """A page as narrow as a phone."""
    context = browser.new_context(viewport={"width": 390, "height": 800})
    yield context.new_page()
    context.close()


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    """A page of a browser without a past. The test fails if the page logged an error of its own."""
    with fresh_page(browser) as page, no_errors(page):
        yield page


@contextmanager
def fresh_page(browser: Browser) -> Iterator[Page]:
    """Open a page that shares nothing with others; end the kernels that it leaves running."""
    context = browser.new_context(viewport={"width": 1200, "height": 1600})
    page = context.new_page()
    page.set_default_timeout(60_000)
    try:
        yield page
        page.evaluate("window.jupyterapp?.serviceManager.sessions.shutdownAll()")
    finally:
        context.close()


@contextmanager
def no_errors(page: Page) -> Iterator[None]:
    """Fail if the page logs an error of its own meanwhile."""
    errors: list[str] = []

    def note(error: Error) -> None:
        errors.append(str(error))

    page.on("pageerror", note)
    yield
    page.remove_listener("pageerror", note)
    assert not errors


def keeps_out(page: Page) -> list[tuple[str, list[str]]]:
    """Return what axe finds serious on an open page: the rule, and the first elements that break it."""
    # A colour that fades from one mode to the other has no contrast of its own on the way.
    page.add_style_tag(content="* { transition: none !important; animation: none !important; }")
    found = Axe().run(page).response["violations"]
    serious = [it for it in found if it["impact"] in ("serious", "critical")]
    return [(it["id"], [node["html"][:120] for node in it["nodes"][:3]]) for it in serious]


def open_notebook(page: Page, lab: Lab, path: str) -> None:
    page.goto(f"{lab.address}/lab/tree/{path}?reset")
    wait_for_notebook(page)


def wait_for_notebook(page: Page) -> None:
    page.wait_for_selector(".jp-Notebook .jp-Cell")
    page.wait_for_selector(".jp-Notebook-ExecutionIndicator[data-status=idle]")
    # Idle is what it says before there is a kernel, too. To run a cell then would open a dialog.
    page.wait_for_function("jupyterapp.shell.currentWidget?.sessionContext?.session?.kernel?.status === 'idle'")


def run_all(page: Page) -> None:
    """Run the open notebook and wait until the last of its code cells has run."""
    page.evaluate("void jupyterapp.commands.execute('notebook:run-all-cells')")
    # The model is asked and not the page, which has no prompt for a cell that is out of sight or folded.
    page.wait_for_function(
        """() => {
            const models = jupyterapp.shell.currentWidget.content.widgets.map(cell => cell.model);
            const code = models.filter(model => model.type === 'code');
            return code.some(model => model.executionCount === code.length);
        }""",
        timeout=120_000,
    )


def _wait_for(address: str, server: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and server.poll() is None:
        try:
            urllib.request.urlopen(f"{address}/api").close()
            return
        except (urllib.error.URLError, ConnectionError):
            time.sleep(0.1)
    raise RuntimeError(f"JupyterLab did not start:\n{log.read_text()}")
