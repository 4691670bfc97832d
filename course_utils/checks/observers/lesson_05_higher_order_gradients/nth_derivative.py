"""Running an answer to `nth_derivative`."""

from __future__ import annotations

from course_utils.checks.data import Answer, Case, Observation
from course_utils.checks.observers.lesson_05_higher_order_gradients.results import left_behind, point, result_of
from course_utils.checks.observers.lesson_05_higher_order_gradients.surroundings import facts_about
from course_utils.checks.observers.lesson_05_higher_order_gradients.watched import tried_on
from course_utils.checks.scenes.lesson_05_higher_order_gradients.nth_derivative import elementwise


def observe(answer: Answer, case: Case) -> Observation:
    x = point(case)
    before = facts_about(x=x)
    n, elsewhere = case.given["n"], x.detach() + 0.5
    returned, seen = tried_on(answer, elementwise(case.given["function"]), x, n, earlier=(elsewhere, n))
    return {**result_of(returned), **left_behind({"x": x}, case, before, seen)}
