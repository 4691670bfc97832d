"""What a task asks for is guarded by findings, and a wrong answer in tests/answers fails each of them alone."""

import pytest

from course_utils.checks.registry import exercises
from tests.mutation.guards import failed, findings, guards, task
from tests.mutation.seeds import answers

NAMES = list(exercises())


def test_every_exercise_says_what_guards_its_sentences() -> None:
    assert not [name for name in NAMES if not guards(name)]


@pytest.mark.parametrize("name", NAMES)
def test_sentences_stand_in_the_task(name: str) -> None:
    for sentence in guards(name):
        assert " ".join(sentence.split()) in task(name)


@pytest.mark.parametrize("name", NAMES)
def test_each_finding_has_a_wrong_answer_that_fails_it_alone(name: str) -> None:
    known = answers(name).values()
    for sentence, by in guards(name).items():
        for finding, wrong in by.items():
            assert any(wrong is it for it in known), f"{sentence!r}: not among the answers in tests/answers"
            assert failed(name, wrong) == {finding}, sentence


@pytest.mark.parametrize("name", NAMES)
def test_each_finding_guards_a_sentence(name: str) -> None:
    guarding = {finding for by in guards(name).values() for finding in by}
    assert not [finding for finding in findings(name) if finding not in guarding]
