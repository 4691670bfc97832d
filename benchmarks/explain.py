"""What explaining errors costs: each backward pass while the extension is loaded, and a card after an error."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any
from unittest import mock

import torch

from benchmarks.timing import Row, medians
from course_utils.explain import passes
from course_utils.explain.explaining import explain

PASSES = 2_000


def rows() -> Iterator[Row]:
    cost = seconds_for_each_pass()
    what = "a backward pass with the extension loaded, over one without, the engine's own time left out"
    yield Row(what, f"{cost * 1e6:.2f} µs more", "under 1 µs", cost < 1e-6)
    errors = {"the same loss twice": twice, "written in place, in a graph of 800 nodes": in_place}
    times = medians({name: _explaining(run) for name, run in errors.items()}, rounds=15)
    for name, seconds in times.items():
        yield Row(f"`explain` of an error: {name}", f"{seconds * 1e3:.1f} ms", "under 50 ms", seconds < 0.05)


def seconds_for_each_pass(rounds: int = 60) -> float:
    """Return what noting a pass adds, in thread time: the least of many rounds with it, less the least without.

    An engine that does nothing stands in for PyTorch's, whose own time varies by more than noting costs.
    """
    times: dict[bool, list[float]] = {True: [], False: []}
    with mock.patch.object(torch.autograd, "_engine_run_backward", _no_engine):
        for noted in (True, False, False, True) * (rounds // 2):
            if noted:
                passes.remember()
            try:
                times[noted].append(_passes() / PASSES)
            finally:
                passes.forget()
    return min(times[True]) - min(times[False])


def _no_engine(
    outputs: Any, seeds: Any, retain: Any, create: Any, inputs: Any, allow_unreachable: Any, accumulate_grad: Any
) -> None:
    pass


def _passes() -> float:
    w = torch.ones(1, requires_grad=True)
    losses = [w * 2 for _ in range(PASSES)]
    start = time.thread_time()
    for loss in losses:
        loss.backward()
    return time.thread_time() - start


def twice() -> None:
    w = torch.ones(3, requires_grad=True)
    loss = (w**2).sum()
    loss.backward()
    loss.backward()


def in_place() -> None:
    w = torch.ones(3, requires_grad=True)
    y = w.exp()
    total = y * 1
    for _ in range(800):
        total = total + y
    y += 1
    total.sum().backward()


def _explaining(run: Callable[[], None]) -> Callable[[], object]:
    try:
        run()
    except RuntimeError as error:
        failed = error
    return lambda: explain(failed)
