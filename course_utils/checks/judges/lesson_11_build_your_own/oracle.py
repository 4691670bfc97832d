"""What PyTorch's own autograd gives for the expressions that an engine is tried on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from course_utils.checks.compare import right_value
from course_utils.checks.data import Array
from course_utils.checks.exercise import Finding
from course_utils.checks.scenes.lesson_11_build_your_own.expressions import Expression, arrays


def leaves_of(expression: Expression) -> list[torch.Tensor]:
    """Return the leaves of an expression as tensors of PyTorch's, in float64."""
    flags = expression["flags"]
    return [torch.from_numpy(a).requires_grad_(flag) for a, flag in zip(arrays(expression), flags, strict=True)]


def failing(
    prop: str,
    expressions: Sequence[Expression],
    seen: Sequence[Any],
    wrong: Callable[[Expression, Any], str | None],
    written: Callable[[Expression], str],
) -> Finding:
    """Find whether all expressions are right; the message shows the shortest that is not, and what is wrong with it."""
    failed = [
        (one, text) for one, mine in zip(expressions, seen, strict=True) if (text := wrong(one, mine)) is not None
    ]
    if not failed:
        return Finding(prop, True)
    shortest, text = min(failed, key=lambda pair: len(pair[0]["steps"]))
    count = f"{len(failed)} of {len(expressions)} random expressions fail. The shortest"
    return Finding(prop, False, f"{count}: {text.rstrip('.')}.\n{written(shortest)}")


def difference(mine: Sequence[Any], right: Sequence[torch.Tensor | None], names: Sequence[str]) -> str | None:
    """Say which of several gradients is not what it should be, and how; None where all are right."""
    for value, wanted, name in zip(mine, right, names, strict=True):
        if wanted is None:
            if value is not None:
                return f"{name} has a gradient, and should have none"
        elif not _exact(value, wanted):
            found = right_value(value, wanted, f"The gradient of {name}")
            if not found.ok:
                return found.message
    return None


def _exact(value: Any, wanted: torch.Tensor) -> bool:
    """Return whether the bytes are the same: most are, and comparing them is fast."""
    return (
        isinstance(value, Array)
        and value.dtype == "float64"
        and value.shape == tuple(wanted.shape)
        and value.data == wanted.contiguous().numpy().tobytes()
    )
