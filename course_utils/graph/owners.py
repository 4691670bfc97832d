"""Whose code is running: which part of a model, or a backward pass."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch.nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook

ITSELF, OUTSIDE, GRADIENTS = "the model itself", "outside", "gradients"

NO_PASS = -1  # the number of the backward pass where none is running


def backward_pass() -> int:
    """Return the number of the backward pass that runs now, or NO_PASS."""
    return int(torch._C._current_graph_task_id())


class Owners:
    """Tells the innermost part of `model` at work, while it is entered as a context.

    A part is named as in `named_modules`, a shared one by the first of its names. The model's own code is ITSELF,
    a backward pass GRADIENTS, all else OUTSIDE. What checkpointing runs again in a backward pass belongs to its
    module.

    The hooks are PyTorch's global ones: a model with hooks of its own may run other code (transformer layers in
    evaluation do).
    """

    def __init__(self, model: torch.nn.Module | None) -> None:
        self._model = model  # while it lives no other module has one of its parts' ids
        parts = () if model is None else model.named_modules()
        self._names = {id(module): name or ITSELF for name, module in parts}
        self._at_work: list[tuple[int, str, int]] = []  # module, its name, and the pass in which it began
        self._handles: list[Any] = []

    def __enter__(self) -> Owners:
        if self._names:
            self._handles.append(register_module_forward_pre_hook(self._begins))
            self._handles.append(register_module_forward_hook(self._ends, always_call=True))
        return self

    def __exit__(self, *_: object) -> None:
        for handle in self._handles:
            handle.remove()

    @property
    def order(self) -> Sequence[str]:
        """All names: the model's parts in its own order, then the rest."""
        parts = [name for name in self._names.values() if name != ITSELF]
        return [*parts, ITSELF, OUTSIDE, GRADIENTS]

    def now(self) -> str:
        """Return who is at work."""
        running = backward_pass()
        if self._at_work:
            _, name, began_in = self._at_work[-1]
            if began_in == running:  # else a backward pass began inside this module's forward
                return name
        return OUTSIDE if running == NO_PASS else GRADIENTS

    def _begins(self, module: torch.nn.Module, _: Any) -> None:
        name = self._names.get(id(module))
        if name is not None:
            self._at_work.append((id(module), name, backward_pass()))

    def _ends(self, module: torch.nn.Module, *_: Any) -> None:
        if self._at_work and self._at_work[-1][0] == id(module):
            self._at_work.pop()
