"""What answers must leave as they found it, besides numbers and gradients."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from torch import nn

from course_utils.checks.observers.traces import changes, which_hooks
from course_utils.graph.alive import tensors_in

Optimizers = Iterable[torch.optim.Optimizer]


class Surroundings:
    """Modes, flags, hooks and settings. Made before an answer runs, and asked afterwards.

    Where the model `draws` random numbers itself, those to come are no concern.
    """

    def __init__(
        self,
        *items: torch.Tensor | nn.Module,
        optimizers: Optimizers = (),
        lists: Iterable[Any] = (),
        draws: bool = False,
    ) -> None:
        self._draws = draws
        self._modules = [module for item in items if isinstance(item, nn.Module) for module in item.modules()]
        self._tensors = [item for item in items if isinstance(item, torch.Tensor)]
        self._tensors += [parameter for module in self._modules for parameter in module.parameters(recurse=False)]
        self._optimizers, self._lists = list(optimizers), list(lists)
        self._tensors += tensors_in(self._lists)
        self._hooked = (*self._tensors, *self._modules, *self._optimizers)
        self._hooks = self._which_hooks()
        self._before = self._facts(self._hooks)

    def changed(self) -> list[str]:
        """Name what is not as it was."""
        hooks = self._which_hooks()
        found = changes(self._before, self._facts(hooks))
        if "the number of hooks" not in found and hooks != self._hooks:
            found.append("which hooks there are")
        return found

    def _which_hooks(self) -> list[list[list[int]]]:
        return list(map(which_hooks, self._hooked))

    def _facts(self, hooks: list[list[list[int]]]) -> dict[str, Any]:
        groups = [group for optimizer in self._optimizers for group in optimizer.param_groups]
        return {
            "the grad mode": torch.is_grad_enabled(),
            "a requires_grad flag": [tensor.requires_grad for tensor in self._tensors],
            "a training mode": [module.training for module in self._modules],
            "the number of hooks": [list(map(len, kinds)) for kinds in hooks],
            "an optimizer's settings": [{**group, "params": list(map(id, group["params"]))} for group in groups],
            "a list that it was given": [list(map(id, given)) for given in self._lists],
            "the random numbers to come": None if self._draws else torch.get_rng_state().tolist(),
        }
