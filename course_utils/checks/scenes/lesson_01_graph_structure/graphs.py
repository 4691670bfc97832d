"""Graphs to walk."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from course_utils.checks.data import Case

Named = dict[str, torch.Tensor]


def graph_of(case: Case) -> tuple[torch.Tensor, Named]:
    """Return the tensor of a case, and the other tensors that its graph may depend on, by name."""
    if "program" in case.given:
        return run_program(case.given["program"], case.given["tracked"])
    return SHAPES[case.given["shape"]]()


def write_to(tensor: torch.Tensor, named: Named) -> None:
    """Add a new leaf to a tensor in place: the same object then has another graph."""
    named["late"] = tracked_numbers(3)
    tensor.add_(named["late"])


def run_program(program: list[list[Any]], tracked: list[bool]) -> tuple[torch.Tensor, Named]:
    """Run operations on small tensors: the first ones are leaves, then each operation appends its result."""
    named = {f"t{i}": torch.full((3,), 0.5 + i / 7).requires_grad_(flag) for i, flag in enumerate(tracked)}
    values = list(named.values())
    for operation, *operands in program:
        values.append(_OPERATIONS[operation](*(values[i] for i in operands)))
    return values[-1], named


_OPERATIONS: dict[str, Callable[..., torch.Tensor]] = {
    "add": torch.add,
    "mul": torch.mul,
    "tanh": torch.tanh,
    "detach": torch.Tensor.detach,
}


def _leaf() -> tuple[torch.Tensor, Named]:
    x = tracked_numbers(3)
    return x, {"x": x}


def _no_graph() -> tuple[torch.Tensor, Named]:
    c = torch.ones(3)
    return (c * 2).sum(), {"c": c}  # of no dimension: nothing can be taken for a list of no nodes


def _constants() -> tuple[torch.Tensor, Named]:
    x, w, c = tracked_numbers(3), tracked_numbers(3), torch.full((3,), 1.5)
    return (x * c + w).sum() / 3, {"x": x, "w": w, "c": c}


def _diamond() -> tuple[torch.Tensor, Named]:
    x = tracked_numbers(3)
    w = x.detach().requires_grad_()  # a leaf of its own, in the same memory
    trunk = (x * w).exp()
    return trunk * trunk.sin().cos() + x, {"x": x, "w": w}


def _detached() -> tuple[torch.Tensor, Named]:
    x, w = tracked_numbers(3), tracked_numbers(3)
    return x.exp().detach() * w, {"x": x, "w": w}


def _several_outputs() -> tuple[torch.Tensor, Named]:
    x, w, unused = tracked_numbers(4), tracked_numbers(2), tracked_numbers(2)
    first, _, third, fourth = x.unbind()
    left, _ = torch.split(w * third, [1, 1])
    return (first * fourth + left).sum(), {"x": x, "w": w, "unused": unused}


def _last_output() -> tuple[torch.Tensor, Named]:
    x, w = tracked_numbers(3), tracked_numbers(1)
    *_, last = x.exp().unbind()
    return (last * w).sum(), {"x": x, "w": w}


def _written_view() -> tuple[torch.Tensor, Named]:
    x, w = tracked_numbers(5), tracked_numbers(3)
    y = x * 2
    y[1:4].mul_(w)
    return y.sum(), {"x": x, "w": w}


def _doublings() -> tuple[torch.Tensor, Named]:
    x = tracked_numbers(2)
    y = x
    for _ in range(40):
        y = y + y
    return y, {"x": x}


def _recurrent() -> tuple[torch.Tensor, Named]:
    cell = nn.LSTMCell(2, 3)
    start, memory = torch.zeros(1, 3, requires_grad=True), torch.zeros(1, 3)
    hidden = start
    for _ in range(12):
        hidden, memory = cell(torch.ones(1, 2), (hidden, memory))
    return hidden.sum(), {"start": start, **dict(cell.named_parameters())}


def _chain() -> tuple[torch.Tensor, Named]:
    x = tracked_numbers(2)
    y = x
    for _ in range(3_500):  # Jupyter allows a recursion of 3,000 calls
        y = y.neg()
    return y, {"x": x}


def _frozen_later() -> tuple[torch.Tensor, Named]:
    x, w = tracked_numbers(3), tracked_numbers(3)
    y = x * (x * w).exp()
    w.requires_grad_(False)
    return y, {"x": x, "w": w}


def _no_numbers() -> tuple[torch.Tensor, Named]:
    """A leaf of no numbers and one of no dimension: both are leaves as any other."""
    x, w = tracked_numbers(0), torch.tensor(0.7, requires_grad=True)
    return torch.cat([x.exp(), w.reshape(1).sin()]).sum(), {"x": x, "w": w}


def tracked_numbers(size: int) -> torch.Tensor:
    return (torch.arange(size) / 7 + 0.5).requires_grad_()


SHAPES: dict[str, Callable[[], tuple[torch.Tensor, Named]]] = {
    "leaf": _leaf,
    "no graph": _no_graph,
    "constants": _constants,
    "diamond": _diamond,
    "detached": _detached,
    "several outputs": _several_outputs,
    "last output": _last_output,
    "written view": _written_view,
    "frozen later": _frozen_later,
    "no numbers": _no_numbers,
    "doublings": _doublings,
    "recurrent": _recurrent,
    "chain": _chain,
}
