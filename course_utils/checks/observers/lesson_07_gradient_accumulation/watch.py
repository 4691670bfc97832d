"""Watching loops over windows: what is read, run and stepped, and in which order."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import nn

from course_utils.checks.data import Array, Observation, Value, plain
from course_utils.checks.observers.passes import every_pass
from course_utils.checks.observers.runs import notice
from course_utils.checks.observers.traces import changes, hooks_on
from course_utils.checks.scenes.batches import Batch
from course_utils.graph.alive import Memory


def gradients(model: nn.Module) -> dict[str, Any]:
    """Return what each parameter's .grad holds."""
    return {name: plain(parameter.grad) for name, parameter in model.named_parameters()}


def _ordinary(value: object) -> bool:
    return isinstance(value, torch.Tensor) and not torch._C._functorch.is_functorch_wrapped_tensor(value)


class Watch:
    """What happens to a model: each forward, each backward pass, each step, and saved numbers held in between.

    `first` is the layer that begins a forward, and the memory of what `inside` makes shows whether its graph is held.
    """

    def __init__(self, model: nn.Module, first: nn.Module, inside: nn.Module) -> None:
        self.model = model
        self.forwards: list[int] = []
        self.steps: list[dict[str, Any]] = []
        self.held = 0  # bytes of the hidden layer that were still held when the next forward or a step began
        self.ahead = 0  # batches that were read and not yet used
        self._read = 0
        self._hidden = Memory()
        self._given: list[tuple[torch.Tensor, Value]] = []
        # Functions, because copying a model copies bound methods with all that they are bound to.
        notice(first, lambda module, given, result: self._starts(given), name="forwards")
        notice(inside, lambda module, given, result: self._inside(result))
        self._before = self._flags()

    def step_of(self, optimizer: torch.optim.Optimizer) -> None:
        """Watch the steps of an optimizer, too."""
        optimizer.register_step_pre_hook(lambda *given: self._steps(optimizer))

    def batches(self, batches: list[Batch]) -> list[Batch]:
        """Watch whether batches stay as they are, and return them."""
        self._given = [(tensor, plain(tensor)) for batch in batches for tensor in batch]
        return batches

    def reader(self, batches: list[Batch]) -> Iterator[Batch]:
        """Return batches that can be read once and have no length, as from a file or a network, and are counted.

        What is handed out is a generator: nobody can write into it how many were read.
        """
        return self._counted(self.batches(batches))

    def _counted(self, batches: list[Batch]) -> Iterator[Batch]:
        for batch in batches:
            self._read += 1
            yield batch

    def seen(self, run: Callable[[], object]) -> Observation:
        """Run the answer, and return all that was seen, with what it returned."""
        with every_pass() as passes:
            returned = run()
        return {
            "returned": plain(returned),
            "forwards": self.forwards,
            "passes": len(passes),
            "steps": self.steps,
            "held": self.held,
            "ahead": self.ahead,
            "switched": changes(self._before, self._flags()),
            "inputs": all(plain(tensor) == was and not tensor.requires_grad for tensor, was in self._given),
            "gradients": gradients(self.model),
            "parameters": {name: Array.of(parameter) for name, parameter in self.model.named_parameters()},
        }

    def _inside(self, result: Any) -> None:
        if _ordinary(result):
            self._hidden.add(result)

    def _starts(self, given: Any) -> None:
        self.held = max(self.held, self._hidden.alive())
        if self._read:
            self.ahead = max(self.ahead, self._read - len(self.forwards))
        first = given[0] if given else None
        self.forwards.append(len(first) if isinstance(first, torch.Tensor) and first.dim() else -1)

    def _steps(self, optimizer: torch.optim.Optimizer) -> None:
        self.held = max(self.held, self._hidden.alive())
        rate = float(optimizer.param_groups[0]["lr"])
        self.steps.append({"gradients": gradients(self.model), "rate": rate, "after": len(self.forwards)})

    def _flags(self) -> dict[str, Any]:
        """Return what must stay, each fact under words that fit behind "you changed"."""
        facts: dict[str, Any] = {}
        for name, item in self.model.named_parameters():
            facts[f"requires_grad of {name}"] = item.requires_grad
            facts[f"{name} for another parameter"] = id(item)
        for name, module in self.model.named_modules():
            known = f"module {name}" if name else "the model"
            facts[f"the mode of {known}"] = module.training
            facts[f"the hooks on {known}"] = hooks_on(module)
        facts["the hooks on parameters"] = hooks_on(*self.model.parameters())
        facts["the grad mode"] = torch.is_grad_enabled()
        facts["the state of the random numbers"] = torch.get_rng_state().tolist()
        return facts
