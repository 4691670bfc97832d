"""The stepper in a real browser: as a saved page, in JupyterLab, without a kernel, and where it is not trusted."""

from pathlib import Path

import nbformat
import pytest
import torch
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import FrameLocator, Page, expect

from course_utils import record_backward, step
from tests.browser.conftest import Lab, open_notebook, run_all

RECORD = """\
import torch
from course_utils import record_backward, step

x, y = torch.tensor(2.0, requires_grad=True), torch.tensor(3.0, requires_grad=True)
recording = record_backward((x * y + x) ** 2, x=x, y=y)
"""
# The whole state of the picture: which element has which class, the words and the bar.
STATE = """() => [
  ...[...document.querySelectorAll('.graph, .node, .edge, .line, .beside')].map((one) => one.getAttribute('class')),
  ...[...document.querySelectorAll('.caption, .number, .count')].map((element) => element.textContent),
  ...[...document.querySelectorAll('.fill')].map((element) => element.style.width),
]"""


def scalars() -> tuple[torch.Tensor, torch.Tensor]:
    return torch.tensor(2.0, requires_grad=True), torch.tensor(3.0, requires_grad=True)


@pytest.fixture
def saved(page: Page, tmp_path: Path) -> Page:
    """A page with two passes side by side, opened with the network blocked."""
    x, y = scalars()
    out = (x * y + x) ** 2
    first = record_backward(out, retain_graph=True, x=x, y=y)
    step(first, record_backward(out, x=x, y=y), titles=["kept", "freed"]).save(tmp_path / "pass.html")
    page.route("http*://**", lambda route: route.abort())
    page.goto((tmp_path / "pass.html").as_uri())
    return page


def test_keys_move_the_slider(saved: Page) -> None:
    captions = saved.locator(".caption")
    expect(captions.first).to_have_text("Before the pass. The graph of 5 nodes keeps 4 bytes for it.")
    slider = saved.get_by_role("slider", name="Turn")
    slider.focus()
    saved.keyboard.press("ArrowRight")
    expect(captions.first).to_contain_text(
        "PowBackward0 receives 1, the gradient that the pass starts with, and sends 16 to AddBackward0"
    )
    assert slider.get_attribute("aria-valuetext").startswith("turn 1 of 5: PowBackward0 receives 1")
    saved.keyboard.press("End")
    expect(captions.first).to_have_text("y receives 32: .grad was None and is now 32.")
    expect(captions.last).to_have_text("y receives 32 and adds it to .grad: 32 becomes 64.")
    saved.keyboard.press("ArrowLeft")
    expect(saved.locator(".count")).to_have_text("turn 4 of 5")


def test_it_says_what_to_do_with_scripts_and_without(saved: Page) -> None:
    expect(saved.locator(".how")).to_contain_text("Press Next, or the right arrow key")
    assert saved.context.browser
    plain = saved.context.browser.new_page(java_script_enabled=False)
    plain.goto(saved.url)
    expect(plain.locator("#stepper")).to_contain_text("Press Next, or the right arrow key")
    expect(plain.locator("#stepper")).to_contain_text("the steps stand below as text")
    plain.close()


def test_keys_work_on_the_picture_too(saved: Page) -> None:
    saved.locator(".graph").first.focus()
    saved.keyboard.press("ArrowRight")
    saved.keyboard.press("ArrowRight")
    expect(saved.locator(".count")).to_have_text("turn 2 of 5")


