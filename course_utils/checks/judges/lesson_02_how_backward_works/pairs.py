"""Judging a vector-Jacobian product of two inputs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import torch

from course_utils.checks.compare import close, counted, describe, right_value
from course_utils.checks.data import Array, Case, Observation, Value
from course_utils.checks.exercise import Finding
from course_utils.checks.judges.lesson_02_how_backward_works.left_alone import left_alone
from course_utils.checks.scenes.numbers import numbers


def _pair(received: Value, expected: tuple[torch.Tensor, torch.Tensor]) -> Iterator[Finding]:
    """Find whether two gradients came, and whether each is right."""
    if not isinstance(received, list) or len(received) != 2:
        message = f"What you returned is {describe(received)}; expected two tensors, (grad_a, grad_b)."
        yield Finding("type", False, message)
        return
    yield right_value(received[0], expected[0], "grad_a")
    yield right_value(received[1], expected[1], "grad_b")


def given_pair(case: Case, seen: Observation, count: int = 2) -> list[Value] | None:
    """Return the two that were returned, if they were two."""
    returned = seen["returned"]
    return returned if isinstance(returned, list) and len(returned) == count else None


def with_zeros(given: dict[str, Array], column: int) -> dict[str, Array]:
    """Return the tensors with zeros in a column: who takes a gradient for a quotient divides by them."""
    place = torch.tensor([column])
    return {key: Array.of(item.tensor().index_fill(-1, place, 0.0)) for key, item in given.items()}


_Product = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]


def vjp(case: Case, product: _Product, v: torch.Tensor | None = None) -> tuple[torch.Tensor, torch.Tensor]:
    a, b = (case.given[name].tensor().requires_grad_() for name in ("a", "b"))
    grad_a, grad_b = torch.autograd.grad(product(a, b), (a, b), case.given["v"].tensor() if v is None else v)
    return grad_a, grad_b


def judge_pair(product: _Product) -> Callable[[Case, Observation], Iterator[Finding]]:
    def judge(case: Case, seen: Observation) -> Iterator[Finding]:
        yield from _pair(seen["returned"], vjp(case, product))
        count = seen["passes"]
        ran = counted(count)
        yield Finding("passes", not count, f"Your function ran {ran}. Derive the two gradients, and run none.")
        forward = "Your function had autograd compute, in forward mode. Derive the two gradients."
        yield Finding("autograd", not seen["tangents"], forward)
        yield from left_alone(seen)

    return judge


def swapped(product: _Product) -> Callable[[Case, Observation], bool]:
    def holds(case: Case, seen: Observation) -> bool:
        returned, right = given_pair(case, seen), vjp(case, product)
        return returned is not None and close(returned[0], right[1]) and close(returned[1], right[0])

    return holds


def without_seed(product: _Product) -> Callable[[Case, Observation], bool]:
    """Tell whether the gradients are those for a seed of ones."""

    def holds(case: Case, seen: Observation) -> bool:
        returned = given_pair(case, seen)
        right = vjp(case, product, torch.ones_like(case.given["v"].tensor()))
        return returned is not None and close(returned[0], right[0]) and close(returned[1], right[1])

    return holds


def debrief_pair(seen: Sequence[tuple[Case, Observation]]) -> Iterator[str]:
    """Compare what was asked with the whole Jacobian, in the case where that is largest."""
    sizes = [{name: case.given[name].tensor().numel() for name in "abv"} for case, _ in seen]
    largest = max(sizes, key=lambda size: size["v"] * (size["a"] + size["b"]))
    yield (
        f"In the largest case the Jacobians by a and by b have {largest['v'] * (largest['a'] + largest['b'])} numbers. "
        f"Their products with v have {largest['a'] + largest['b']}, and backward works out no more than these."
    )


def tensors(
    seed: int, dtype: torch.dtype = torch.float64, size: float = 1.0, **shapes: tuple[int, ...]
) -> dict[str, Array]:
    """Return tensors of these shapes, v as many times larger as `size` says: so are the gradients then.

    Inputs of float32 are so large that differences over a small step are lost in their rounding.
    """
    large = 100.0 if dtype == torch.float32 else 1.0
    return {
        name: Array.of((size if name == "v" else large) * numbers(seed + offset, *shape, dtype=dtype))
        for offset, (name, shape) in enumerate(shapes.items())
    }
