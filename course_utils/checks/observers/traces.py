"""What code may leave behind: hooks on modules, tensors and optimizers, and facts that are not as they were."""

from __future__ import annotations

import gc
from collections.abc import Mapping
from typing import Any

import torch
from torch import nn
from torch.autograd.graph import get_gradient_edge

# Where PyTorch keeps hooks, each kind in a dict from a handle's number to the hook. An item has some of the kinds.
_PLACES = {*vars(nn.Module()), *torch.optim.Optimizer.__annotations__, *dir(torch.Tensor)}
KINDS = tuple(sorted(name for name in _PLACES if name.endswith("_hooks")))


def hooks_of(item: Any) -> list[Mapping[int, Any]]:
    """Return the hooks on a module, tensor or optimizer, for each kind, and those on the node that adds to `.grad`."""
    return [*(getattr(item, kind, None) or {} for kind in KINDS), _on_its_node(item)]


def _on_its_node(item: Any) -> Mapping[int, Any]:
    """Return the hooks on the node that accumulates a leaf's gradient: no attribute holds them, but the node does."""
    if not (isinstance(item, torch.Tensor) and item.requires_grad and item.is_leaf):
        return {}
    held = gc.get_referents(get_gradient_edge(item).node)
    kinds: list[Mapping[int, Any]] = [it for it in held if isinstance(it, dict) and it is not item._backward_hooks]
    return {number: hook for hooks in kinds for number, hook in hooks.items()}


def hook_counts(item: Any) -> list[int]:
    """Return how many hooks of each kind a module, tensor or optimizer has."""
    return [len(hooks) for hooks in hooks_of(item)]


def which_hooks(item: Any) -> list[list[int]]:
    """Return the hooks of each kind that a module, tensor or optimizer has, by their ids."""
    return [list(map(id, hooks.values())) for hooks in hooks_of(item)]


def hooks_on(*items: Any, ours: tuple[Any, ...] = ()) -> int:
    """Return how many hooks modules, tensors and optimizers have, without those of `ours`."""
    return sum(hook not in ours for item in items for hooks in hooks_of(item) for hook in hooks.values())


def parts_of(*models: nn.Module) -> list[Any]:
    """Return what hooks can hang on in models: their modules and parameters."""
    return [part for model in models for part in (*model.modules(), *model.parameters())]


def changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    """Name the facts that differ."""
    return [what for what in {**before, **after} if before.get(what) != after.get(what)]
