"""Every page of the site, as `test_site.py` looks at a few: `make nightly` runs all of this."""

from pathlib import Path

import pytest
from playwright.sync_api import Page

from course_utils.copies import notebooks_of
from docs.pages import TEXTS
from tests.browser.conftest import ROOT, keeps_out

SOURCES = [*(name for _, name in notebooks_of(ROOT)), *TEXTS, "index.md", "search.md"]
PAGES = [Path(name).with_suffix(".html").as_posix() for name in SOURCES]


@pytest.fixture(autouse=True)
def only_the_site(page: Page) -> list[str]:
    """Note what a page asks of other addresses; the browser has no other page open."""
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url) if request.url.startswith("http") else None)
    return asked


def test_these_are_all_pages(site: Path) -> None:
    made = {path.relative_to(site).as_posix() for path in site.rglob("*.html")}
    assert made - {"genindex.html"} == set(PAGES)


@pytest.mark.parametrize("name", PAGES)
def test_a_page_keeps_nobody_out_and_asks_nothing_of_others(
    site: Path, page: Page, only_the_site: list[str], name: str
) -> None:
    for theme in ("light", "dark"):
        page.emulate_media(color_scheme=theme)
        page.goto((site / name).as_uri())
        assert page.evaluate("document.documentElement.dataset.theme") == theme
        assert not keeps_out(page), theme
    assert not only_the_site


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_no_wider_than_a_phone_and_folds_what_answers(site: Path, phone: Page, name: str) -> None:
    phone.goto((site / name).as_uri())
    assert phone.evaluate("document.documentElement.scrollWidth") <= 390
    forms = phone.locator(".course-prediction details")
    assert not forms.evaluate_all("all => all.filter(it => it.open).length")
