"""What lesson 10's answers are tried on: Functions to verify; and what can be seen of an answer's graph and traces."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import torch
from torch.autograd.function import FunctionCtx
from torch.autograd.graph import get_gradient_edge

from course_utils.checks.data import Array, plain
from course_utils.checks.observing.traces import changes, hook_counts

# More operations than any answer needs. A look at a graph ends there.
MAX_OPERATIONS = 50


def attached(result: Any, like: torch.Tensor) -> bool:
    """Return whether a gradient of the shape and dtype of `like` can be sent back through `result`."""
    return (
        type(result) is torch.Tensor
        and result.requires_grad
        and result.shape == like.shape
        and result.dtype == like.dtype
    )


def operations(result: torch.Tensor, *inputs: torch.Tensor) -> list[list[Any]]:
    """Return name and kind, True for a custom Function, of each node between a result and what it was made from."""
    ends = {get_gradient_edge(tensor).node for tensor in inputs if tensor.requires_grad}
    nodes = [get_gradient_edge(result).node]
    seen = set(nodes) | ends
    found: list[list[Any]] = []
    for node in nodes:
        if node in ends:
            continue
        found.append([node.name(), isinstance(node, FunctionCtx)])
        if len(found) == MAX_OPERATIONS:
            break
        for before, _ in node.next_functions:
            if before is not None and before not in seen:
                seen.add(before)
                nodes.append(before)
    return found


class Surroundings:
    """What an answer has to leave as it was: modes, PyTorch's random numbers, and the tensors that are not its own."""

    def __init__(self, tensors: dict[str, torch.Tensor], may_draw: bool = False) -> None:
        self._tensors, self._may_draw = tensors, may_draw
        self._before = self._state()

    def changed(self) -> list[str]:
        """Name what is not as it was."""
        return changes(self._before, self._state())

    def _state(self) -> dict[str, Any]:
        state: dict[str, Any] = {name: _all_of(tensor) for name, tensor in self._tensors.items()}
        state["the grad mode"] = torch.is_grad_enabled()
        if not self._may_draw:
            state["PyTorch's random generator"] = Array.of(torch.get_rng_state())
        return state


def _all_of(tensor: torch.Tensor) -> list[Any]:
    marks = [tensor.requires_grad, tensor.retains_grad, tensor.is_leaf and tensor.grad is not None]
    return [Array.of(tensor), *marks, hook_counts(tensor)]


def after_a_write(written: torch.Tensor, result: Any, wanted: list[torch.Tensor], direction: torch.Tensor) -> Any:
    """Write to an input of a result that is there already. Return its gradients all the same, or "raised"."""
    if not attached(result, direction):
        return []
    written.detach().add_(1)
    try:
        return [plain(each) for each in torch.autograd.grad(result, wanted, direction, allow_unused=True)]
    except RuntimeError:
        return "raised"


def bytes_on_ctx(total: torch.Tensor) -> int:
    """Return about how many bytes hang on ctx in numbers, texts and containers, for a sum of a Function's result."""
    node = total.grad_fn.next_functions[0][0] if total.grad_fn is not None else None
    return _size(list(vars(node).values())) if isinstance(node, FunctionCtx) else 0


def _size(value: Any) -> int:
    total, rest = 0, [value]
    for item in rest:
        total += sys.getsizeof(item) if type(item) in (bytes, bytearray, int, float, str, list, tuple) else 0
        if type(item) in (list, tuple, set):
            rest += item
        elif type(item) is dict:
            rest += [*item, *item.values()]
        if len(rest) > 10_000:
            break
    return total


# Functions to verify. Each forward is plain; what is right or wrong is the backward.

Forward = Callable[[torch.Tensor], torch.Tensor]
Backward = Callable[[torch.Tensor, torch.Tensor], "torch.Tensor | None"]


def _function(forward: Forward, backward: Backward) -> Forward:
    """Return a function of one tensor whose gradient is backward(x, incoming gradient)."""

    class Given(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
            ctx.save_for_backward(x)
            return forward(x)

        @staticmethod
        def backward(ctx: Any, incoming: torch.Tensor) -> torch.Tensor | None:
            (x,) = ctx.saved_tensors
            return backward(x, incoming)

    def given(x: torch.Tensor) -> torch.Tensor:
        result: torch.Tensor = Given.apply(x)  # type: ignore[no-untyped-call]
        return result

    return given


_MIX = torch.tensor([[0.7, -1.3, 2.1, 0.4], [1.9, 0.6, -0.8, 1.1], [-0.5, 1.7, 0.9, -2.3]], dtype=torch.float64)


def _softmax(x: torch.Tensor) -> torch.Tensor:
    return torch.softmax(x, -1)


def _through_softmax(x: torch.Tensor, g: torch.Tensor) -> torch.Tensor:
    y = _softmax(x)
    return y * (g - (g * y).sum(-1, keepdim=True))


def _all_but_last(x: torch.Tensor, g: torch.Tensor) -> torch.Tensor:
    gradient = g * x.cos()
    gradient[-1, -1] = 0
    return gradient


FUNCTIONS: dict[str, Forward] = {
    "cube": _function(lambda x: x**3, lambda x, g: 3 * g * x**2),
    "steep": _function(lambda x: (4 * x).exp(), lambda x, g: 4 * g * (4 * x).exp()),
    "mix": _function(lambda x: x @ _MIX, lambda x, g: g @ _MIX.T),
    "softmax": _function(_softmax, _through_softmax),
    "flip": _function(lambda x: x.flip(1) * 2, lambda x, g: 2 * g.flip(1)),
    "total": _function(lambda x: x.pow(2).sum(), lambda x, g: 2 * g * x),
    "sine, slightly off": _function(lambda x: x.sin(), lambda x, g: 1.01 * g * x.cos()),
    "sine without the last": _function(lambda x: x.sin(), _all_but_last),
    "sine without incoming": _function(lambda x: x.sin(), lambda x, g: x.cos()),
    "softmax, only its diagonal": _function(_softmax, lambda x, g: g * _softmax(x) * (1 - _softmax(x))),
    "softmax without a gradient": _function(_softmax, lambda x, g: torch.zeros_like(x)),
    "flip not flipped back": _function(lambda x: x.flip(1) * 2, lambda x, g: 2 * g),
    "cumulated forwards": _function(lambda x: x.cumsum(1), lambda x, g: g.cumsum(1)),
    "mix, rows exchanged": _function(lambda x: x @ _MIX, lambda x, g: g @ _MIX.flip(0).T),
    "nothing returned": _function(lambda x: 3 * x, lambda x, g: None),
}
