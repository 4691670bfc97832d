"""The pictures of README.md and TEACHING.md, made from live runs: `make pictures` writes them beside this file.

Needs Chromium, as the browser tests do, and a sandbox, as grading does.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import torch
from playwright.sync_api import Page, sync_playwright

from course_utils import explain, record_backward, step
from course_utils.explain.card import html
from course_utils.grading.controller.pool import grade_all
from course_utils.grading.intake.finding import find
from course_utils.grading.outgoing.page import page_of
from course_utils.grading.outgoing.report import write_report
from course_utils.notebooks import read, to_bytes
from tests.browser.conftest import BROWSER_OPTIONS, chromium

HERE = Path(__file__).parent
STYLE = "<style>body{font:14px/1.45 system-ui,sans-serif;margin:12px;width:780px} pre{margin:0}</style>"
LOOP = """\
import torch
from torch import nn

rnn, readout, state = nn.RNNCell(1, 8), nn.Linear(8, 1), torch.zeros(4, 8)
for chunk in torch.ones(3, 4, 1):
    state = rnn(chunk, state)
    loss = readout(state).square().mean()
    loss.backward()
"""
FORGOTTEN = "three = np.float64(3)\n\ndef slope(x):\n    return three * x.detach() ** 2"


def stepper(folder: Path) -> Path:
    """Save a pass over three operations as a page of its own."""
    x, y = (torch.tensor(value, requires_grad=True) for value in (2.0, 3.0))
    product = x * y
    inner = product + x
    recording = record_backward(inner.square(), x=x, y=y, product=product, inner=inner)
    path = folder / "stepper.html"
    step(recording).save(path)
    return path


def card(folder: Path) -> Path:
    """Save the card that a recurrent loop gets whose state is carried with its graph."""
    script = folder / "train.py"
    script.write_text(LOOP, encoding="utf-8")
    try:
        exec(compile(LOOP, str(script), "exec"), {"__name__": "__main__"})
    except RuntimeError as error:
        found = explain(error)
        last = f"RuntimeError: {str(error).partition(' (')[0]} ..."
    assert found is not None
    path = folder / "card.html"
    path.write_text(f"<!doctype html>{STYLE}<pre>{last}</pre>{html(found)}", encoding="utf-8")
    return path


def report(folder: Path) -> tuple[Path, Path]:
    """Grade a class of three, and return the page of the class and that of Cy, who forgot an import."""
    lesson = "00_start_here"
    changes: dict[str, dict[str, str]] = {
        "Ada": {},
        "Ben": {"first_gradient": "first_gradient = 15"},
        "Cy": {"first_gradient": "first_gradient = ...", "slope": FORGOTTEN},
    }
    for student, answers in changes.items():
        notebook = read(HERE.parent / "solutions" / f"{lesson}.ipynb")
        for cell in notebook.cells:
            cell.source = answers.get(cell.metadata.get("nbgrader", {}).get("grade_id"), cell.source)
        (folder / student).mkdir()
        (folder / student / f"{lesson}.ipynb").write_bytes(to_bytes(notebook))
    results = list(grade_all(find([folder / student for student in changes])))
    pages = write_report(results, folder / "report")
    return pages[0], folder / "report" / page_of("Cy")


def shoot(page: Page, path: Path, name: str, presses: int = 0) -> None:
    """Take a picture of a page after so many presses of a key."""
    page.goto(path.as_uri())
    for _ in range(presses):
        page.keyboard.press("Tab" if page.evaluate("document.activeElement === document.body") else "ArrowRight")
    box = page.locator("body").bounding_box()
    assert box is not None
    bottom = box["y"] + box["height"] + 12
    page.screenshot(path=HERE / name, clip={"x": 0, "y": 0, "width": 820, "height": bottom}, full_page=True)
    print(f"wrote {HERE.name}/{name}")


def main() -> None:
    with tempfile.TemporaryDirectory() as scratch, sync_playwright() as playwright:
        folder = Path(scratch)
        browser = playwright.chromium.launch(executable_path=chromium(playwright), args=BROWSER_OPTIONS)
        page = browser.new_page(viewport={"width": 820, "height": 900})
        shoot(page, stepper(folder), "stepper.png", presses=9)
        shoot(page, card(folder), "card.png")
        for found, name in zip(report(folder), ("report.png", "report-student.png"), strict=True):
            shoot(page, found, name)
        browser.close()


if __name__ == "__main__":
    main()
