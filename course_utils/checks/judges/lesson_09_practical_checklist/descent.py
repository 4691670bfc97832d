"""Where a right training ends: descent by gradients of a loss, in double precision."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence, Set
from dataclasses import dataclass
from typing import TypeAlias

import torch
from torch import nn
from torch.func import functional_call, grad_and_value

from course_utils.checks.compare import close, right_value
from course_utils.checks.data import Case, Observation, Raised
from course_utils.checks.exercise import Finding, Misconception, Seen

State: TypeAlias = dict[str, torch.Tensor]

_Loss: TypeAlias = Callable[[State], torch.Tensor]


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
    losses: Sequence[_Loss],
    rates: float | Sequence[float],
    *,
    momentum: float = 0.0,
    decay: float = 0.0,
    left: State | None = None,
    moving: State | None = None,
    adding: bool = False,
    idle: Set[str] = frozenset(),
    afterwards: Callable[[State], State] = lambda state: state,
) -> Path:
    """Follow p <- p - rate v with v <- momentum v + gradient + decay p.

    `left` are gradients that the first step finds and does not clear, and `moving` are the first v where it is not 0.
    With `adding`, gradients are never cleared. Where nothing but a left gradient was, later steps pass over it, and
    over what is `idle`, takes no part in the losses, every step that finds no left one.
    """
    state, values, states = dict(start), [], []
    velocity = {name: torch.zeros_like(it) for name, it in start.items()}
    total = {**velocity, **(left or {})}
    velocity |= moving or {}
    for number, loss in enumerate(losses):
        gradients, value = grad_and_value(loss)(state)
        values.append(float(value))
        total = {name: it + (total[name] if adding or not number else 0) for name, it in gradients.items()}
        rate = rates if isinstance(rates, float) else rates[number]
        passed = idle | (left or {}).keys() if number else idle
        silent = {name for name in state if name in passed and not total[name].any()}
        for name in silent:
            velocity[name] = torch.zeros_like(state[name])
        for name in state.keys() - silent:
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

    def explains(self, case: Case, seen: Seen, failed: Set[str]) -> bool:
        return isinstance(seen, Raised) and seen.kind == "RuntimeError" and self.words in seen.message


def reached(seen: Observation, right: State, module: int = 0) -> bool:
    """Return whether the watched module has these parameters at the end."""
    mine = seen["parameters"][module]
    return set(mine) == set(right) and all(close(mine[name], it) for name, it in right.items())


def left_in(*models: nn.Module) -> State:
    """Return the gradients that stand in `.grad`, by the parameters' names."""
    named: State = {}
    for number, model in enumerate(models):
        prefix = f"{number}." if number else ""
        named |= {prefix + name: it.grad.clone() for name, it in model.named_parameters() if it.grad is not None}
    return named


def right_end(seen: Observation, right: State, module: int = 0, whose: str = "") -> Iterator[Finding]:
    """Find whether the watched module ended with these parameters."""
    mine = seen["parameters"][module]
    if set(mine) != set(right):
        yield Finding("names", False, f"After your loop {whose or 'the model'} has the parameters {', '.join(mine)}.")
        return
    for name, it in right.items():
        yield right_value(mine[name], it, f"After your loop the parameter `{name}`{whose and ' of ' + whose}")
