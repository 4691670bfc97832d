"""`check` in a notebook and `course grade` in its sandbox find the same of every answer in tests/answers."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from course_utils.checks.examine import examine
from course_utils.checks.registry import exercises, observer_for
from course_utils.grading.controller.pool import Grader, limits_of
from course_utils.grading.submission import ExerciseResult
from tests.answers import MISCONCEIVED, RIGHT, WRONG, source_of
from tests.grading.submissions import needs_a_sandbox, submission

pytestmark = needs_a_sandbox

LIMITS = limits_of(60, 1_000_000_000, unsafe=False)


@pytest.fixture(scope="module")
def grader() -> Iterator[Grader]:
    made = Grader()
    yield made
    made.close()


def answers_to(name: str) -> dict[str, object]:
    """Return the answers to an exercise, by the expressions that name them in its source."""
    wrong = {idea: answer for (exercise, idea), answer in MISCONCEIVED.items() if exercise == name}
    return {
        **{f"RIGHT[{number}]": answer for number, answer in enumerate(RIGHT[name])},
        **{f"MISCONCEIVED[{idea!r}]": answer for idea, answer in wrong.items()},
        **{f"getattr(WRONG[{number}], 'answer', WRONG[{number}])": it for number, it in enumerate(WRONG[name])},
    }


@pytest.mark.parametrize("name", RIGHT)
def test_the_notebook_and_the_grader_agree(name: str, grader: Grader) -> None:
    exercise, source = exercises()[name], source_of(name)
    answers = answers_to(name)

    def grade(expression: str) -> ExerciseResult:
        cell = f"{source}\n{exercise.name} = {expression}\n"
        result = grader.grade(submission(expression, cell, assignment=exercise.lesson), LIMITS)
        return next(row for row in result.exercises if row.id == name)

    with ThreadPoolExecutor(2) as threads:
        graded = dict(zip(answers, threads.map(grade, answers), strict=True))
    found = {expression: examine(exercise, observer_for(exercise), answer) for expression, answer in answers.items()}
    differing = {
        expression: (verdict.outcome, graded[expression].outcome, graded[expression].messages)
        for expression, verdict in found.items()
        if verdict.outcome != graded[expression].outcome
    }
    assert not differing
    flagged = {it: graded[it].flags for it in answers if it.startswith("RIGHT") and _observing(graded[it].flags)}
    assert not flagged, "no flag falls on a right answer"


def _observing(flags: tuple[str, ...]) -> bool:
    """Say whether there is a flag beside those for names in the cell, which holds the wrong answers, too."""
    return any("uses `" not in flag for flag in flags)
