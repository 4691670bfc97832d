"""Noticing that a module runs, however it is called."""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any

from torch import nn

Told = Callable[[nn.Module, tuple[Any, ...], Any], None]


def notice(module: nn.Module, told: Told, begins: Callable[[], None] = lambda: None) -> None:
    """Call `told(module, inputs, result)` after each run of a module: by a call, by `forward`, in a copy or a thread.

    `begins` is called before each. Inputs given by name come after the others. A hook sees only calls: an answer that
    calls `model.forward(x)` would count as none, a right one and one that hides its runs alike. Where an answer may go
    through the layers one by one, notice a layer instead.
    The module's hooks, type and state are as before; what it holds more is its own `forward`.
    """

    def forward(self: nn.Module, *inputs: Any, **named: Any) -> Any:
        begins()
        result = type(self).forward(self, *inputs, **named)
        told(self, (*inputs, *named.values()), result)
        return result

    # A bound method: copy.deepcopy binds the copy's to the copy.
    module.forward = types.MethodType(forward, module)
