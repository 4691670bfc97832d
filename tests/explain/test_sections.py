"""The table from codes to sections of the course."""

import pytest

from course_utils.explain.sections import _TAUGHT, codes, readable, section
from tests.test_index import FOLDER, headings


@pytest.mark.parametrize("code", codes())
def test_every_code_leads_to_a_heading(code):
    notebook, _, anchor = section(code).partition("#")
    assert anchor in headings(FOLDER / f"{notebook}.ipynb")


def test_a_section_is_readable():
    assert section("carried-state") == "04_retain_graph#Hidden-state-between-sequences:-truncated-backpropagation"
    readably = "lesson 04, 'Hidden state between sequences: truncated backpropagation'"
    assert readable(section("carried-state")) == readably
    assert readable(section("copy-construct")) == "the deeper part of lesson 06, 'clone, detach, and their order'"
    assert readable("what a forged explanation says") == "what a forged explanation says"


def test_a_code_without_a_section_is_an_error():
    with pytest.raises(KeyError):
        section("no such code")


def test_codes_are_short_and_plain():
    assert all(len(code) <= 28 and code.replace("-", "").isalpha() and code == code.lower() for code in codes())
    assert sum(len(taught) for headings in _TAUGHT.values() for taught in headings.values()) == len(codes())
