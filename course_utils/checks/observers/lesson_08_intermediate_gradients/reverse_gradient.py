"""Running an answer to `reverse_gradient`."""

from __future__ import annotations

from course_utils.checks.data import Answer, Case, Observation
from course_utils.checks.observers.lesson_08_intermediate_gradients.on_the_way import on_the_way


def observe(answer: Answer, case: Case) -> Observation:
    return on_the_way(answer, case, case.given["strength"])
