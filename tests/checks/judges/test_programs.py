"""Programs with numbered lines: run, changed, watched; and answers about them."""

from pathlib import Path

import pytest

from course_utils import draw, notebooks
from course_utils.checks.data import Case
from course_utils.checks.judges.lesson_01_graph_structure import which_program
from course_utils.checks.judges.lesson_03_graph_freeing import find_the_writer
from course_utils.checks.judges.lesson_04_retain_graph import why_second_time
from course_utils.checks.judges.programs import Choices, Program

ROOT = Path(__file__).parents[3]
PROGRAM = Program("""
    x = 3
    for _ in range(2):
        x = x / (x - 3)
    y = x
""")


def test_lines_are_numbered_from_one():
    assert PROGRAM.numbered().splitlines()[2] == " 3      x = x / (x - 3)"


def test_the_line_that_raised_is_told_also_inside_a_block():
    ran = PROGRAM.run()
    assert ran.line == 3
    assert isinstance(ran.error, ZeroDivisionError)


def test_lines_can_be_changed_and_left_out():
    ran = PROGRAM.run({1: "x = 4", 3: "    pass"})
    assert (ran.line, ran.error, ran.names["y"]) == (None, None, 4)


def test_a_program_is_watched_statement_by_statement():
    seen = []
    PROGRAM.run({3: "    x = x + 1"}, lambda line, names: seen.append((line, names["x"])))
    assert seen == [(1, 3), (2, 5), (4, 5)]


def test_choices_are_read_in_every_fair_form():
    table = Choices(lambda: {"a": "B", "b": 3, "c": None})
    for given in ({"a": "B", "b": 3, "c": None}, {"a": " b", "b": "3", "c": None}):
        assert all(finding.ok for finding in table.judge(Case(""), {"value": given}))
    assert not all(finding.ok for finding in table.judge(Case(""), {"value": {"a": "B", "b": "3.", "c": None}}))
    told = table.any_but({"a": "C"}, {"b": 4})
    assert told(Case(""), {"value": {"a": "b", "b": "4", "c": None}})
    assert not told(Case(""), {"value": {"a": "C", "b": 4, "c": None}})


def tasks(lesson):
    cells = notebooks.read(ROOT / "solutions" / f"{lesson}.ipynb").cells
    return "\n".join(cell.source for cell in cells if cell.cell_type == "markdown")


@pytest.mark.parametrize(
    ("lesson", "programs"),
    [
        ("01_graph_structure", which_program.PROGRAMS),
        ("03_graph_freeing", find_the_writer.PROGRAMS),
        ("04_retain_graph", {name: it.program for name, it in why_second_time.RAISING.items()}),
    ],
)
def test_the_task_shows_the_programs_that_are_run(lesson, programs):
    text = tasks(lesson)
    for name, program in programs.items():
        assert f"`{name}`\n\n```text\n{program.numbered()}\n```" in text


def test_the_words_for_a_picture_are_those_of_the_program_that_drew_it():
    drawn = which_program.results()
    for picture, letter in which_program.EXERCISE.judge.__self__.right().items():
        a, b, y = drawn[letter]
        assert f"![{draw(y, a=a, b=b).alt}](attachment:{picture}.png)" in tasks("01_graph_structure")
