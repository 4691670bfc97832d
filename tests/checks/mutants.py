"""Wrong answers made from right ones, the same way for every exercise."""

import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import torch

from course_utils.checks.exercise import Exercise, parameters_of

_BACKWARD, _GRAD = torch.autograd.backward, torch.autograd.grad


@dataclass
class Mutant:
    """A wrong answer. `differs` turns true once it gave something else than the right answer would have given."""

    name: str
    answer: Any = None
    differs: bool = field(default=False)


def mutants(exercise: Exercise, right: Any) -> Iterator[Mutant]:
    """Yield the generic wrong answers for an exercise, made from one right answer."""
    if exercise.call is None:
        yield from _wrong_values(right)
    elif exercise.call == exercise.name:
        yield from _wrong_objects(right)
    else:
        yield from _wrong_functions(exercise, right)


def _wrong_values(right: Any) -> Iterator[Mutant]:
    yield Mutant("None", None, True)
    yield Mutant("a text", "right", True)
    yield Mutant("a class", torch.nn.Linear, True)
    yield Mutant("a function", lambda: right, True)
    yield Mutant("NaN", float("nan"), True)
    yield Mutant("a wrong shape", torch.zeros(2, 5, 7), True)
    yield Mutant("an empty dict", {}, True)
    changed, differs = _map(right, _perturb)
    yield Mutant("every entry changed", changed, differs)
    if isinstance(right, dict):
        for key in right:
            changed, differs = _map(right[key], _perturb)
            yield Mutant(f"{key} changed", {**right, key: changed}, differs)
            yield Mutant(f"{key} left out", {name: value for name, value in right.items() if name != key}, True)


def _wrong_objects(right: Any) -> Iterator[Mutant]:
    """Yield objects that have less than the right one, or whose first function does something else."""

    def never_ends(*given: Any, **named: Any) -> None:
        while True:
            pass

    def raises(*given: Any, **named: Any) -> None:
        raise RuntimeError("mutant")

    yield Mutant("None", None, True)
    yield Mutant("a text", "right", True)
    yield Mutant("a class", torch.nn.Linear, True)
    yield Mutant("an empty object", SimpleNamespace(), True)
    yield Mutant("PyTorch", torch, True)
    for name, other in {
        "gives None": lambda *given, **named: None,
        "gives its input": lambda first, *given, **named: first,
        "raises": raises,
        "exits": lambda *given, **named: exit(),
        "never ends": never_ends,
    }.items():
        parts = {part: getattr(right, part) for part in dir(right) if not part.startswith("_")}
        yield Mutant(name, SimpleNamespace(**{**parts, "tensor": other}), True)


def _wrong_functions(exercise: Exercise, right: Callable[..., Any]) -> Iterator[Mutant]:
    names = parameters_of(exercise.call or "")
    parameters = ", ".join(names)

    def function(body: Callable[..., Any]) -> Callable[..., Any]:
        return eval(f"lambda {parameters}: body({parameters})", {"body": body})

    def never_ends(*given: Any) -> None:
        while True:
            pass

    def raises(*given: Any) -> None:
        raise RuntimeError("mutant")

    yield Mutant("returns None", function(lambda *given: None), True)
    yield Mutant("returns 0.0", function(lambda *given: 0.0), True)
    yield Mutant("returns an empty list", function(lambda *given: []), True)
    yield Mutant("returns a class", function(lambda *given: torch.nn.Linear), True)
    yield Mutant("raises", function(raises), True)
    yield Mutant("exits", function(lambda *given: exit()), True)
    yield Mutant("never ends", function(never_ends), True)
    yield Mutant("a class itself", torch.nn.Linear, True)
    yield Mutant("takes nothing", lambda: None, True)
    if names:
        yield Mutant("returns its first input", function(lambda first, *rest: first), True)
    for name, change in CHANGES.items():
        mutant = Mutant(name)

        def mutated(*given: Any, mutant: Mutant = mutant, change: Callable[[Any], Any] = change) -> Any:
            result, differs = _map(right(*given), change)
            mutant.differs |= differs
            return result

        mutant.answer = function(mutated)
        yield mutant
    yield _keeping_the_graph(right, function)
    torch.autograd.backward, torch.autograd.grad = _BACKWARD, _GRAD  # a time limit may have cut its `finally`


def _keeping_the_graph(right: Callable[..., Any], function: Callable[..., Any]) -> Mutant:
    """The right answer, but every backward pass in it keeps the graph for another."""
    mutant = Mutant("keeps every graph")

    def keeping(original: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **options: Any) -> Any:
            given = inspect.signature(original).bind(*args, **options).arguments  # loss.backward() gives it by position
            mutant.differs |= not given.get("retain_graph") and not given.get("create_graph")
            return original(**{**given, "retain_graph": True})

        return call

    def mutated(*given: Any) -> Any:
        torch.autograd.backward, torch.autograd.grad = keeping(_BACKWARD), keeping(_GRAD)
        try:
            return right(*given)
        finally:
            torch.autograd.backward, torch.autograd.grad = _BACKWARD, _GRAD

    mutant.answer = function(mutated)
    return mutant


def _perturb(value: Any) -> Any:
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float):
        return value + 1
    if isinstance(value, str):
        return value + "?"
    return value + 1 if isinstance(value, torch.Tensor) and value.dtype != torch.bool else ...


def _numeric(change: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def apply(value: Any) -> Any:
        number = isinstance(value, int | float) and not isinstance(value, bool)
        return change(value) if number or (isinstance(value, torch.Tensor) and value.is_floating_point()) else value

    return apply


def _tensorial(change: Callable[[torch.Tensor], torch.Tensor]) -> Callable[[Any], Any]:
    return lambda value: change(value) if isinstance(value, torch.Tensor) and value.is_floating_point() else value


def _flip(value: Any) -> Any:
    return not value if isinstance(value, bool) else value


CHANGES: dict[str, Callable[[Any], Any]] = {
    "times two": _numeric(lambda value: value * 2),
    "negated": _numeric(lambda value: -value),
    "zero": _numeric(lambda value: value * 0),
    "NaN": _numeric(lambda value: value * float("nan")),
    "slightly off": _numeric(lambda value: value * 1.01),
    "flipped": _flip,
    "detached": _tensorial(lambda value: value.detach() if value.requires_grad else value),
    "one dimension more": _tensorial(lambda value: value[None]),
    "another dtype": _tensorial(lambda value: value.float() if value.dtype == torch.float64 else value.double()),
    "doubled list": lambda value: value * 2 if isinstance(value, list | tuple) and value else value,
    "shortened list": lambda value: value[:-1] if isinstance(value, list | tuple) and value else value,
    "reversed list": lambda value: value[::-1] if isinstance(value, list | tuple) and len(value) > 1 else value,
    "shortened dict": lambda value: dict(list(value.items())[:-1]) if isinstance(value, dict) and value else value,
}


def _map(value: Any, change: Callable[[Any], Any]) -> tuple[Any, bool]:
    """Apply a change to a value, or inside it where it is a container that the change leaves alone."""
    changed = change(value)
    if changed is not value and changed is not ...:
        return changed, True
    if isinstance(value, list | tuple):
        parts = [_map(item, change) for item in value]
        return type(value)([part for part, _ in parts]), any(differs for _, differs in parts)
    if isinstance(value, dict):
        mapped = {key: _map(item, change) for key, item in value.items()}
        return {key: part for key, (part, _) in mapped.items()}, any(differs for _, differs in mapped.values())
    return value, False
