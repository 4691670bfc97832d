"""Comparing times on a noisy machine: everything that is compared runs in turn, in one process."""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

import torch


@dataclass(frozen=True)
class Row:
    """One line of the table: what was measured, what came out, and the limit it is held against."""

    what: str
    result: str
    limit: str
    holds: bool


def seconds(function: Callable[[], object], clock: Callable[[], float] = time.perf_counter) -> float:
    """Return the time of one call, by a clock in seconds."""
    start = clock()
    function()
    return clock() - start


def medians(
    functions: Mapping[str, Callable[[], object]], rounds: int = 31, clock: Callable[[], float] = time.perf_counter
) -> dict[str, float]:
    """Return each function's median time in seconds; in each round all of them run once, in turn.

    With `time.process_time` for a clock what others run on the machine counts less; it adds up the time of all threads.
    """
    for function in functions.values():
        function()
    gc.collect()
    times: dict[str, list[float]] = {name: [] for name in functions}
    for _ in range(rounds):
        for name, function in functions.items():
            times[name].append(seconds(function, clock))
    return {name: statistics.median(samples) for name, samples in times.items()}


@contextmanager
def one_thread() -> Iterator[None]:
    """Let PyTorch compute in one thread, and as before afterwards."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)
