"""Running an answer to `slope`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from course_utils.checks.data import Case, Observation, plain
from course_utils.checks.observers.passes import every_pass


def observe(answer: Callable[..., Any], case: Case) -> Observation:
    x = case.given["x"].tensor().requires_grad_()
    with every_pass() as passes:
        returned = plain(answer(x))
    return {"returned": returned, "x": plain(x), "grad": plain(x.grad), "passes": len(passes)}
