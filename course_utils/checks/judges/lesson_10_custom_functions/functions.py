"""Whether a graph is one custom node, exact to rounding, and holds nothing that it should not."""

from __future__ import annotations

import torch

from course_utils.checks.compare import listed, right_value
from course_utils.checks.data import Array, Observation, Value
from course_utils.checks.exercise import Finding


def spread(seed: int, *shape: int, dtype: torch.dtype = torch.float64) -> torch.Tensor:
    """Return numbers between 0.3 and 1.8, some of them negated, none near 0 or 1 by design of the seed."""
    generator = torch.Generator().manual_seed(seed)
    numbers = torch.rand(shape, generator=generator, dtype=torch.float64) * 1.5 + 0.3
    return torch.where(torch.rand(shape, generator=generator) < 0.4, -numbers, numbers).to(dtype)


def one_function(seen: Observation) -> Finding:
    """Find whether the graph between inputs and result is a single node, and a custom one."""
    if not seen["attached"]:
        message = (
            "No gradient of the right result's shape and dtype can go through what you returned: it has no graph, or "
            "another shape or dtype."
        )
        return Finding("graph", False, message)
    found = seen["operations"]
    single = len(found) == 1 and found[0][1] is True
    names = listed(name.rpartition("::")[2] for name, _ in found[:4])
    count = "1 node" if len(found) == 1 else f"{len(found)} nodes" if found else "no node"
    message = f"Between the inputs and your result the graph has {count} ({names}); expected one, of a custom Function."
    return Finding("one node", single, message)


def left_alone(seen: Observation) -> Finding:
    """Find whether everything is as it was that is not the answer's own."""
    changed = seen.get("changed", [])
    return Finding(
        "left alone", not changed, f"Your code changed what is not its own: {listed(dict.fromkeys(changed))}."
    )


def second_derivative(received: Value, expected: torch.Tensor, what: str = "The second derivative") -> Finding:
    """Find whether a second derivative is right, or why there is none."""
    if received is None:
        message = (
            f"{what} is missing: what your backward returned has no graph that leads back to x. It is not computed "
            "from a saved input or result, or detach(), .data, no_grad, once_differentiable, or a tensor that forward "
            "computed beside its result, cuts it."
        )
        return Finding("type", False, message)
    return right_value(received, expected, what)


def nothing_on_ctx(seen: Observation) -> Finding:
    """Find whether tensors hang on a ctx, where no pass frees them."""
    message = "A tensor hangs on ctx as an attribute. A pass does not free it, and a write to it goes unnoticed."
    return Finding("attribute", not seen.get("attribute"), message)


def to_rounding(received: Value, expected: torch.Tensor, what: str) -> Finding:
    """Find whether `received` is right, and so near that no difference quotient gave it."""
    found = right_value(received, expected, what)
    if not found.ok or not isinstance(received, Array):
        return found
    error = float((received.tensor() - expected).abs().max() / (expected.abs().max() or 1.0))
    message = f"{what} is off by {error:.0e}, relative to its size. A formula is right to about 1e-15."
    return Finding("exact", error < 1e-12, message)
