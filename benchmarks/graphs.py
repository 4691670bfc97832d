"""`trace` and `saved` against a bare walk and against torchviz."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch
from torchviz import make_dot

from benchmarks.timing import Row, medians
from course_utils import saved, trace

# The worst case known, for comparison: each node saves a number of its own and has a second place that stays empty.
UNLIMITED = ("5,000 products with a number",)


def chain(operation: Callable[[torch.Tensor], torch.Tensor], length: int = 5000) -> torch.Tensor:
    y = torch.ones(3, requires_grad=True)
    for _ in range(length):
        y = operation(y)
    return y


def lstm(steps: int = 100) -> torch.Tensor:
    cell = torch.nn.LSTMCell(4, 5)
    h = c = torch.zeros(1, 5)
    for _ in range(steps):
        h, c = cell(torch.randn(1, 4), (h, c))
    return h.sum()


def transformer(layers: int = 6) -> torch.Tensor:
    encoder = torch.nn.TransformerEncoder(torch.nn.TransformerEncoderLayer(16, 2, 32, batch_first=True), layers)
    return encoder(torch.randn(2, 5, 16)).sum()


def bare_walk(tensor: torch.Tensor) -> int:
    """The floor: visit every node once and keep nothing of it."""
    nodes = [tensor.grad_fn]
    seen = {tensor.grad_fn}
    for node in nodes:
        for to, _ in node.next_functions:
            if to is not None and to not in seen:
                seen.add(to)
                nodes.append(to)
    return len(nodes)


def rows() -> Iterator[Row]:
    graphs = {
        "a chain of 5,000 operations": chain(torch.tanh),
        "5,000 products with a number": chain(lambda y: y * 1.01),
        "an LSTMCell loop of 100 steps": lstm(),
        "a TransformerEncoder of 6 layers": transformer(),
    }
    for name, tensor in graphs.items():
        nodes = bare_walk(tensor)
        times = medians(
            {
                "walk": lambda tensor=tensor: bare_walk(tensor),
                "trace": lambda tensor=tensor: trace(tensor),
                "saved": lambda tensor=tensor: saved(tensor),
            }
        )
        for function, limit in (("trace", 6), ("saved", 15)):
            ratio = times[function] / times["walk"]
            what = f"`{function}` on {name} ({nodes:,} nodes)"
            result = f"{ratio:.1f} times the bare walk ({times[function] * 1e3:.2f} ms)"
            if name in UNLIMITED and function == "saved":
                yield Row(what, result, "", True)
            else:
                yield Row(what, result, f"at most {limit} times", ratio <= limit)
    tensor = graphs["an LSTMCell loop of 100 steps"]
    times = medians({"trace": lambda: trace(tensor), "make_dot": lambda: make_dot(tensor)}, rounds=7)
    ratio = times["make_dot"] / times["trace"]
    what = "torchviz's `make_dot` on the LSTMCell loop"
    yield Row(what, f"`trace` is {ratio:.0f} times faster", "at least 8 times", ratio >= 8)