def test_the_node_at_work_and_what_is_freed(saved: Page) -> None:
    for _ in range(3):
        saved.get_by_role("button", name="Next").click()
    kept, freed = saved.locator("figure").all()
    expect(freed.locator(".node.now text").first).to_have_text("MulBackward0")
    fill = freed.locator(".node.now rect").evaluate("rect => getComputedStyle(rect).stroke")
    assert fill == "rgb(168, 67, 0)"
    assert freed.locator(".edge.now").count() == 2
    struck = "lines => lines.map(line => getComputedStyle(line).textDecorationLine)"
    assert freed.locator(".line.spent").evaluate_all(struck) == ["line-through"] * 3
    assert kept.locator(".line.freed").count() == 0
    expect(kept.locator(".number")).to_have_text("4 of 4 bytes kept; a full bar is 4")
    expect(freed.locator(".number")).to_have_text("0 of 4 bytes kept; a full bar is 4")
    assert freed.locator(".fill").evaluate("fill => fill.getBoundingClientRect().width") == 0
    saved.get_by_role("button", name="First").click()
    assert freed.locator(".line.spent").evaluate_all(struck) == ["none"] * 3
    hidden = freed.locator(".line.gradient").evaluate_all("all => all.map(one => getComputedStyle(one).visibility)")
    assert set(hidden) == {"hidden"}


def test_a_step_looks_the_same_from_both_sides(saved: Page) -> None:
    forward = [saved.evaluate(STATE)]
    for _ in range(5):
        saved.get_by_role("button", name="Next").click()
        forward.append(saved.evaluate(STATE))
    backward = [saved.evaluate(STATE)]
    for _ in range(5):
        saved.get_by_role("button", name="Back").click()
        backward.append(saved.evaluate(STATE))
    assert forward == backward[::-1]
    saved.get_by_role("button", name="Last").click()
    saved.locator("input").evaluate("slider => { slider.value = 2; slider.dispatchEvent(new Event('input')); }")
    assert saved.evaluate(STATE) == forward[2]


def test_play_runs_to_the_end_and_can_be_paused(page: Page, tmp_path: Path) -> None:
    x, y = scalars()
    step(record_backward((x * y + x) ** 2, x=x, y=y)).save(tmp_path / "pass.html")
    page.clock.install()  # the page's time stands still, but for what this test lets pass
    page.goto((tmp_path / "pass.html").as_uri())
    count = page.locator(".count")
    page.get_by_role("combobox", name="Speed").select_option("fast")
    page.get_by_role("button", name="Play").click()
    page.clock.run_for(1100)
    expect(count).to_have_text("turn 2 of 5")
    page.get_by_role("button", name="Pause").click()
    page.clock.run_for(5000)
    expect(count).to_have_text("turn 2 of 5")
    page.get_by_role("button", name="Play").click()
    page.clock.run_for(1600)
    expect(count).to_have_text("turn 5 of 5")
    expect(page.get_by_role("button", name="Play")).to_be_visible()


@pytest.fixture
def forward(page: Page, tmp_path: Path) -> Page:
    """A page with the forward pass before the backward pass."""
    x, y = scalars()
    product = x * y
    out = (product + x) ** 2
    step(record_backward(out, x=x, y=y, product=product, out=out)).save(tmp_path / "pass.html")
    page.goto((tmp_path / "pass.html").as_uri())
    return page


def visible(page: Page, selector: str) -> list[str]:
    """Return the texts of the picture that can be seen."""
    seen = "all => all.filter(one => getComputedStyle(one).visibility === 'visible').map(one => one.textContent)"
    return page.locator(selector).evaluate_all(seen)


