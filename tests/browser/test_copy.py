"""A learner's own copy in JupyterLab: predict, run, unfold."""

from playwright.sync_api import Page, expect

from course_utils import copies
from tests.browser.conftest import Lab, open_notebook, run_all


def test_a_learner_predicts_runs_and_unfolds(lab: Lab, page: Page) -> None:
    open_notebook(page, lab, f"{copies.FOLDER}/notebooks/00_start_here.ipynb")
    expect(page.locator(".jp-OutputArea-output")).to_have_count(0)
    run_all(page)

    question = page.locator(".course-prediction").first
    question.scroll_into_view_if_needed()
    cell = page.locator(".jp-CodeCell", has=question)
    expect(cell.locator(".jp-InputArea-editor")).not_to_be_visible()  # its source holds the reasons
    result = question.locator("details")
    expect(result).not_to_be_visible()
    options = question.locator("label")
    words = options.all_inner_texts()
    options.first.click()
    result.locator("summary").click()
    expect(options.first).to_be_visible()
    assert result.locator("p").inner_text() in [word.strip() for word in words]  # what came out is one of the options
    expect(result.locator("dd")).to_have_count(len(words))  # the reason of each option
    expect(result.locator("dd").last).to_be_visible()

    settled = page.locator(".jp-MarkdownCell details:has(> summary:text-is('After you have run it'))").first
    settled.scroll_into_view_if_needed()
    expect(settled.locator("p").first).not_to_be_visible()
    settled.locator("summary").click()
    expect(settled.locator("p").first).to_be_visible()
