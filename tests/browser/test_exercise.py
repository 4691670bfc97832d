"""A learner in JupyterLab: a wrong answer, its verdict, a right answer, its verdict."""

from playwright.sync_api import Locator, Page, expect

from tests.browser.conftest import Lab, open_notebook

WRONG = "walk = lambda tensor: [tensor.grad_fn]"
RIGHT = """\
def walk(tensor):
    if not tensor.requires_grad:
        return []
    nodes = [torch.autograd.graph.get_gradient_edge(tensor).node]
    for node in nodes:
        nodes += {parent for parent, _ in node.next_functions if parent is not None} - set(nodes)
    return nodes
"""


def cell_with(page: Page, text: str) -> Locator:
    cell = page.locator(".jp-CodeCell", has=page.locator(".jp-InputArea-editor", has_text=text)).first
    cell.scroll_into_view_if_needed()
    return cell


def answer(page: Page, source: str) -> None:
    """Type an answer into the solution cell, and run it and the check below it."""
    cell = cell_with(page, WRONG if source == RIGHT else "walk = ...")
    cell.locator(".cm-content").click()
    page.keyboard.press("Control+a")
    page.keyboard.insert_text(source)
    page.keyboard.press("Shift+Enter")
    page.keyboard.press("Shift+Enter")


def test_a_wrong_then_a_right_answer(lab: Lab, page: Page) -> None:
    open_notebook(page, lab, "exercises/01_graph_structure.ipynb")
    cell_with(page, "from course_utils import").locator(".cm-content").click()
    page.keyboard.press("Shift+Enter")
    verdict = cell_with(page, 'check("walk", walk)').locator(".jp-OutputArea")

    answer(page, "walk = ...  # later")
    expect(verdict).to_contain_text("○ walk: not attempted")
    expect(verdict).not_to_contain_text("CheckFailed")
    answer(page, WRONG)
    expect(verdict).to_contain_text("✘ walk: incorrect")
    expect(verdict).to_contain_text("CheckFailed: walk: incorrect.")
    expect(verdict).not_to_contain_text("Traceback")

    answer(page, RIGHT)
    expect(verdict).to_contain_text("✔ walk: correct")
    expect(verdict).not_to_contain_text("incorrect")


def test_stored_pictures_show_without_running_anything(lab: Lab, page: Page) -> None:
    """A newcomer's copy is not trusted by Jupyter: what it shows before anything runs."""
    open_notebook(page, lab, "notebooks/01_graph_structure.ipynb")
    picture = page.locator(".jp-OutputArea img[alt^='Backward']").first
    picture.scroll_into_view_if_needed()
    expect(picture).to_be_visible()
    assert picture.evaluate("image => image.complete && image.naturalWidth") > 100
