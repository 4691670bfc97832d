"""Running an engine in stage 10, `train_digits`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from course_utils.checks.data import Observation, type_name
from course_utils.checks.observers.lesson_11_build_your_own import backward, grad_and_sgd, record
from course_utils.checks.observers.lesson_11_build_your_own.engines import (
    Engine,
    Look,
    array_of,
    attempt,
    numbers,
    observer,
)

PARTS = (*grad_and_sgd.PARTS, "engine.train")


def _trained(engine: Engine, given: dict[str, Any], epochs: int, batch: int) -> Observation:
    images, labels = array_of(given["images"]).astype(np.float64) / 8.0, array_of(given["labels"])
    start = [array_of(array) for array in given["start"]]
    before = [array.copy() for array in (images, labels, *start)]
    after = engine.train(images, labels, start, epochs, given["rate"], batch)
    left = all(np.array_equal(a, b) for a, b in zip(before, (images, labels, *start), strict=True))
    if not isinstance(after, Iterable) or not all(isinstance(epoch, Iterable) for epoch in after):
        return {"kind": type_name(after)}
    return {"after": [[numbers(array) for array in epoch] for epoch in after], "left": left}


def look(engine: Engine, given: dict[str, Any]) -> Observation:
    far = {**given, "start": given["far"], "labels": given["few labels"]}
    return {
        "trained": attempt(lambda: _trained(engine, given, given["epochs"], given["batch"])),
        "even": attempt(lambda: _trained(engine, given, 1, given["even"])),
        "far": attempt(lambda: _trained(engine, far, 1, given["large"])),
    }


LOOK = Look(PARTS, look)
observe = observer(record=record.LOOK, backward=backward.LOOK, grad_and_sgd=grad_and_sgd.LOOK, train_digits=LOOK)
