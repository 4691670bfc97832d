"""Checks need checks: every exercise against right answers, known misconceptions and wrong answers."""

from pathlib import Path

import pytest
import torch

from course_utils.checks.exercise import Verdict
from course_utils.checks.registry import exercises
from course_utils.skeleton import to_do
from tests.answers import MAY_SAY, MISCONCEIVED, RIGHT, STILL_RIGHT, WRONG
from tests.checks.mutants import mutants
from tests.checks.verdicts import verdict_on

ROOT = Path(__file__).parents[2]
EXERCISES = exercises()


def assert_helpful(verdict: Verdict) -> None:
    """A verdict other than correct says something, in sentences, and gives no score."""
    assert verdict.score == 0
    assert verdict.messages
    for message in verdict.messages:
        assert message.strip()
        assert "course_utils" not in message, "the message blames the course's own code"
        assert "Traceback" not in message
        assert "The check itself failed" not in message


@pytest.mark.parametrize("name", EXERCISES)
@pytest.mark.parametrize("seed", [1, 2])
def test_right_answers_pass(name: str, seed: int) -> None:
    assert len(RIGHT[name]) >= 2, "give two right ways that differ"
    for answer in RIGHT[name]:
        verdict = verdict_on(name, answer, seconds=20, seed=seed)
        assert verdict.outcome == "correct", verdict.messages
        assert verdict.score == EXERCISES[name].points


@pytest.mark.parametrize("name", EXERCISES)
def test_starter_is_not_attempted(name: str) -> None:
    verdict = verdict_on(name, ...)
    assert verdict.outcome == "not attempted"
    assert_helpful(verdict)


def test_every_misconception_has_a_sample() -> None:
    named = {(exercise.id, wrong.name) for exercise in EXERCISES.values() for wrong in exercise.misconceptions}
    assert named == set(MISCONCEIVED)


@pytest.mark.parametrize(("name", "misconception"), MISCONCEIVED)
def test_misconception_gets_its_own_message(name: str, misconception: str) -> None:
    verdict = verdict_on(name, MISCONCEIVED[name, misconception], seconds=2)
    assert verdict.outcome in ("incorrect", "error")
    assert verdict.misconceptions == (misconception,), verdict.messages
    message = next(wrong.message for wrong in EXERCISES[name].misconceptions if wrong.name == misconception)
    assert verdict.messages[0] == message


@pytest.mark.parametrize("name", EXERCISES)
def test_wrong_answers_fail(name: str, record_property: pytest.FixtureRequest) -> None:
    answers = enumerate(zip(WRONG[name], MAY_SAY[name], strict=True))
    survivors = [f"answer {number}" for number, (wrong, true) in answers if _survives(name, wrong, true)]
    tried = len(WRONG[name])
    for mutant in mutants(EXERCISES[name], RIGHT[name][0]):
        verdict = verdict_on(name, mutant.answer)
        if not mutant.differs:
            continue  # it gave what the right answer gives
        if (name, mutant.name) in STILL_RIGHT:
            assert verdict.outcome == "correct", verdict.messages
            continue
        tried += 1
        if verdict.outcome == "correct":
            survivors.append(mutant.name)
        else:
            assert_helpful(verdict)
    record_property("mutants", tried)
    record_property("survivors", len(survivors))
    assert not survivors


def _survives(name: str, wrong: object, true: tuple[str, ...]) -> bool:
    verdict = verdict_on(name, wrong)
    if verdict.outcome != "correct":
        assert_helpful(verdict)
        assert verdict.misconceptions == true, "another sentence is said of this answer than those that are true of it"
    return verdict.outcome == "correct"


@pytest.mark.parametrize("name", EXERCISES)
def test_nothing_is_left_to_do(name: str) -> None:
    left = to_do(ROOT, name)
    assert not left, "\n".join([f"{name} is not done:", *left])


@pytest.mark.parametrize("name", EXERCISES)
def test_description_is_complete(name: str) -> None:
    exercise = EXERCISES[name]
    assert exercise.id == name
    assert 1 <= exercise.difficulty <= 5
    assert exercise.minutes > 0
    assert exercise.points > 0
    assert all(hint.strip() for hint in exercise.hints)
    assert exercise.call is None or exercise.call == exercise.name or exercise.call.startswith(f"{name}(")
    assert len({wrong.name for wrong in exercise.misconceptions}) == len(exercise.misconceptions)


@pytest.mark.parametrize("name", EXERCISES)
def test_same_seed_gives_same_cases_and_verdict(name: str) -> None:
    exercise = EXERCISES[name]
    assert list(exercise.cases(3)) == list(exercise.cases(3))
    verdict_on(name, RIGHT[name][0], 20)  # PyTorch gives some warnings once in a process: now it has
    torch.rand(5)  # whatever the session did in between
    assert verdict_on(name, RIGHT[name][0], 20) == verdict_on(name, RIGHT[name][0], 20)


@pytest.mark.parametrize("name", EXERCISES)
def test_right_answers_pass_whatever_the_session_is_set_to(name: str) -> None:
    torch.set_default_dtype(torch.float64)
    try:
        with torch.inference_mode():
            verdict = verdict_on(name, RIGHT[name][0], 20)
            assert torch.is_inference_mode_enabled()
    finally:
        torch.set_default_dtype(torch.float32)
    assert verdict.outcome == "correct", verdict.messages
