"""The site: every link leads somewhere, nothing is asked of another address, and it works without a kernel."""

import re
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urldefrag

import pytest
from playwright.sync_api import Page, expect

from course_utils.inline import anchor
from docs.pages import linked
from tests.browser.conftest import ROOT, keeps_out

LESSON = "notebooks/02_how_backward_works.html"
# What a page loads when it is opened, by tag and attribute. A link that a reader follows may lead anywhere.
LOADS = {"img": "src", "script": "src", "link": "href", "iframe": "src"}


class Links(HTMLParser):
    """What a page links to, what it loads, and where one can link to in it."""

    def __init__(self) -> None:
        super().__init__()
        self.targets: list[str] = []
        self.loads: list[str] = []
        self.anchors: set[str] = set()

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        of = dict(attributes)
        self.anchors |= {of[name] for name in ("id", "name") if of.get(name)}
        if tag == "a" and of.get("href"):
            self.targets.append(of["href"])
        if of.get(LOADS.get(tag, "")) and of.get("rel") not in ("canonical", "search", "next", "prev"):
            self.loads.append(of[LOADS[tag]])


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[Path, Links]:
    found = {}
    for path in site.rglob("*.html"):
        found[path] = Links()
        found[path].feed(path.read_text(encoding="utf-8"))
    return found


def test_no_link_is_broken(site: Path, pages: dict[Path, Links]) -> None:
    broken = []
    for path, links in pages.items():
        for target in links.targets:
            if re.match(r"(https?|mailto|javascript):", target):
                continue
            file, place = urldefrag(target)
            other = (path.parent / unquote(file)).resolve() if file else path
            if other not in pages:
                broken += [f"{path.name}: {target}"] if not other.is_file() else []
            elif place and unquote(place) not in pages[other].anchors:
                broken.append(f"{path.relative_to(site)}: {target}")
    assert not broken
    assert sum(len(links.targets) for links in pages.values()) > 1000


def test_a_page_loads_nothing_from_elsewhere(site: Path, pages: dict[Path, Links]) -> None:
    assert not [load for links in pages.values() for load in links.loads if re.match(r"(https?:)?//", load)]
    styles = "\n".join(path.read_text(encoding="utf-8") for path in site.rglob("*.css"))
    assert not re.search(r"url\(['\"]?https?:|@import ['\"]https?:", styles)


def test_it_is_small_and_holds_no_solutions(site: Path) -> None:
    files = [path for path in site.rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in files) < 25_000_000
    assert max(path.stat().st_size for path in files if path.suffix == ".html") < 500_000
    assert not [path for path in files if "solutions" in path.parts]
    assert not [path for path in files if b"BEGIN SOLUTION" in path.read_bytes()]


def test_an_anchor_is_made_as_jupyter_makes_it() -> None:
    assert anchor('"element 0" of `x`') == '"element-0"-of-x'


def test_links_are_as_myst_reads_them_and_other_files_become_text() -> None:
    pages = {(ROOT / "notebooks" / "02_how_backward_works.ipynb").resolve()}
    text = "[a [b] c](02_how_backward_works.ipynb#The-%22seed%22) and [the code](../Makefile), ![p](docs/card.png)"
    renewed = '[a [b] c](<02_how_backward_works.ipynb#The-"seed">) and the code, ![p](docs/card.png)'
    assert linked(text, ROOT / "notebooks", pages) == renewed


def test_a_reader_predicts_and_steps_without_a_kernel(site: Path, page: Page) -> None:
    asked = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto((site / "notebooks" / "03_graph_freeing.html").as_uri())
    form = page.locator(".course-prediction").first
    expect(form.get_by_text("What the run gave")).to_be_hidden()
    form.locator("input[type=radio]").first.check()
    form.get_by_text("What the run gave").click()
    expect(form.locator("dl")).to_be_visible()
    stepper = page.frame_locator(".course-stepper-output iframe").first
    place = stepper.locator("output.count")
    before = place.inner_text()
    stepper.get_by_role("button", name="Next").click()
    expect(place).not_to_have_text(before)
    assert not [url for url in asked if url.startswith("http")]


def test_what_settles_a_prediction_is_folded(site: Path, page: Page) -> None:
    page.goto((site / "notebooks" / "06_detach_vs_no_grad.html").as_uri())
    fold = page.locator("details", has=page.get_by_text("After you have thought about it")).first
    assert not fold.evaluate("it => it.open")
    fold.locator("summary").click()
    assert fold.evaluate("it => it.open")


def test_a_page_is_printed_unfolded_but_for_what_a_reader_has_not_predicted(site: Path, page: Page) -> None:
    page.goto((site / LESSON).as_uri())
    folds = page.locator("article details")
    of_predictions = page.locator("article .course-prediction details").count()
    assert 0 < of_predictions < folds.count()
    seen = []
    for event in ("beforeprint", "afterprint"):
        page.evaluate("event => window.dispatchEvent(new Event(event))", event)
        seen.append(folds.evaluate_all("all => all.filter(it => it.open).length"))
    assert seen == [folds.count() - of_predictions, 0]
    page.emulate_media(media="print")
    frames = page.locator("article .cell_input").evaluate_all("all => all.map(it => getComputedStyle(it).breakInside)")
    assert set(frames) == {"avoid"}
    wraps = page.locator("article pre").evaluate_all("all => all.map(it => getComputedStyle(it).textWrapMode)")
    assert set(wraps) == {"wrap"}  # a long line of code would end at the edge of the paper
    expect(page.locator(".bd-sidebar-primary")).to_be_hidden()


def test_search_finds_a_lesson(site: Path, page: Page) -> None:
    page.goto((site / "search.html").as_uri() + "?q=retain_graph")
    expect(page.locator("#search-results")).to_contain_text("retain_graph")


NARROW = ("index.html", LESSON, "notebooks/README.html", "GRADING.html", "notebooks/deeper/07_training_at_scale.html")


@pytest.mark.parametrize(
    "name", [*NARROW, "notebooks/questions/README.html", "notebooks/questions/error_messages.html"]
)
def test_no_page_is_wider_than_a_phone(site: Path, phone: Page, name: str) -> None:
    phone.goto((site / name).as_uri())
    assert phone.evaluate("document.documentElement.scrollWidth") <= 390


@pytest.mark.parametrize("name", ["index.html", "TEACHING.html"])
def test_the_buttons_of_a_page_stand_beside_one_another_on_a_phone(site: Path, phone: Page, name: str) -> None:
    phone.goto((site / name).as_uri())
    buttons = phone.locator(".header-article-items__end button:visible").all()
    boxes = [box for it in buttons if (box := it.bounding_box())]
    assert len(boxes) >= 2
    middles = [box["y"] + box["height"] / 2 for box in boxes]
    assert max(middles) - min(middles) < 4
    assert min(box["y"] for box in boxes) >= 0


def test_no_bright_ground_lies_under_an_output_in_the_dark(site: Path, page: Page) -> None:
    page.emulate_media(color_scheme="dark")
    page.goto((site / LESSON).as_uri())
    grounds = page.locator(".cell_output .text_html, .cell_output img").evaluate_all(
        "all => all.map(it => getComputedStyle(it).backgroundColor)"
    )
    assert len(grounds) > 5
    assert set(grounds) == {"rgba(0, 0, 0, 0)"}


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("name", ["index.html", LESSON, "exercises/02_how_backward_works.html"])
def test_no_page_keeps_anybody_out(site: Path, page: Page, name: str, theme: str) -> None:
    page.emulate_media(color_scheme=theme)
    page.goto((site / name).as_uri())
    assert not keeps_out(page)
