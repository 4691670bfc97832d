"""Every sentence of a task that asks for something is guarded: by a finding that a wrong answer in tests/answers fails.

An exercise lists them as `GUARDS` in its file there: `{"sentence of the task": {"finding": wrong answer}}`. Each wrong
answer breaks the one thing and nothing else.
"""

from functools import cache
from importlib import import_module
from pathlib import Path

import pytest

from course_utils.checks.registry import exercises
from course_utils.notebooks import files
from tests.answers import MISCONCEIVED, RIGHT, WRONG
from tests.mutation.running import verdict_on

ROOT = Path(__file__).parents[2]


def guards(name: str) -> dict[str, dict[str, object]]:
    module = import_module(f"tests.answers.lesson_{exercises()[name].lesson}.{name}")
    return getattr(module, "GUARDS", {})


GUARDED = [name for name in exercises() if guards(name)]


@cache
def task(name: str) -> str:
    """Return the text of a task, in one line."""
    cells = files.read(ROOT / "solutions" / f"{exercises()[name].lesson}.ipynb").cells
    title = exercises()[name].title
    found = [it.source for it in cells if it.cell_type == "markdown" and f". {title}\n" in it.source]
    assert len(found) == 1, f"{len(found)} cells have the title {title!r}"
    return " ".join(found[0].split())


@pytest.mark.parametrize("name", GUARDED)
def test_sentences_stand_in_the_task(name: str) -> None:
    for sentence in guards(name):
        assert " ".join(sentence.split()) in task(name)


@pytest.mark.parametrize("name", GUARDED)
def test_each_finding_has_a_wrong_answer_that_fails_it_alone(name: str) -> None:
    known = [*WRONG[name], *(answer for (exercise, _), answer in MISCONCEIVED.items() if exercise == name)]
    for sentence, by in guards(name).items():
        for finding, wrong in by.items():
            assert any(wrong is it for it in known), f"{sentence!r}: not among the wrong answers"
            failed = {it.prop for it in verdict_on(name, wrong).findings if not it.ok}
            assert failed == {finding}, sentence


@pytest.mark.parametrize("name", GUARDED)
def test_each_finding_guards_a_sentence(name: str) -> None:
    found = {it.prop for answer in RIGHT[name] for it in verdict_on(name, answer, seconds=20).findings}
    assert found - {finding for by in guards(name).values() for finding in by} == set()
