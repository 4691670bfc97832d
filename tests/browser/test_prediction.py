"""A learner commits to a prediction, then sees what the run gave."""

from pathlib import Path

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect

from course_utils import predict


def mark(page: Page, number: int) -> str:
    label = page.locator("label").nth(number)
    text = label.evaluate("label => getComputedStyle(label, '::after').content")
    return "" if text == "none" else text.strip('"').strip()


def test_commit_then_reveal(page: Page, tmp_path: Path) -> None:
    form = predict("What is 2 + 2?", lambda: 2 + 2, "3", "4")._repr_mimebundle_()["text/html"]
    path = tmp_path / "prediction.html"
    path.write_text(
        f"<!doctype html><html lang=en><title>Prediction</title><main><h1>Prediction</h1>{form}</main></html>"
    )
    page.goto(path.as_uri())
    expect(page.get_by_role("group", name="What is 2 + 2?")).to_be_visible()
    expect(page.locator("details")).to_be_hidden()
    assert [mark(page, 0), mark(page, 1)] == ["", ""]

    page.get_by_role("radio", name="3").focus()
    page.keyboard.press("Space")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(page.locator("details p")).to_have_text("4")
    assert [mark(page, 0), mark(page, 1)] == ["\u2718 your prediction", "\u2714 the run"]
    results = Axe().run(page)
    assert results.violations_count == 0, results.generate_report()
