"""Settings that all code of a session shares: what an answer left changed of them, and putting hooks back."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch
from torch.nn.modules import module as modules
from torch.optim import optimizer as optimizers

from course_utils.checks.data import Observation
from course_utils.checks.exercise import Finding

# Narrower filters of warnings count only where nothing was imported: libraries add some of their own.
_FILTERS, _IMPORTED = "the number of filters of Python's warnings", "the number of imported modules"

# The entry of an observation that names them, each with what it was before and is now.
LEFT = "settings left changed"

# Where PyTorch keeps hooks that are called for every module, and for every optimizer.
MODULE_HOOKS: tuple[dict[int, Any], ...] = (
    *(modules._global_forward_hooks, modules._global_forward_pre_hooks),
    *(modules._global_backward_hooks, modules._global_backward_pre_hooks),
    *(modules._global_module_registration_hooks, modules._global_parameter_registration_hooks),
    modules._global_buffer_registration_hooks,
)
OPTIMIZER_HOOKS: tuple[dict[int, Any], ...] = (
    *(optimizers._global_optimizer_pre_hooks, optimizers._global_optimizer_post_hooks),
)

_SMALLEST = sys.float_info.min  # half of it is no normal number any more

_PRINTING = "threshold", "edgeitems", "linewidth"


def _printing() -> tuple[int, ...]:
    return tuple(getattr(torch._tensor_str.PRINT_OPTS, name) for name in _PRINTING)


def _put_printing(values: tuple[int, ...]) -> None:
    torch.set_printoptions(**dict(zip(_PRINTING, values, strict=True)))


# Settings of one value each: how it is read, and how it is set.
VALUES: dict[str, tuple[Callable[[], Any], Callable[[Any], Any]]] = {
    "the number of threads": (torch.get_num_threads, torch.set_num_threads),
    "the precision of matrix products": (torch.get_float32_matmul_precision, torch.set_float32_matmul_precision),
    "the use of several threads in a backward pass": (
        torch._C._is_multithreading_enabled,
        torch._C._set_multithreading_enabled,
    ),
    "the flushing of the smallest numbers to zero": (lambda: _SMALLEST / 2 == 0, torch.set_flush_denormal),
    "cuDNN's search for the fastest algorithm": (torch._C._get_cudnn_benchmark, torch._C._set_cudnn_benchmark),
    "cuDNN's deterministic mode": (torch._C._get_cudnn_deterministic, torch._C._set_cudnn_deterministic),
    "the check of sparse tensors": (
        torch._C._check_sparse_tensor_invariants,
        torch._C._set_check_sparse_tensor_invariants,
    ),
    "oneDNN": (lambda: bool(torch.backends.mkldnn.enabled), torch.backends.mkldnn.set_flags),
    "PyTorch's repeating of each warning": (torch.is_warn_always_enabled, torch.set_warn_always),
    "the number of digits that tensors show": (lambda: torch._tensor_str.PRINT_OPTS.precision, torch.set_printoptions),
    "the scientific notation of tensors": (
        lambda: torch._tensor_str.PRINT_OPTS.sci_mode,
        lambda on: torch.set_printoptions(sci_mode=on),
    ),
    "how much of a tensor is shown": (_printing, _put_printing),
    "the fast path of attention": (torch.backends.mha.get_fastpath_enabled, torch.backends.mha.set_fastpath_enabled),
    "NNPACK": (torch._C._get_nnpack_enabled, torch._C._set_nnpack_enabled),
    "the checks of distributions": (
        lambda: bool(torch.distributions.Distribution._validate_args),
        torch.distributions.Distribution.set_default_validate_args,
    ),
}

_ALL = "ignore", None, None  # a filter's action, message and module


def settings() -> dict[str, str]:
    """Return what each setting is now, in words. The states of random generators are none: answers may draw."""
    return {
        "the gradient mode": _switch(torch.is_grad_enabled()),
        "inference mode": _switch(torch.is_inference_mode_enabled()),
        "anomaly mode": _switch(torch.is_anomaly_enabled()),
        "autocast on the CPU": _switch(torch.is_autocast_enabled("cpu")),
        "deterministic mode": _switch(torch.are_deterministic_algorithms_enabled()),
        "the default dtype": str(torch.get_default_dtype()),
        "the default device": str(torch.get_default_device()),
        **{what: _in_words(read()) for what, (read, _) in VALUES.items()},
        "a hook on all saved tensors": _switch(saving_hook() is not None),
        "the number of hooks for all modules": str(sum(map(len, MODULE_HOOKS))),
        "the number of hooks for all optimizers": str(sum(map(len, OPTIMIZER_HOOKS))),
        "the list of warnings that are ignored everywhere": _ignored(),
        _FILTERS: str(len(warnings.filters)),
        _IMPORTED: str(len(sys.modules)),
    }


def changed_since(before: Mapping[str, str]) -> list[list[str]]:
    """Return each setting that is another than before, with what it was and what it is."""
    after = settings()
    changed = [[what, before[what], now] for what, now in after.items() if now != before[what]]
    silent = (_IMPORTED, _FILTERS) if after[_IMPORTED] != before[_IMPORTED] else ()
    return [entry for entry in changed if entry[0] not in silent]


def left_changed(seen: Observation) -> Iterator[Finding]:
    """Find what an answer left changed of the settings. No finding says that all are as before."""
    entries = seen.get(LEFT)
    for entry in entries if isinstance(entries, list) else ():
        what, was, now = map(str, entry) if isinstance(entry, list) and len(entry) == 3 else ("a setting", "?", "?")
        text = f"After your code {what} is {now}; before, it was {was}. All later code goes by that: put it back."
        yield Finding("session", False, text)


def copies_of(hooks: tuple[dict[int, Any], ...]) -> tuple[dict[int, Any], ...]:
    """Return what `put_back` needs later."""
    return tuple(map(dict, hooks))


def put_back(hooks: tuple[dict[int, Any], ...], before: tuple[dict[int, Any], ...]) -> None:
    """Make hooks for all modules or optimizers those that they were."""
    for now, then in zip(hooks, before, strict=True):
        if now != then:
            now.clear()
            now.update(then)


def _ignored() -> str:
    """Return the kinds of warnings that a filter ignores in all modules, whatever they say: libraries add narrower."""
    kinds = [kind for action, text, kind, module, _ in warnings.filters if (action, text, module) == _ALL]
    return ", ".join(sorted({getattr(kind, "__name__", str(kind)) for kind in kinds})) or "empty"


def saving_hook() -> Any:
    """Return the hook on all saved tensors that is called now; None without one."""
    return torch._C._autograd._top_saved_tensors_default_hooks(True)


def _in_words(value: Any) -> str:
    return _switch(value) if isinstance(value, bool) else str(value)


def _switch(on: bool) -> str:
    return "on" if on else "off"
