"""What a training loop must leave alone, and how it is said."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import torch

from course_utils.checks.compare import describe, listed, right_floats
from course_utils.checks.data import Observation, Value
from course_utils.checks.exercise import Finding


def floats(received: Value, right: Sequence[float], what: str) -> Finding:
    """Find whether a list of Python floats came, right to the accuracy of float64."""
    return right_floats(received, torch.tensor(list(right), dtype=torch.float64), what)


def quiet(seen: Observation, passes: int, *, training: bool = True, free: bool = False) -> Iterator[Finding]:
    """Find whether a loop left its surroundings alone. `free`: the first module may be frozen."""
    yield Finding("data", seen["same data"], "Your loop changed a batch that it was given.")
    ran = seen["passes"]  # fewer are no fault: torch.autograd.grad brings gradients without ending in parameters
    text = f"{ran} backward passes reached the parameters; this loop needs {passes}."
    yield Finding("passes", ran <= passes, text)
    text = f"After your loop {seen['graphs']} graphs are still alive: something that outlives the steps refers to them."
    yield Finding("graphs", seen["graphs"] == 0, text)
    text = "When the optimizer stepped, a graph still held what it had saved. That pass was the last to need it."
    yield Finding("freed", not any(step["held"] for step in seen["steps"]), text)
    if training:
        yield Finding("modes", all(seen["training"]), "After your loop a part of the model is in evaluation mode.")
    yield Finding("hooks", seen["hooks"] == 0, "Your loop left hooks on the model.")
    flags = seen["flags"][1:] if free else seen["flags"]
    yield Finding("flags", all(flags), "After your loop other parameters require a gradient than before.")
    text = "After your loop the optimizer holds other tensors, or has other settings, than when you got it."
    yield Finding("settings", seen["settings"], text)
    yield session(seen)


def session(seen: Observation) -> Finding:
    """Find whether PyTorch's own settings are as before."""
    return Finding("session", not seen["session"], f"After your code {listed(seen['session'])}.")


def part(received: Value, number: int) -> Any:
    """Return one part of a returned tuple; None where there is none."""
    return received[number] if isinstance(received, list) and number < len(received) else None


def parts(received: Value, count: int, names: str) -> Finding:
    """Find whether a tuple of so many parts came."""
    message = f"You returned {describe(received)}; expected {count} things: {names}."
    return Finding("parts", isinstance(received, list) and len(received) == count, message)
