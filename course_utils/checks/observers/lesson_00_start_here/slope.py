"""Running an answer to `slope`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from course_utils.checks.data import Case, Observation, plain
from course_utils.checks.observers.passes import every_pass
from course_utils.checks.scenes.numbers import by_columns


def observe(answer: Callable[..., Any], case: Case) -> Observation:
    x = case.given["x"].tensor()
    x = (by_columns(x) if case.given["by columns"] else x).requires_grad_()
    with every_pass() as passes:
        returned = plain(answer(x))
    return {"returned": returned, "x": plain(x), "grad": plain(x.grad), "passes": len(passes)}
