"""Running an answer to `vjp_softmax`."""

from __future__ import annotations

from course_utils.checks.data import Answer, Case, Observation, plain
from course_utils.checks.observers.lesson_02_how_backward_works.tensors import laid_out, left


def observe(answer: Answer, case: Case) -> Observation:
    y, v = laid_out(case.given["y"], case), laid_out(case.given["v"], case)
    returned = plain(answer(y, v, case.given["dim"]))
    return {"returned": returned, **left({"y": y, "v": v}, case)}
