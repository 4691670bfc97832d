"""`check`: the learner's side of an exercise."""

from __future__ import annotations

from course_utils.checks import progress
from course_utils.checks.examine import examine
from course_utils.checks.registry import exercise_called, observer_for
from course_utils.checks.show import shown


class CheckFailed(AssertionError):
    """An answer is missing or wrong. The verdict above it says how; its traceback is this one line."""

    def _render_traceback_(self) -> list[str]:
        return [f"CheckFailed: {self}"]


def check(exercise_id: str, answer: object) -> None:
    """Check an answer, show the verdict and keep it for `progress()`.

    `exercise_id` is the name that the exercise asks you to define, or the name of a stage of your engine, and `answer`
    what you defined.
    Your objects, random states, gradient mode and default dtype are as before afterwards.

    Raises CheckFailed unless the answer is right, so that a grader sees it; UnknownExercise for an unknown id, and
    TypeError for an id that is no text.
    """
    exercise = exercise_called(exercise_id)
    verdict = examine(exercise, observer_for(exercise), answer)
    progress.record(exercise.id, verdict.outcome)
    show(shown(exercise, verdict))
    if verdict.outcome == "not attempted":
        raise CheckFailed(f"{exercise.id}: not attempted.")
    if verdict.outcome != "correct":
        raise CheckFailed(f"{exercise.id}: {verdict.outcome}. {verdict.messages[0].splitlines()[0]}")


def show(thing: object) -> None:
    """Display in a notebook, print elsewhere."""
    try:
        from IPython import get_ipython
        from IPython.display import display
    except ImportError:
        print(thing)
        return
    if get_ipython() is None:
        print(thing)
    else:
        display(thing)
