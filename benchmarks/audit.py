"""What a watch costs a training: each step's time with it and without it, in turn, by the thread's own clock."""

from __future__ import annotations

import itertools
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, nullcontext
from importlib import import_module
from importlib.util import find_spec

import torch
from torch import nn
from torch.nn import functional as F

from benchmarks.timing import Row, one_thread
from course_utils.audit.watch import audit

_ROUNDS = 9
_STEPS = 20
# The limits are for a step of so many seconds. A watch costs about as much in a shorter one.
_STEP_SECONDS = 0.008


def rows() -> Iterator[Row]:
    with one_thread():
        for name, step, limits in _steps():
            plain, ratios = _ratios(step)
            for (kind, ratio), limit in zip(ratios.items(), (*limits, 0, 0), strict=False):
                kept = f"at most {limit} times" if limit else ""
                result = f"{ratio:.2f} times a plain step ({plain * 1e3:.1f} ms)"
                yield Row(f"{kind}, a step of {name}", result, kept, not limit or ratio <= limit)


def _steps() -> Iterator[tuple[str, _Step, tuple[float, ...]]]:
    """Give each network with the smallest batch of eights that makes its step long enough, and with one of 8."""
    for name, make in (
        ("a convolutional network of 4 blocks", _convolutions),
        ("a TransformerEncoder of 4 layers", _transformer),
    ):
        batch = next(size for size in itertools.count(8, 8) if _seconds(make(size), nullcontext) >= _STEP_SECONDS)
        yield f"{name}, batch {batch}", make(batch), (1.35, 2.2)
        if batch > 8:
            yield f"{name}, batch 8", make(8), (0, 0)
    yield "a small MLP, batch 32", _perceptron(32), (0, 0)


def _ratios(step: _Step) -> tuple[float, dict[str, float]]:
    """Return a plain step's time, and how many times that each kind of watch takes. Each round makes its own ratio."""
    kinds: dict[str, Callable[[], AbstractContextManager[object]]] = {
        "`audit`, default tier": lambda: audit(steps=0),
        "`audit`, full tier": lambda: audit(steps=10 * _STEPS),
        "anomaly mode": lambda: torch.autograd.detect_anomaly(check_nan=True),
    }
    if find_spec("torch_audit") is not None:  # not among our pins: measured where somebody has installed it
        kinds["torch-audit"] = lambda: _torch_audit(step)
    plains: list[float] = []
    ratios: dict[str, list[float]] = {name: [] for name in kinds}
    for _ in range(_ROUNDS):
        plain = _seconds(step, nullcontext)
        plains.append(plain)
        for name, watch in kinds.items():
            ratios[name].append(_seconds(step, watch) / plain)
    return statistics.median(plains), {name: statistics.median(values) for name, values in ratios.items()}


def _torch_audit(step: _Step) -> AbstractContextManager[object]:
    auditor = import_module("torch_audit").Auditor(step.model, optimizer=step.optimizer, every_n_steps=1)
    auditor.autopatch()
    stack = ExitStack()
    stack.callback(auditor.unpatch)
    return stack


def _seconds(step: Callable[[], None], watch: Callable[[], AbstractContextManager[object]]) -> float:
    """Return the thread's time for one step, the median of several, the first left out."""
    times = []
    with watch():
        step()
        for _ in range(_STEPS):
            start = time.thread_time()
            step()
            times.append(time.thread_time() - start)
    return statistics.median(times)


class _Step:
    """One step of a training, to be called."""

    def __init__(self, model: nn.Module, x: torch.Tensor, y: torch.Tensor) -> None:
        self.model, self._x, self._y = model, x, y
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)

    def __call__(self) -> None:
        self.optimizer.zero_grad()
        loss = F.cross_entropy(self.model(self._x), self._y)
        loss.backward()
        nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()


def _convolutions(batch: int) -> _Step:
    def block(i: int, o: int) -> nn.Sequential:
        return nn.Sequential(nn.Conv2d(i, o, 3, padding=1), nn.BatchNorm2d(o), nn.ReLU())

    body = [block(3, 16), block(16, 16), nn.MaxPool2d(2), block(16, 32), block(32, 32), nn.AdaptiveAvgPool2d(1)]
    model = nn.Sequential(*body, nn.Flatten(), nn.Linear(32, 10))
    return _Step(model, torch.randn(batch, 3, 20, 20), torch.randint(10, (batch,)))


def _transformer(batch: int) -> _Step:
    layer = nn.TransformerEncoderLayer(32, 4, 64, batch_first=True)
    model = nn.Sequential(nn.TransformerEncoder(layer, 4), nn.Flatten(), nn.Linear(16 * 32, 10))
    return _Step(model, torch.randn(batch, 16, 32), torch.randint(10, (batch,)))


def _perceptron(batch: int) -> _Step:
    model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 10))
    return _Step(model, torch.randn(batch, 16), torch.randint(10, (batch,)))
