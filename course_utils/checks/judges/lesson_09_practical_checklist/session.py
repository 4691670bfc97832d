"""What a training loop must leave alone, and how it is said."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import torch

from course_utils.checks.compare import describe, listed, right_floats, right_value
from course_utils.checks.data import Case, Observation, Value
from course_utils.checks.exercise import Finding


def floats(received: Value, right: Sequence[float], what: str) -> Finding:
    """Find whether a list of Python floats came, right to the accuracy of float64."""
    return right_floats(received, torch.tensor(list(right), dtype=torch.float64), what)


def one_float(received: Value, right: float, what: str) -> Iterator[Finding]:
    """Find whether a Python float came, right to the accuracy of float64."""
    is_one = type(received) is float
    yield Finding("float", is_one, f"{what} should be a Python float; it is {describe(received)}.")
    if is_one:
        yield right_value(received, right, what)


def quiet(seen: Observation, *, modes: bool = True, free: bool = False) -> Iterator[Finding]:
    """Find whether a loop left its surroundings alone. `free`: the first module may be frozen."""
    yield Finding("data", seen["same data"], "Your loop changed data that it was given.")
    alive = seen["graphs"]
    text = f"After your loop {alive} {'graph is' if alive == 1 else 'graphs are'} still alive: something holds on to "
    text += "it." if alive == 1 else "them."
    yield Finding("graphs", alive == 0, text)
    text = "When the optimizer stepped, a graph still held what it had saved for a backward pass."
    yield Finding("freed", not any(step["held"] for step in seen["steps"]), text)
    if modes:
        yield Finding("modes", seen["modes"], "After your loop a part of the model is in another mode than before.")
    where = [what for what, it in (("model", "hooks"), ("optimizer", "optimizer's hooks")) if seen[it]]
    yield Finding("hooks", not where, f"Your loop left hooks on the {' and on the '.join(where)}.")
    flags = seen["flags"][1:] if free else seen["flags"]
    yield Finding("flags", all(flags), "After your loop other parameters require a gradient than before.")
    if seen["settings"] is not None:  # the loop got an optimizer
        settings = seen["settings"]
        what = "holds other tensors" if "params" in settings else f"has another {listed(settings)}"
        yield Finding("settings", not settings, f"After your loop the optimizer {what} than when you got it.")


def one_step_each(seen: Observation, count: int) -> Finding:
    """Find whether the given optimizer stepped once for each of `count` batches."""
    made = len(seen["steps"])
    text = f"The given optimizer stepped {made} {'time' if made == 1 else 'times'}; it should step {count} times."
    return Finding("steps", made == count, text)


def work_done(seen: Sequence[tuple[Case, Observation]], more: str) -> Iterator[str]:
    """Say what a right loop did in the first case: forward runs, backward passes, and what another way costs."""
    case, it = seen[0]
    count, epochs = len(case.given["sizes"]), case.given.get("epochs", 1)
    runs, passes = sum(run["of"] == 0 for run in it["runs"]), it["passes"]
    given = f"{count} batches" + (f" and {epochs} epochs" if epochs > 1 else "")
    ran = f"ran the model {runs} times and made" if runs else "made"
    yield f"With {given}, your loop {ran} {passes} backward passes."
    yield more


def part(received: Value, number: int) -> Any:
    """Return one part of a returned tuple; None where there is none."""
    return received[number] if isinstance(received, list) and number < len(received) else None


def parts(received: Value, count: int, names: str) -> Finding:
    """Find whether a tuple of so many parts came."""
    message = f"You returned {describe(received)}; expected {count} things: {names}."
    return Finding("parts", isinstance(received, list) and len(received) == count, message)
