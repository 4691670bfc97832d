"""`check`: the learner's side of an exercise."""

from __future__ import annotations

import hashlib
from typing import Any

from course_utils.checks import progress
from course_utils.checks.data import encode, plain
from course_utils.checks.examine import examine
from course_utils.checks.exercise import Verdict
from course_utils.checks.registry import exercise_called, observer_for
from course_utils.checks.show import shown

# A table of True and False would be solved by its second check, were the first to name the wrong entries.
ANSWERS_BEFORE_NAMES = 3

# The last verdict of this session for each exercise, from which `hint` starts.
last: dict[str, Verdict] = {}


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
    TypeError for an id that is no text. Where a person runs the cell in JupyterLab, what was not attempted yet is said
    and raises nothing.
    """
    exercise = exercise_called(exercise_id)
    verdict = examine(exercise, observer_for(exercise), answer)
    last[exercise.id] = verdict
    tried = progress.record(
        exercise.id, verdict.outcome, _digest(answer) if exercise.call is None else "", verdict.share
    )
    left = max(ANSWERS_BEFORE_NAMES - tried, 0) if verdict.withheld else 0
    show(shown(exercise, verdict, left))
    if verdict.outcome == "not attempted":
        if by_hand():
            return
        raise CheckFailed(f"{exercise.id}: not attempted.")
    if verdict.outcome != "correct":
        raise CheckFailed(f"{exercise.id}: {verdict.outcome}. {verdict.messages[0].splitlines()[0]}")


def by_hand() -> bool:
    """Say whether a person runs this cell in JupyterLab.

    JupyterLab names the cell in its request, as `cellId`; programs that execute notebooks (nbclient, and with it
    nbgrader and others) do not.
    """
    try:
        from IPython import get_ipython
    except ImportError:
        return False
    parent: dict[str, Any] = getattr(get_ipython(), "get_parent", dict)()
    return bool(parent.get("metadata", {}).get("cellId"))


def _digest(answer: object) -> str:
    """Return a text that tells different answers apart."""
    return hashlib.sha256(encode(plain(answer))).hexdigest()[:16]


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
