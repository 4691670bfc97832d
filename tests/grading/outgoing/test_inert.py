"""Markdown of somebody else, in a page that a teacher opens."""

import re
from html.parser import HTMLParser
from pathlib import Path

import nbformat
import pytest
from nbconvert.filters import markdown2html

from course_utils.grading.outgoing import inert as module
from course_utils.grading.outgoing.inert import converts, inert

ROOT = Path(__file__).parents[3]
LIVE = [
    "<script>alert(1)</script>",
    "a <img src=x onerror=alert(1)> b",
    "<ScRipT\n>alert(1)</script\n>",
    "<svg/onload=alert(1)>",
    "<!-- --><iframe srcdoc='x'>",
    "[x](javascript:alert(1))",
    "[x]( javascript:alert(1) )",
    "[x](\njavascript:alert(1))",
    "[x](<javascript:alert(1)>)",
    "[x](<java\tscript:alert(1)>)",
    "[x](JaVaScRiPt:alert(1))",
    "[x](java&#115;cript:alert(1))",
    "[x](javascript&colon;alert(1))",
    "[x](java\\script:alert(1))",
    "[x](data:text/html;base64,PHNjcmlwdD4=)",
    "[x](vbscript:x)",
    "![x](javascript:alert(1))",
    "[x][y]\n\n[y]: javascript:alert(1)",
    "[x]\n\n[x]:\n  javascript:alert(1) 'title'",
    "[x][y]\n\n> [y]: <javascript:alert(1)>",
    "<javascript:alert(1)>",
    "[![x](a.png)](javascript:alert(1))",
    '[x](a.png "title\\" onclick=alert(1)")',
    '[x](https://a.b/"onclick="alert(1))',
    "$\\href{javascript:alert(1)}{x}$",
]


TAGS = {"p", "a", "img", "ul", "li", "blockquote", "code", "pre", "br"}
ATTRIBUTES = {"href", "src", "alt", "title"}


class Tags(HTMLParser):
    """What a browser would see: each tag, and where it leads."""

    def handle_starttag(self, tag, attributes):
        assert tag in TAGS
        for name, value in attributes:
            assert name in ATTRIBUTES
            if name in ("href", "src"):
                assert re.match(r"https?://|mailto:|[\w./#?=%+-]*$", value)


@pytest.mark.parametrize("markdown", LIVE)
def test_nothing_of_it_runs(markdown):
    html = markdown2html(inert(markdown))
    Tags().feed(html)
    assert "\\href" not in html


def test_what_is_tried_would_run():
    runs = 0
    for markdown in LIVE:
        try:
            Tags().feed(html := markdown2html(markdown))
            assert "\\href" not in html
        except AssertionError:
            runs += 1
    assert runs >= len(LIVE) // 2


@pytest.mark.parametrize("path", sorted((ROOT / "exercises").glob("*.ipynb")), ids=lambda path: path.stem)
def test_the_courses_own_texts_stay_as_they_are(path):
    for cell in nbformat.read(path, 4).cells:
        if cell.cell_type == "markdown":
            assert inert(cell.source) == cell.source


@pytest.mark.parametrize(
    "markdown",
    [
        "a < b, `x[0]: int`, 1 < 2",
        "[x](https://a.b/c?d=e) and [y](../notebooks/00.ipynb#z) and ![z](a.png)",
        "[x](mailto:a@b.c)",
        "$a < b$ and $$\\frac{a}{b}$$",
    ],
)
def test_what_is_harmless_stays(markdown):
    assert inert(markdown) == markdown


def test_what_would_take_a_converter_long_is_not_tried(monkeypatch):
    tried = []
    monkeypatch.setattr(module, "_converter", lambda: tried.append)
    slow = (r"\begin{x}" * (module.MAX_FORMULAS + 1), "[" * (module.MAX_MARKDOWN + 1))
    assert not any(converts(text) for text in slow)
    assert not tried
    assert converts("# A title")
    assert tried == ["# A title"]
