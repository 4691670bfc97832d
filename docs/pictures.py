"""The two pictures of README.md, made from live runs: `make pictures` writes them beside this file.

Needs Chromium, as the browser tests do.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import torch
from playwright.sync_api import Page, sync_playwright

from course_utils import explain, record_backward, step
from course_utils.explain.card import html
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


def shoot(page: Page, path: Path, name: str, presses: int = 0) -> None:
    page.goto(path.as_uri())
    for _ in range(presses):
        page.keyboard.press("Tab" if page.evaluate("document.activeElement === document.body") else "ArrowRight")
    box = page.locator("body").bounding_box()
    assert box is not None
    page.screenshot(path=HERE / name, clip={"x": 0, "y": 0, "width": 820, "height": box["y"] + box["height"] + 12})
    print(f"wrote {HERE.name}/{name}")


def main() -> None:
    with tempfile.TemporaryDirectory() as scratch, sync_playwright() as playwright:
        folder = Path(scratch)
        browser = playwright.chromium.launch(executable_path=chromium(playwright), args=BROWSER_OPTIONS)
        page = browser.new_page(viewport={"width": 820, "height": 900})
        shoot(page, stepper(folder), "stepper.png", presses=9)
        shoot(page, card(folder), "card.png")
        browser.close()


if __name__ == "__main__":
    main()
