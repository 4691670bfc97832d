"""`record_backward` against a plain backward pass, and against torchlens where it is installed.

torchlens is no dependency of the course. Without changing the course's environment it comes by

    .venv/bin/python -m pip install --no-deps --target /tmp/peers torchlens safetensors tqdm
    PYTHONPATH=/tmp/peers .venv/bin/python -m benchmarks

What each records. torchlens 2.36 traces a forward pass first: every operation with its source line, its module and
its result. `Trace.log_backward(loss)` then runs the pass with a hook on each node and keeps each node's class, edges,
turn and time, tied to the forward operation and its module; `save_grads=True`, used here, also keeps a copy of the
gradient at each forward operation. `record_backward` needs no forward trace and knows no source lines, modules or
times. It keeps for each node what arrived from where and in which order, what was received after hooks, sent,
accumulated and freed: gradients by their norm, and small ones whole.
"""

from __future__ import annotations

import contextlib
import gc
import importlib.util
import io
import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch

from benchmarks.timing import Row, one_thread
from course_utils import record_backward
from course_utils.graph.trace import nodes_behind


@dataclass(frozen=True)
class Size:
    """A TransformerEncoder of 6 layers and the batch that it gets."""

    width: int
    hidden: int
    batch: int
    tokens: int

    def __str__(self) -> str:
        return f"a TransformerEncoder of 6 layers, width {self.width}, {self.batch} x {self.tokens} tokens"

    def build(self) -> tuple[torch.nn.Module, torch.Tensor]:
        layer = torch.nn.TransformerEncoderLayer(self.width, 4, self.hidden, batch_first=True, dropout=0.0)
        return torch.nn.TransformerEncoder(layer, 6), torch.rand(self.batch, self.tokens, self.width)


SIZES = (Size(128, 512, 8, 32), Size(64, 128, 8, 16), Size(32, 64, 8, 8))
MOST = 3  # times a plain pass
FASTER = 20  # times torchlens, for the second size, with the traced forward that it needs


def rows() -> Iterator[Row]:
    with one_thread():
        for size in SIZES:
            yield _against_a_plain_pass(size)
        if importlib.util.find_spec("torchlens") is None:
            yield Row("torchlens's backward trace", "not measured: it is not installed (see `passes.py`)", "", True)
            return
        for size in SIZES[:2]:
            yield from _against_torchlens(size)


def _against_a_plain_pass(size: Size) -> Row:
    model, x = size.build()
    nodes = len(record_backward(model(x).sum()).graph.nodes)

    def loss() -> torch.Tensor:
        return model(x).sum()

    passes = {"plain": torch.Tensor.backward, "hooked": _hooked, "recorded": record_backward}
    times = _in_turn({name: (loss, run) for name, run in passes.items()}, rounds=31)
    ratio, least = (times[name] / times["plain"] for name in ("recorded", "hooked"))
    what = f"`record_backward` on {size} ({nodes} nodes)"
    alone = f"its hooks, if they did nothing: {least:.1f} times"
    result = f"{ratio:.1f} times a plain pass ({times['recorded'] * 1e3:.1f} ms); {alone}"
    return Row(what, result, f"at most {MOST} times", ratio <= MOST)


def _hooked(loss: torch.Tensor) -> None:
    """Run a pass with the hooks that the recorder has, but empty: what any recording by them costs at least."""
    handles = []
    for node in nodes_behind(loss):
        if node is loss.grad_fn or hasattr(node, "variable"):
            handles.append(node.register_prehook(_nothing))
        handles.append(node.register_hook(_nothing))
    loss.backward()
    for handle in handles:
        handle.remove()


def _nothing(*_: object) -> None:
    pass


def _against_torchlens(size: Size) -> Iterator[Row]:
    """Compare the passes alone, and with the forward runs before them: torchlens needs a traced one."""
    import torchlens

    model, x = size.build()
    options = torchlens.options.CaptureOptions(save_grads=True)

    def traced() -> tuple[Any, torch.Tensor]:
        log = torchlens.trace(model, x, capture=options)
        return log, log[log.output_layers[0]].out.sum()

    def logged(pair: tuple[Any, torch.Tensor]) -> None:
        pair[0].log_backward(pair[1])

    def loss() -> torch.Tensor:
        return model(x).sum()

    with contextlib.redirect_stdout(io.StringIO()):
        alone = _in_turn({"torchlens": (traced, logged), "ours": (loss, record_backward)}, rounds=7)
        nothing = contextlib.nullcontext
        whole = _in_turn(
            {
                "torchlens": (nothing, lambda _: logged(traced())),
                "ours": (nothing, lambda _: record_backward(loss())),
            },
            rounds=7,
        )
    for what, times in (("the pass alone", alone), ("forward and backward", whole)):
        ratio = times["torchlens"] / times["ours"]
        what = f"torchlens's backward trace, {what}, on {size}"
        result = f"`record_backward` is {ratio:.1f} times faster ({times['torchlens'] * 1e3:.0f} ms for torchlens)"
        if times is whole and size is SIZES[1]:
            yield Row(what, result, f"at least {FASTER} times", ratio >= FASTER)
        else:
            yield Row(what, result, "", True)


def _in_turn(
    contestants: dict[str, tuple[Callable[[], Any], Callable[[Any], object]]], rounds: int
) -> dict[str, float]:
    """Return each contestant's median time in seconds; what it needs is prepared before the clock starts.

    It is the CPU time of this thread, in which all of a pass runs: what else the machine does counts less.
    """
    times: dict[str, list[float]] = {name: [] for name in contestants}
    for number in range(rounds + 2):
        for name, (prepare, run) in contestants.items():
            given = prepare()
            gc.collect()
            start = time.thread_time()
            run(given)
            if number > 1:  # the first rounds warm up
                times[name].append(time.thread_time() - start)
            del given
    return {name: statistics.median(samples) for name, samples in times.items()}
