"""Counting the large arrays that are alive, by NumPy's own allocations: whatever holds them."""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np

from course_utils.checks.observers.lesson_11_build_your_own.engines import Engine, uncollected
from course_utils.checks.scenes.lesson_11_build_your_own.kept import NBYTES, SIDE


@contextmanager
def counting() -> Iterator[Callable[[], float]]:
    """Yield a function that returns how many arrays are alive that were made in the body.

    The garbage collector is off: an array counts as long as anything refers to it, a circle of references included.
    """
    tracing = tracemalloc.is_tracing()
    gc.collect(0)
    with uncollected():
        if not tracing:
            tracemalloc.start()
        base = tracemalloc.get_traced_memory()[0]
        try:
            yield lambda: round((tracemalloc.get_traced_memory()[0] - base) / NBYTES, 2)
        finally:
            if not tracing:
                tracemalloc.stop()


def large(engine: Engine) -> tuple[object, object]:
    """Return a leaf and a constant of the size that is counted."""
    numbers = np.linspace(0.5, 1.5, SIDE * SIDE).reshape(SIDE, SIDE)
    return engine.tensor(numbers, requires_grad=True), engine.tensor(numbers)
