"""The results of layers, moved by differences, and a model left as it was."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import torch
from torch import nn

from course_utils.checks.compare import listed
from course_utils.checks.data import Observation
from course_utils.checks.exercise import Finding


def results_of(model: nn.Module, names: list[str], x: torch.Tensor, moved: list[torch.Tensor] | None) -> Any:
    """Run the model with each named layer's results moved. Return its output, and those results."""
    results: list[tuple[str, torch.Tensor]] = []

    def note(name: str, module: nn.Module, given: Any, result: torch.Tensor) -> torch.Tensor:
        results.append((name, result))
        return result if moved is None else result + moved[len(results) - 1]

    handles = [model.get_submodule(name).register_forward_hook(partial(note, name)) for name in names]
    try:
        return model(x), results
    finally:
        for handle in handles:
            handle.remove()


def left(seen: Observation) -> Iterator[Finding]:
    changed = seen["changed"]
    message = f"Afterwards the model is not as before. Your function changed {things(changed)}."
    yield Finding("model", not changed, message)
    yield Finding("mode", not seen["switched"], "Your function left gradients switched off.")


def things(changed: Any) -> str:
    """Name what a function changed; of many things the first few, and how many more there are."""
    if not isinstance(changed, list) or len(changed) <= 5:
        return listed(changed)
    return listed([*changed[:4], f"{len(changed) - 4} more things"])


def times(count: int) -> str:
    return {1: "once", 2: "twice"}.get(count, f"{count} times")
