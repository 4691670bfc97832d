"""Which parts of a model behave differently in training."""

from __future__ import annotations

import inspect
import weakref
from functools import cache
from typing import Any

import torch
from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.modules.dropout import _DropoutNd

_PARTS: weakref.WeakKeyDictionary[nn.Module, tuple[int, list[tuple[str, weakref.ref[nn.Module]]]]] = (
    weakref.WeakKeyDictionary()
)


def dependents(module: nn.Module) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the names of the parts that depend on the mode: those in training, and those in evaluation."""
    version = _structure(module)
    known = _PARTS.get(module)
    if known is None or known[0] != version:
        parts = [(name, weakref.ref(part)) for name, part in module.named_modules() if depends_on_mode(part)]
        known = _PARTS[module] = version, parts
    active: list[str] = []
    asleep: list[str] = []
    for name, reference in known[1]:
        part = reference()
        if part is not None:
            (active if part.training else asleep).append(name)
    return tuple(active), tuple(asleep)


def frozen_norms(module: nn.Module) -> list[tuple[str, _BatchNorm]]:
    """Return the batch norms in training mode whose own parameters are frozen, with their names."""
    dependents(module)
    parts = ((name, reference()) for name, reference in _PARTS[module][1])
    return [(name, part) for name, part in parts if isinstance(part, _BatchNorm) and _is_frozen(part)]


def _is_frozen(part: _BatchNorm) -> bool:
    return part.training and part.affine and not part.weight.requires_grad and not part.bias.requires_grad


def _structure(module: nn.Module) -> int:
    return hash(tuple(map(id, module._modules.values())))


def depends_on_mode(part: nn.Module) -> bool:
    """Say whether a module computes something else in training than in evaluation."""
    if isinstance(part, _DropoutNd):
        return part.p > 0
    if isinstance(part, _BatchNorm):  # without its buffers it takes the batch in both modes
        return part.running_mean is not None or part.running_var is not None
    if isinstance(part, nn.RReLU):
        return True
    if isinstance(part, nn.MultiheadAttention | nn.RNNBase):
        return float(part.dropout) > 0
    kind: Any = type(part)
    return _reads_mode(kind)


def is_normalization(part: nn.Module) -> bool:
    return isinstance(part, _BatchNorm)


@cache
def _reads_mode(kind: type[nn.Module]) -> bool:
    """Say whether the forward of a learner's own class asks for `self.training`."""
    if kind.__module__.split(".")[0] == torch.__name__:
        return False
    try:
        return "self.training" in inspect.getsource(kind.forward)
    except (OSError, TypeError):
        return False
