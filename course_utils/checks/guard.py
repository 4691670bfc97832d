"""Running learner code so that nothing of the session changes."""

from __future__ import annotations

import contextlib
import io
import random
import signal
import sys
import threading
import warnings
from collections.abc import Iterator
from functools import partial
from typing import Any, TextIO

import torch

from course_utils.checks.data import printable
from course_utils.checks.frames import importing
from course_utils.checks.settings import MODULE_HOOKS, OPTIMIZER_HOOKS, VALUES, copies_of, put_back, saving_hook

# What the learner's code may print while it is checked, and how many different warnings are told.
MAX_PRINTED = 100_000
MAX_WARNINGS = 5


@contextlib.contextmanager
def guarded(seed: int) -> Iterator[list[str]]:
    """Run the body in PyTorch's normal state, then put back what the session had before.

    Normal means: gradients on, no inference mode, no autocast, float32 on the CPU, no anomaly detection, generators
    seeded, and one thread: with small tensors several are no faster, and on a busy machine they wait for one another,
    which makes 2 s of a verdict of 50 ms. These are put back, and the states of the generators of torch, random and
    NumPy, deterministic mode, hooks for all modules and optimizers, the handler of Ctrl-C, the recursion limit, trace
    and profile functions, stdout and stderr.

    Warnings go to the list that is yielded, and stderr to stdout, because nbgrader gives zero points to a cell that
    writes to stderr. What a library warns of while it is imported is nobody's, and told to nobody.
    """
    caught: list[str] = []
    with contextlib.ExitStack() as after:  # it puts back all of it, even where putting back one thing fails
        for restore, before in _session():
            after.callback(restore, *before)
        with (
            torch.inference_mode(False),
            torch.enable_grad(),
            torch.autocast("cpu", enabled=False),
            warnings.catch_warnings(),
            contextlib.redirect_stdout(_Printed(sys.stdout)) as printed,
            contextlib.redirect_stderr(printed),
        ):
            raised: list[warnings.WarningMessage] = []
            after.callback(_tell, raised, caught)
            warnings.showwarning = partial(_keep, raised)
            warnings.simplefilter("always")
            torch.set_default_dtype(torch.float32)
            if torch.get_default_device().type != "cpu":
                torch.set_default_device("cpu")
            torch.set_num_threads(1)
            torch.autograd.set_detect_anomaly(False)
            torch.default_generator.manual_seed(seed)  # torch.manual_seed would touch accelerators too
            random.seed(seed)
            yield caught


def _session() -> Iterator[tuple[Any, tuple[Any, ...]]]:
    """Yield functions that put the session back, with what they need. The last ones are called first."""
    yield sys.setrecursionlimit, (sys.getrecursionlimit(),)
    yield sys.settrace, (sys.gettrace(),)
    if callable(profile := sys.getprofile()) or profile is None:  # cProfile's cannot be put back, and nothing moved it
        yield sys.setprofile, (profile,)
    if threading.current_thread() is threading.main_thread() and (handler := signal.getsignal(signal.SIGINT)):
        yield signal.signal, (signal.SIGINT, handler)
    yield random.setstate, (random.getstate(),)
    if (numpy := sys.modules.get("numpy")) is not None:
        yield numpy.random.set_state, (numpy.random.get_state(),)
    for hooks in (MODULE_HOOKS, OPTIMIZER_HOOKS):
        yield put_back, (hooks, copies_of(hooks))
    deterministic = torch.are_deterministic_algorithms_enabled(), torch.is_deterministic_algorithms_warn_only_enabled()
    yield _put_back_deterministic, deterministic
    yield torch.set_rng_state, (torch.get_rng_state(),)
    for read, put in VALUES.values():
        yield put, (read(),)
    yield _put_back_saving, (saving_hook(),)
    yield torch.autograd.set_detect_anomaly, (torch.is_anomaly_enabled(), torch.is_anomaly_check_nan_enabled())
    yield torch.set_default_dtype, (torch.get_default_dtype(),)
    yield _put_back_device, (torch.get_default_device(),)


def _put_back_deterministic(on: bool, warns: bool) -> None:
    if (on, warns) != (
        torch.are_deterministic_algorithms_enabled(),
        torch.is_deterministic_algorithms_warn_only_enabled(),
    ):
        torch.use_deterministic_algorithms(on, warn_only=warns)  # it imports much


def _put_back_saving(before: Any) -> None:
    while (now := saving_hook()) is not None and now != before:
        torch._C._autograd._pop_saved_tensors_default_hooks()


def _put_back_device(device: torch.device) -> None:
    if torch.get_default_device() != device:  # setting it, even to the same, makes all of PyTorch slower
        torch.set_default_device(None if device.type == "cpu" else device)


def _keep(raised: list[warnings.WarningMessage], *warning: Any) -> None:
    if not importing(sys._getframe(1)):
        raised.append(warnings.WarningMessage(*warning))


def _tell(raised: list[warnings.WarningMessage], caught: list[str]) -> None:
    texts = dict.fromkeys(printable(f"{warning.category.__name__}: {warning.message}"[:500]) for warning in raised)
    caught += list(texts)[:MAX_WARNINGS]
    if len(texts) > MAX_WARNINGS:
        caught.append(f"and {len(texts) - MAX_WARNINGS} more warnings")


class _Printed(io.TextIOBase):
    """Passes on what learner code prints, up to a limit, and survives being closed."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._left = MAX_PRINTED

    def write(self, text: str) -> int:
        if self._left > 0:
            self._stream.write(text[: self._left])
            self._left -= len(text)
            if self._left <= 0:
                self._stream.write("\n... and more, which is not shown\n")
        return len(text)

    def flush(self) -> None:
        self._stream.flush()

    def close(self) -> None:
        """Do nothing: the stream is the session's."""
