"""Standing at PyTorch's entry points: what is put there, and taken away again."""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any

import torch
from torch.optim import lr_scheduler
from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook
from torch.utils.hooks import RemovableHandle

from course_utils.audit.recorder import Recorder


@contextmanager
def listening(recorder: Recorder) -> Iterator[None]:
    """Let a recorder hear of all that passes PyTorch's entry points while the body runs."""
    clip = torch.nn.utils.clip_grad
    with ExitStack() as stack:
        entries: tuple[tuple[Any, str, Callable[..., Any]], ...] = (
            (torch.autograd, "_engine_run_backward", recorder.run_engine),
            (torch.nn.Module, "__call__", recorder.modules.call),
            (torch.nn.Module, "zero_grad", recorder.optimizers.zero),
            (torch.nn.Module, "train", recorder.modules.train),
            (torch.nn.Module, "load_state_dict", recorder.modules.load),
            (torch.nn.Module, "state_dict", recorder.modules.state),
            (torch.optim.Optimizer, "__init__", recorder.optimizers.made_optimizer),
            (torch.optim.Optimizer, "zero_grad", recorder.optimizers.zero),
            (torch.amp.GradScaler, "scale", recorder.scaling.scale),
            (clip, "_get_total_norm", recorder.scaling.clip_norm),
            (clip, "_clip_grads_with_norm_", recorder.scaling.clip_scale),
            (clip, "_group_tensors_by_device_and_dtype", recorder.scaling.clip_value),
            (RemovableHandle, "__init__", recorder.modules.hook),
            *((owner, name, partial(recorder.seed, kind)) for owner, name, kind in _seeds()),
            (lr_scheduler.LRScheduler, "__init__", recorder.optimizers.made_optimizer),
            (lr_scheduler.ReduceLROnPlateau, "__init__", recorder.optimizers.made_optimizer),
            *((kind, "step", recorder.optimizers.schedule) for kind in _schedulers()),
        )
        for owner, name, hear in entries:
            stack.enter_context(_replaced(owner, name, hear))
        for handle in (
            register_optimizer_step_pre_hook(recorder.optimizers.step_pre),
            register_optimizer_step_post_hook(recorder.optimizers.step_post),
        ):
            stack.callback(handle.remove)
        yield


def _seeds() -> Iterator[tuple[Any, str, str]]:
    """Yield the functions that set a seed: where they stand, and what they are called by."""
    yield torch, "manual_seed", "torch.manual_seed"
    yield torch.random, "manual_seed", "torch.manual_seed"
    yield random, "seed", "random.seed"
    if "numpy" in sys.modules:
        yield sys.modules["numpy"].random, "seed", "np.random.seed"


def _schedulers() -> list[type]:
    """Return the classes of schedulers."""
    kinds = [kind for kind in vars(lr_scheduler).values() if isinstance(kind, type)]
    return [
        kind
        for kind in kinds
        if issubclass(kind, lr_scheduler.LRScheduler) and "step" in vars(kind) and kind.__name__ != "_LRScheduler"
    ]


@contextmanager
def _replaced(owner: Any, name: str, hear: Callable[..., Any]) -> Iterator[None]:
    """Put a function of ours, which is given the original, in the place of `owner.name`."""
    own = name in vars(owner)
    original = getattr(owner, name)

    def standing_in(*args: Any, **kwargs: Any) -> Any:
        return hear(original, *args, **kwargs)

    # Some of PyTorch reads a function's signature or name, and pickling needs its place.
    for attribute in ("__name__", "__qualname__", "__doc__", "__module__"):
        setattr(standing_in, attribute, getattr(original, attribute, None))
    standing_in.__wrapped__ = original  # type: ignore[attr-defined]
    setattr(owner, name, standing_in)
    try:
        yield
    finally:
        if own:
            setattr(owner, name, original)
        else:
            delattr(owner, name)
