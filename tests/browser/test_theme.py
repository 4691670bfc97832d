"""Pictures, stepper and predictions on dark pages."""

import io
from pathlib import Path

import nbformat
import pytest
import torch
from axe_playwright_python.sync_playwright import Axe
from PIL import Image
from playwright.sync_api import Locator, Page, expect

from course_utils import draw, predict
from tests.browser.conftest import Lab, open_notebook, run_all
from tests.browser.test_stepper import RECORD, write

SOURCES = (
    RECORD,
    "from course_utils import draw\ndraw((x * y).sin(), x=x, y=y, values=True)",
    "step(recording)",
    "from course_utils import predict\npredict('2 + 2?', lambda: 4, '3', '4')",
    "step(recording).widget()",
)


def light(shown: Locator) -> bool:
    """Say whether a picture's corner is bright, in what the screen shows."""
    shown.scroll_into_view_if_needed()
    corner = Image.open(io.BytesIO(shown.screenshot())).convert("L").getpixel((4, 4))
    assert corner > 200 or corner < 60
    return corner > 200


@pytest.mark.parametrize("system", ["light", "dark"])
def test_the_theme_of_jupyterlab_decides_and_not_the_system(lab: Lab, page: Page, system: str) -> None:
    page.emulate_media(color_scheme=system)
    write(lab, "themes.ipynb", *map(nbformat.v4.new_code_cell, SOURCES))
    open_notebook(page, lab, "themes.ipynb")
    run_all(page)
    frame = page.frame_locator("iframe[title='Backward pass, step by step']")
    shown = (
        page.locator("img.course-picture[alt^='Backward graph']"),
        frame.locator("figure"),
        page.locator(".course-prediction fieldset"),
        page.locator(".jp-OutputArea .course-stepper figure"),
    )
    for theme in ("Dark", "Light", "Dark"):
        page.evaluate(f"jupyterapp.commands.execute('apputils:change-theme', {{ theme: 'JupyterLab {theme}' }})")
        expect(page.locator("body")).to_have_attribute("data-jp-theme-light", str(theme == "Light").lower())
        page.wait_for_timeout(500)
        assert [light(one) for one in shown] == [theme == "Light"] * 4
    page.evaluate("jupyterapp.commands.execute('apputils:change-theme', { theme: 'JupyterLab Light' })")
    page.wait_for_timeout(500)


@pytest.mark.parametrize("system", ["light", "dark"])
def test_elsewhere_the_system_decides(page: Page, tmp_path: Path, system: str) -> None:
    page.emulate_media(color_scheme=system)
    x = torch.tensor(2.0, requires_grad=True)
    form = predict("What is 2 + 2?", lambda: 2 + 2, {"3": "no", "4": "yes"})
    parts = [one._repr_mimebundle_()["text/html"] for one in (draw(x * x, x=x), form)]
    path = tmp_path / "page.html"
    path.write_text(
        f"<!doctype html><html lang=en><title>Page</title><main><h1>Page</h1>{''.join(parts)}</main></html>"
    )
    page.goto(path.as_uri())
    assert light(page.locator("img")) == light(page.locator("fieldset")) == (system == "light")
    page.get_by_role("radio", name="3").click()
    page.locator("summary").click()
    results = Axe().run(page)
    assert results.violations_count == 0, results.generate_report()
