"""`hint` and `solution`: what a learner may ask for."""

from __future__ import annotations

import json
from html import escape

from course_utils.checks.check import last, show
from course_utils.checks.exercise import Exercise, Misconception
from course_utils.checks.registry import exercise_called
from course_utils.checks.show import Shown, box
from course_utils.place import ROOT

BEGIN, END = "### BEGIN SOLUTION", "### END SOLUTION"
TIERS = ("a nudge", "an approach", "an outline")
_COLOUR = "#0072B2"

_given: dict[str, int] = {}
_led: set[tuple[str, str]] = set()


def hint(exercise_id: str) -> None:
    """Show the next hint for an exercise: first a nudge, then an approach, then an outline, then the outline again.

    Where the last check of this session recognised an idea that has a hint of its own, that one comes first.
    Raises UnknownExercise for an unknown id.
    """
    exercise = exercise_called(exercise_id)
    for idea in _recognised(exercise):
        if idea.hint and (exercise.id, idea.name) not in _led:
            _led.add((exercise.id, idea.name))
            title = f"Hint for {exercise.id}, after what the last check found"
            _show(title, idea.hint, exercise.id)
            return
    tier = min(_given.get(exercise.id, 0), len(exercise.hints) - 1)
    _given[exercise.id] = tier + 1
    title = f"Hint {tier + 1} of {len(exercise.hints)} for {exercise.id}, {TIERS[tier]}"
    _show(title, exercise.hints[tier], exercise.id if tier + 1 < len(exercise.hints) else "")


def _show(title: str, text: str, more_for: str) -> None:
    after = (f'There is more: hint("{more_for}") again.',) if more_for else ()
    show(Shown("\n".join([f"{title}:", text, *after]), box(_COLOUR, title, (text,), after)))


def _recognised(exercise: Exercise) -> list[Misconception]:
    verdict = last.get(exercise.id)
    names = verdict.misconceptions if verdict else ()
    return [idea for idea in exercise.misconceptions if idea.name in names]


def solution(exercise_id: str) -> None:
    """Show the course's own answer, where the folder solutions/ is present.

    Raises UnknownExercise for an unknown id, and FileNotFoundError where there is no master to show it from.
    """
    exercise = exercise_called(exercise_id)
    master = ROOT / "solutions" / f"{exercise.lesson}.ipynb"
    if not master.exists():
        raise FileNotFoundError(
            f"the answer to {exercise.id!r} stands in solutions/{exercise.lesson}.ipynb, which this copy of the "
            "course does not have. Ask whoever gave you the course, or ask for hint() again."
        )
    for cell in json.loads(master.read_text(encoding="utf-8"))["cells"]:
        nbgrader = cell["metadata"].get("nbgrader", {})
        if nbgrader.get("solution") and nbgrader.get("grade_id") == exercise.id:
            source = answer_in("".join(cell["source"]))
            title = f"One right answer to {exercise.id}"
            show(Shown(f"{title}:\n{source}", box(_COLOUR, title, (), ()) + _code(source)))
            return
    raise LookupError(f"{master} has no solution cell with the grade_id {exercise.id!r}")


def answer_in(source: str) -> str:
    """Return what stands between the solution markers of a master cell."""
    return source.partition(BEGIN)[2].partition(END)[0].strip("\n")


def _code(source: str) -> str:
    return f"<pre><code>{escape(source)}</code></pre>"