def test_values_first_then_gradients_on_the_edges(forward: Page) -> None:
    expect(forward.locator(".caption")).to_have_text("Forward, as the code ran. It starts from x = 2, y = 3.")
    expect(forward.locator(".count")).to_have_text("forward, start")
    assert visible(forward, ".graph .line, .beside text") == []
    forward.locator(".graph").focus()
    forward.keyboard.press("ArrowRight")
    expect(forward.locator(".count")).to_have_text("forward 1 of 3")
    expect(forward.locator(".node.now .title")).to_have_text("MulBackward0")
    assert visible(forward, ".graph .line") == ["forward: product = 6", "saved other = y = 3", "saved self = x = 2"]
    assert forward.locator(".edge.now").count() == 2
    heads = "edge => [getComputedStyle(edge).markerStart, getComputedStyle(edge).markerEnd].map(one => one !== 'none')"
    assert forward.locator(".edge").first.evaluate(heads) == [True, False], "the way of values"
    for _ in range(3):
        forward.keyboard.press("ArrowRight")
    expect(forward.locator(".count")).to_have_text("turn 0 of 5")
    expect(forward.locator(".caption")).to_contain_text("Before the pass")
    assert forward.locator(".edge").first.evaluate(heads) == [False, True], "the way of gradients"
    assert "forward: out = 64" in visible(forward, ".graph .line")
    assert visible(forward, ".beside text, .line.gradient") == []
    for _ in range(3):
        forward.keyboard.press("ArrowRight")
    assert sorted(visible(forward, ".beside.now text")) == ["32", "48", "\u00d7 x = 2", "\u00d7 y = 3"]
    assert visible(forward, ".line.gradient")[:3] == ["turn 1: 1", "turn 2: 16", "turn 3: 16"]
    forward.keyboard.press("Home")
    assert visible(forward, ".graph .line, .beside text") == []


def test_the_picture_can_be_turned_by_keyboard(forward: Page) -> None:
    def tops() -> list[float]:
        titles = ("PowBackward0", "MulBackward0", "x = 2")
        nodes = [forward.locator(".node", has=forward.get_by_text(title, exact=True)) for title in titles]
        return [node.bounding_box()["y"] for node in nodes]

    before = tops()
    assert before == sorted(before)
    turn = forward.get_by_role("button", name="Inputs at the top")
    turn.focus()
    forward.keyboard.press("Enter")
    assert turn.get_attribute("aria-pressed") == "true"
    assert tops() == sorted(tops(), reverse=True)
    box = forward.locator(".edge").first.bounding_box()
    assert tops()[2] < box["y"] < tops()[0], "arrows are turned, too"
    forward.keyboard.press("Space")
    assert tops() == before


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_violation_of_accessibility(saved: Page, scheme: str) -> None:
    saved.emulate_media(color_scheme=scheme)
    ground = saved.locator(".course-stepper").evaluate("box => getComputedStyle(box).backgroundColor")
    assert (ground != "rgb(255, 255, 255)") == (scheme == "dark")
    saved.get_by_role("button", name="Next").click()
    saved.locator("summary").first.click()
    results = Axe().run(saved)
    assert results.violations_count == 0, results.generate_report()


def test_bars_of_two_passes_have_one_scale(page: Page, tmp_path: Path) -> None:
    long, short = torch.ones(100, requires_grad=True), torch.ones(25, requires_grad=True)
    passes = [record_backward(leaf.exp().sum()) for leaf in (long, short)]
    step(*passes, titles=["100", "25, whose title makes the panel wide"]).save(tmp_path / "bars.html")
    page.set_viewport_size({"width": 700, "height": 900})
    page.goto((tmp_path / "bars.html").as_uri())
    width = "parts => parts.map(part => part.getBoundingClientRect().width)"
    assert page.locator(".bar").evaluate_all(width) == [160, 160]
    assert page.locator(".fill").evaluate_all(width) == [160, 40]
    expect(page.locator(".number").last).to_have_text("100 of 100 bytes kept; a full bar is 400")
    page.get_by_role("button", name="Last").click()
    assert page.locator(".fill").evaluate_all(width) == [0, 0]
    assert page.locator(".bar .start").evaluate_all(width) == [160, 40], "what each started with"


def test_a_large_graph_scrolls_to_the_node_at_work(page: Page, tmp_path: Path) -> None:
    y = x = torch.rand(4, requires_grad=True)
    for _ in range(40):
        y = y.sin().tanh()
    step(record_backward(y.sum(), x=x)).save(tmp_path / "long.html")
    page.goto((tmp_path / "long.html").as_uri())
    page.get_by_role("button", name="Last").click()
    assert page.locator(".graph").evaluate("graph => graph.scrollTop") > 500
    expect(page.locator(".node.now").first).to_be_in_viewport()


