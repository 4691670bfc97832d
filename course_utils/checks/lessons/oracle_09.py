"""What a loop should have made of a model: gradient descent as a formula on plain tensors, without any optimizer."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import torch
from torch import nn
from torch.func import functional_call, grad_and_value

from course_utils.checks.compare import close, describe, listed, right_floats, right_value
from course_utils.checks.data import Case, Observation, Raised, Value
from course_utils.checks.exercise import Finding, Misconception, Seen

LESSON = "09_practical_checklist"

State: TypeAlias = dict[str, torch.Tensor]
Loss: TypeAlias = Callable[[State], torch.Tensor]


@dataclass(frozen=True)
class Path:
    """The losses along a descent, each before its step, and the numbers after every step."""

    losses: list[float]
    states: list[State]

    @property
    def end(self) -> State:
        return self.states[-1]


def parameters_of(*models: nn.Module) -> State:
    """Return copies of the parameters, by name; those of a second model begin with "1."."""
    named: State = {}
    for number, model in enumerate(models):
        prefix = f"{number}." if number else ""
        named |= {prefix + name: it.detach().clone() for name, it in model.named_parameters()}
    return named


def descend(
    start: State,
    losses: Sequence[Loss],
    rates: float | Sequence[float],
    *,
    momentum: float = 0.0,
    decay: float = 0.0,
    adding: bool = False,
    afterwards: Callable[[State], State] = lambda state: state,
) -> Path:
    """Follow p <- p - rate v with v <- momentum v + gradient + decay p. With `adding`, gradients are never cleared."""
    state, values, states = dict(start), [], []
    velocity = {name: torch.zeros_like(it) for name, it in start.items()}
    total = dict(velocity)
    for number, loss in enumerate(losses):
        gradients, value = grad_and_value(loss)(state)
        values.append(float(value))
        total = {name: it + (total[name] if adding else 0) for name, it in gradients.items()}
        rate = rates if isinstance(rates, float) else rates[number]
        for name in state:
            velocity[name] = momentum * velocity[name] + total[name] + decay * state[name]
        state = afterwards({name: it - rate * velocity[name] for name, it in state.items()})
        states.append(state)
    return Path(values, states)


def on(model: nn.Module, inputs: torch.Tensor, state: State) -> torch.Tensor:
    """Return what the model says with these numbers in place of its parameters."""
    result: torch.Tensor = functional_call(model, state, (inputs,))
    return result


@dataclass(frozen=True)
class Refused(Misconception):
    """A wrong idea that PyTorch refuses with a RuntimeError in whose text these words stand."""

    words: str = ""

    def explains(self, case: Case, seen: Seen) -> bool:
        return isinstance(seen, Raised) and seen.kind == "RuntimeError" and self.words in seen.message


# Reading what was seen.


def reached(seen: Observation, right: State, module: int = 0) -> bool:
    """Return whether the watched module has these parameters at the end."""
    mine = seen["parameters"][module]
    return set(mine) == set(right) and all(close(mine[name], it) for name, it in right.items())


def right_end(seen: Observation, right: State, module: int = 0, whose: str = "") -> Iterator[Finding]:
    """Find whether the watched module ended with these parameters."""
    mine = seen["parameters"][module]
    if set(mine) != set(right):
        yield Finding("names", False, f"After your loop {whose or 'the model'} has the parameters {', '.join(mine)}.")
        return
    for name, it in right.items():
        yield right_value(mine[name], it, f"After your loop {whose and whose + ', '}{name}")


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
