"""Running an answer to `agrees`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch

from course_utils.checks.data import Answer, Case, Observation, plain
from course_utils.checks.observers.lesson_10_custom_functions.surroundings import Surroundings
from course_utils.checks.scenes.lesson_10_custom_functions.agrees import function
from course_utils.checks.scenes.numbers import by_columns


def observe(answer: Answer, case: Case) -> Observation:
    given, x = function(case.given["function"]), case.given["x"].tensor()
    if case.given["transposed"]:
        x = by_columns(x)
    around = Surroundings({"x": x}, may_draw=True, may_write=True)
    with _library_calls() as calls:
        returned = answer(given, x)
    return {"returned": plain(returned), "changed": around.changed(), "calls": len(calls)}


@contextmanager
def _library_calls() -> Iterator[list[str]]:
    """Collect calls of PyTorch's own gradcheck, or of its parts, while the body runs, however they were imported."""
    calls: list[str] = []
    names: dict[str, Any] = torch.autograd.gradcheck.__globals__
    home = torch.autograd.gradcheck.__module__
    own = {name: it for name, it in names.items() if name.startswith("_") and getattr(it, "__module__", "") == home}

    def counted(name: str) -> Callable[..., Any]:
        def call(*args: Any, **options: Any) -> Any:
            calls.append(name)
            return own[name](*args, **options)

        return call

    names.update({name: counted(name) for name in own})
    try:
        yield calls
    finally:
        names.update(own)