def write(lab: Lab, name: str, *cells: nbformat.NotebookNode) -> None:
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    notebook = nbformat.v4.new_notebook(cells=list(cells), metadata={"kernelspec": kernel})
    nbformat.write(notebook, lab.folder / name)


def frame(page: Page) -> FrameLocator:
    return page.frame_locator("iframe[title='Backward pass, step by step']")


def press_next(page: Page, shown: FrameLocator, number: int) -> None:
    shown.get_by_role("slider").focus()
    page.keyboard.press("ArrowRight")
    expect(shown.locator(".count")).to_have_text(f"turn {number} of 5")


def test_in_a_notebook_with_and_without_a_kernel_and_reopened(lab: Lab, page: Page) -> None:
    write(lab, "run.ipynb", *map(nbformat.v4.new_code_cell, (RECORD, "step(recording)")))
    open_notebook(page, lab, "run.ipynb")
    run_all(page)
    press_next(page, frame(page), 1)
    expect(page.locator(".course-stepper-still")).to_be_hidden()
    tall = page.locator("iframe").evaluate("frame => frame.clientHeight - frame.contentDocument.body.scrollHeight")
    assert -1 <= tall <= 20

    page.evaluate("jupyterapp.commands.execute('docmanager:save')")
    page.evaluate("jupyterapp.serviceManager.sessions.shutdownAll()")
    press_next(page, frame(page), 2)

    page.wait_for_timeout(500)
    open_notebook(page, lab, "run.ipynb")
    expect(frame(page).locator(".count")).to_have_text("turn 0 of 5")
    press_next(page, frame(page), 1)


def test_a_notebook_that_is_not_trusted_shows_the_picture_and_the_text(lab: Lab, page: Page) -> None:
    x, y = scalars()
    output = nbformat.v4.new_output(
        "execute_result", step(record_backward((x * y + x) ** 2, x=x, y=y))._repr_mimebundle_(), execution_count=1
    )
    cell = nbformat.v4.new_code_cell("step(recording)", execution_count=1, outputs=[output])
    write(lab, "foreign.ipynb", cell)
    open_notebook(page, lab, "foreign.ipynb")
    picture = page.locator(".jp-OutputArea img[alt^='Backward pass over a graph of 5 nodes']")
    expect(picture).to_be_visible()
    assert picture.evaluate("image => image.complete && image.naturalWidth") > 100
    assert page.locator("iframe[srcdoc]").count() == 0
    page.locator(".jp-OutputArea summary").click()
    expect(page.locator(".jp-OutputArea li").first).to_contain_text(
        "PowBackward0 receives 1, the gradient that the pass starts with"
    )


def test_the_widget_is_joined_to_the_kernel(lab: Lab, page: Page) -> None:
    sources = (RECORD, "widget = step(recording).widget()\nwidget", "widget.step = 2", "print('at', widget.step)")
    write(lab, "widget.ipynb", *map(nbformat.v4.new_code_cell, sources))
    open_notebook(page, lab, "widget.ipynb")
    run_all(page)
    shown = page.locator(".course-stepper").first
    expect(shown.locator(".count")).to_have_text("turn 2 of 5")
    shown.get_by_role("slider").focus()
    page.keyboard.press("ArrowRight")
    expect(shown.locator(".count")).to_have_text("turn 3 of 5")
    expect(shown.locator(".caption")).to_contain_text("MulBackward0 receives 16 and sends 48 to x, 32 to y")
    page.locator(".jp-CodeCell").last.locator(".cm-content").click()
    page.keyboard.press("Control+Enter")
    expect(page.locator(".jp-CodeCell").last.locator(".jp-OutputArea")).to_contain_text("at 3")
