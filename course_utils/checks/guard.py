"""Running learner code so that nothing of the session changes."""

from __future__ import annotations

import contextlib
import random
import sys
import warnings
from collections.abc import Iterator

import torch


@contextlib.contextmanager
def guarded(seed: int) -> Iterator[list[str]]:
    """Run the body in PyTorch's normal state, then put back what the session had before.

    Normal means: gradients on, no inference mode, no autocast, float32, no anomaly detection, generators seeded,
    and one thread: with small tensors several are no faster, and on a busy machine they wait for one another,
    which makes 2 s of a verdict of 50 ms. What is put back: these, and the states of the generators of torch,
    random and NumPy. Warnings go to the list that is yielded, and stderr to stdout, because nbgrader gives zero
    points to a cell that writes to stderr.
    """
    dtype = torch.get_default_dtype()
    on_cpu = torch.get_default_device().type == "cpu"
    threads = torch.get_num_threads()
    anomaly = torch.is_anomaly_enabled(), torch.is_anomaly_check_nan_enabled()
    states = torch.get_rng_state(), random.getstate()
    numpy = sys.modules.get("numpy")
    numpy_state = numpy.random.get_state() if numpy is not None else None
    caught: list[str] = []
    raised: list[warnings.WarningMessage] | None = []
    try:
        with (
            torch.inference_mode(False),
            torch.enable_grad(),
            torch.autocast("cpu", enabled=False),
            contextlib.nullcontext() if on_cpu else torch.device("cpu"),
            warnings.catch_warnings(record=True) as raised,
            contextlib.redirect_stderr(sys.stdout),
        ):
            warnings.simplefilter("always")
            torch.set_default_dtype(torch.float32)
            torch.set_num_threads(1)
            torch.autograd.set_detect_anomaly(False)
            torch.default_generator.manual_seed(seed)  # torch.manual_seed would touch accelerators too
            random.seed(seed)
            yield caught
    finally:
        caught += dict.fromkeys(f"{warning.category.__name__}: {warning.message}" for warning in raised or ())
        torch.set_default_dtype(dtype)
        torch.set_num_threads(threads)
        torch.autograd.set_detect_anomaly(*anomaly)
        torch.set_rng_state(states[0])
        random.setstate(states[1])
        if numpy is not None:
            numpy.random.set_state(numpy_state)
