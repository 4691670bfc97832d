"""The engines of lesson 11: verdicts on them; and against PyTorch, seconds for the same function, and bytes kept.

All times are the processor's, on one core, so that what else the machine runs does not decide.
"""

from __future__ import annotations

import time
import tracemalloc
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import torch
from threadpoolctl import threadpool_limits
from torch.nn.functional import cross_entropy

from benchmarks.timing import Row, medians, one_thread
from course_utils import saved
from course_utils.checks.examine import examine
from course_utils.checks.judges.lesson_11_build_your_own import ORDER
from course_utils.checks.registry import exercises, observer_for
from course_utils.checks.scenes.lesson_11_build_your_own.digits import digits, start
from tests.answers import RIGHT
from tests.answers.lesson_11_build_your_own.counting import Counting
from tests.answers.lesson_11_build_your_own.taping import taping

COUNTS = (1, 32, 1024)
HIDDEN = 64
ENGINES: dict[str, Callable[[], Any]] = {"counts what waits": Counting, "runs the last recorded first": taping}


def rows() -> Iterator[Row]:
    with one_thread(), threadpool_limits(1):  # NumPy's products on one core, too
        yield from _verdicts()
        for count in COUNTS:
            yield from _times(count)
        yield from _bytes(COUNTS[-1])


def _verdicts() -> Iterator[Row]:
    """Give each stage's verdict on the right engine that takes longest."""
    for stage in ORDER:
        examined = partial(examine, exercises()[stage], observer_for(exercises()[stage]))
        calls = {str(number): partial(examined, engine) for number, engine in enumerate(RIGHT[stage])}
        longest = max(medians(calls, rounds=7, clock=time.process_time).values())
        what = f"lesson 11, a verdict on `{stage}`, the longest of {len(calls)} right engines, processor time"
        yield Row(what, f"{longest * 1e3:.0f} ms", "under 500 ms", longest < 0.5)


def _times(count: int) -> Iterator[Row]:
    images, labels = digits(count, 3)
    makers = {name: make().tensor for name, make in ENGINES.items()} | {"PyTorch": torch.tensor}
    calls = {name: _step(tensor, images, labels, _loss) for name, tensor in makers.items()}
    calls["as one writes it"] = _step(torch.tensor, images, labels, _usual)
    times = medians(calls, rounds=31, clock=time.process_time)
    theirs, usual = times.pop("PyTorch"), times.pop("as one writes it")
    for name, seconds in times.items():
        what = f"lesson 11, engine that {name}: forward and backward of two layers, {count} images"
        result = (
            f"{seconds / theirs:.1f} times PyTorch's time for the same operations, {seconds / usual:.1f} times that "
            f"with `cross_entropy` ({seconds * 1e3:.2f}, {theirs * 1e3:.2f} and {usual * 1e3:.2f} ms)"
        )
        yield Row(what, result, "", True)


def _step(tensor: Any, images: Any, labels: Any, loss: Callable[..., Any]) -> Callable[[], None]:
    x, parameters = tensor(images), [tensor(array, requires_grad=True) for array in start(5, HIDDEN)]
    return lambda: loss(x, parameters, labels).backward()


def _loss(x: Any, parameters: list[Any], labels: Any) -> Any:
    """Return the mean cross-entropy, by operations that all engines have."""
    w1, b1, w2, b2 = parameters
    scores = (x @ w1 + b1).relu() @ w2 + b2
    picked = scores[np.arange(len(labels)), labels]
    return (scores.exp().sum(axis=1).log() - picked).sum() * (1 / len(labels))


def _usual(x: Any, parameters: list[Any], labels: Any) -> torch.Tensor:
    w1, b1, w2, b2 = parameters
    return cross_entropy((x @ w1 + b1).relu() @ w2 + b2, torch.from_numpy(labels))


def _bytes(count: int) -> Iterator[Row]:
    images, labels = digits(count, 3)
    x, weights = torch.tensor(images), [torch.tensor(array, requires_grad=True) for array in start(5, HIDDEN)]
    theirs = saved(_loss(x, weights, labels), besides=[x]).bytes
    for name, make in ENGINES.items():
        engine = make()
        x = engine.tensor(images)
        parameters = [engine.tensor(array, requires_grad=True) for array in start(5, HIDDEN)]
        tracemalloc.start()
        loss = _loss(x, parameters, labels)
        kept = tracemalloc.get_traced_memory()[0]
        tracemalloc.stop()
        del loss
        what = f"lesson 11, engine that {name}: bytes kept for backward, {count} images"
        result = f"{kept / theirs:.2f} times PyTorch's ({kept / 1e6:.2f} and {theirs / 1e6:.2f} MB)"
        yield Row(what, result, "at most 2 times", kept <= 2 * theirs)
