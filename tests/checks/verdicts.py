"""What `check` says of an answer, with limits of time that end a test soon."""

from course_utils.checks.examine import examine
from course_utils.checks.exercise import Verdict
from course_utils.checks.registry import exercises, observer_for

SEED = 7
SECONDS = 0.5  # of an answer that never ends
# A stage of the engine is tried on many expressions; and where all findings are compared, none may come of a busy
# machine.
PATIENT_SECONDS = 3.0


def verdict_on(name: str, answer: object, seconds: float | None = None, seed: int = SEED) -> Verdict:
    """Return the verdict on an answer to the exercise of this name, as `check` would give it."""
    exercise = exercises()[name]
    if seconds is None:
        seconds = PATIENT_SECONDS if exercise.answer else SECONDS
    return examine(exercise, observer_for(exercise), answer, seed, seconds)
