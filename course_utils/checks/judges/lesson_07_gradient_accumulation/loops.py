"""Whether a loop over windows ran as it should, and ended with the right numbers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from course_utils.checks.compare import OF_NUMBERS, counted, describe, listed, right_value
from course_utils.checks.data import Array, Case, Observation, Value
from course_utils.checks.exercise import Finding
from course_utils.checks.judges.lesson_07_gradient_accumulation.windows import Step, Tensors
from course_utils.checks.scenes.lesson_07_gradient_accumulation.classifier import classifier


def numbers_right(received: Value, expected: list[float], what: str, near: float = OF_NUMBERS) -> Iterator[Finding]:
    """Find whether a list of Python floats is right, each up to a part of itself."""
    if not isinstance(received, list) or not all(type(item) is float for item in received):
        if isinstance(received, list):
            odd = next(item for item in received if type(item) is not float)
            message = f"The list of {what} should hold Python floats; yours has {describe(odd)} in it."
        else:
            message = f"Expected a list of Python floats, the {what}; you returned {describe(received)}."
        yield Finding("list", False, message)
        return
    if len(received) != len(expected):
        entries = "1 entry" if len(received) == 1 else f"{len(received)} entries"
        message = f"The list of {what} has {entries}; expected {len(expected)}, one for each window."
        yield Finding("length", False, message)
        return
    right = torch.tensor(expected, dtype=torch.float64)
    yield right_value(Array.of(torch.tensor(received, dtype=torch.float64)), right, f"The list of {what}", near)


def times(count: int) -> str:
    """Return "once", "twice" or "3 times"."""
    return {1: "once", 2: "twice"}.get(count, f"{count} times")


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def well_formed(seen: Observation, records: str = "steps", *parts: str) -> None:
    """Raise for what no observer of this lesson returns, so that everything after this may read it."""
    for part in () if parts else ("gradients", "parameters"):
        if not isinstance(seen[part], dict):
            raise TypeError(part)
    for record in seen[records]:
        for part in parts or ("gradients",):
            if not isinstance(record[part], dict):
                raise TypeError(part)
    for name in ("held", "passes", "ahead", "runs", "waiting", "alive"):
        if name in seen and name != records and type(seen[name]) is not int:
            raise TypeError(name)
    for name in ("flags", "moved", "same", "attached", "inputs", "modes"):
        if name in seen and type(seen[name]) is not bool:
            raise TypeError(name)
    _readable(seen)


def _readable(value: Any) -> None:
    if isinstance(value, Array):
        value.tensor()
    elif isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            _readable(item)


def ran_well(case: Case, seen: Observation) -> Iterator[Finding]:
    """Find whether each micro-batch had one forward and one backward pass, in any order, and was then freed."""
    sizes, forwards = case.given["sizes"], seen["forwards"]
    text = f"The model ran on batches of the sizes {forwards}; the micro-batches have the sizes {sizes}."
    yield Finding("forwards", sorted(forwards) == sorted(sizes), text)
    passes = seen["passes"]
    batches = "1 micro-batch" if len(sizes) == 1 else f"{len(sizes)} micro-batches"
    text = f"{counted(passes)} ran for {batches}; each needs one."
    yield Finding("passes", passes == len(sizes), text)
    text = (
        "When the next forward or a step began, saved numbers of an earlier micro-batch were still held. Its backward "
        "pass should be over by then, and should have freed them."
    )
    yield Finding("held", seen["held"] == 0, text)
    yield Finding("inputs", seen["inputs"], "Your function changed the micro-batches that it was given.")
    yield flags_kept(seen)


def flags_kept(seen: Observation) -> Finding:
    """Find whether everything around the numbers is as it was."""
    what = seen["switched"]
    text = f"Your function changed {listed(what[:4])}{' and more' if len(what) > 4 else ''}."
    return Finding("flags", not what, text)


def trained_well(
    case: Case, seen: Observation, steps: list[Step], parameters: Tensors, dtype: torch.dtype = torch.float64
) -> Iterator[Finding]:
    """Find whether the steps and the parameters are those of full-batch training, compared in a dtype.

    Compared is how far each parameter went: a factor between that and what is right tells of the gradients. What has
    to rest comes first: where it moved, later gradients are others, too.
    """
    count = len(seen["steps"])
    windows = "there is 1 window" if len(steps) == 1 else f"there are {len(steps)} windows"
    text = f"The optimizer stepped {times(count)}; {windows}."
    yield Finding("steps", count == len(steps), text)
    starts = dict(classifier(case).named_parameters())
    ways = {name: parameters[name] - start.detach() for name, start in starts.items()}
    for name in sorted(ways, key=lambda name: bool(ways[name].any())):
        start, right = starts[name], ways[name]
        went = seen["parameters"][name].tensor() - start.detach()
        why = "takes no part" if start.requires_grad else "is frozen"
        text = (
            f"{name} {why}, and your training moved it. An optimizer moves what it holds wherever something is in "
            ".grad, be it zeros."
        )
        yield Finding("value", bool(right.any()) or not bool(went.any()), text)
        yield right_value(Array.of(went.to(dtype)), right.to(dtype), f"What your training added to {name}")
