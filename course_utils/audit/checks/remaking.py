"""Optimizers that are made anew for each step: what they remember of earlier gradients is thrown away."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import torch

from course_utils.audit.book import Trainer
from course_utils.audit.check import Check, Found
from course_utils.audit.events import Step
from course_utils.audit.lines import Spot

_TIMES = 4  # so many in a row must have lost their state after one step


@dataclass
class _Line:
    """A line that makes optimizers of the same parameters, one after another."""

    trainer: Trainer
    version: int | None = None  # of its first parameter, after the last step
    kept: frozenset[str] = frozenset()  # what the last one kept for a parameter
    lost: int = 0  # steps whose state was the last thing that their optimizer did
    whole: int = 0  # optimizers that made more than one step, or went on with what they were given


class Remaking(Check):
    """How many steps each optimizer of one line makes before the next one takes its parameters."""

    codes: ClassVar = ("optimizer-anew",)

    def __init__(self, *args: object) -> None:
        super().__init__(*args)  # type: ignore[arg-type]
        self._lines: dict[tuple[Spot, int], _Line] = {}

    def step_begins(self, event: Step) -> None:
        trainer = event.trainer
        optimizer, slots = trainer.ref(), trainer.slots
        if optimizer is None or trainer.made is None or not slots or isinstance(optimizer, torch.optim.LBFGS):
            return  # what LBFGS remembers is of one batch
        line = self._lines.setdefault((trainer.made, slots[0].key), _Line(trainer))
        if line.trainer is trainer:
            return
        last, line.trainer = line.trainer, trainer
        first = slots[0].tensor
        # A model that was given other values meanwhile, as for the next task, begins anew.
        went_on = first is not None and first._version == line.version
        if last.steps > 1 or not went_on or _remembers(optimizer):
            line.whole += 1
        elif line.kept:
            line.lost += 1

    def step_ended(self, event: Step) -> None:
        trainer = event.trainer
        optimizer, slots = trainer.ref(), trainer.slots
        line = self._lines.get((trainer.made, slots[0].key)) if trainer.made is not None and slots else None
        first = slots[0].tensor if slots else None
        if line is not None and first is not None and optimizer is not None:
            line.version = first._version
            if trainer.steps == 1:
                line.kept = frozenset(_kept(optimizer))

    def found(self) -> Iterator[Found]:
        for (spot, _), line in self._lines.items():
            if line.lost < _TIMES or line.lost < 3 * line.whole:
                continue
            name = line.trainer.name or "optimizer"
            kind = type(line.trainer.ref()).__name__ if line.trainer.ref() is not None else "the optimizer"
            kept = " and ".join(sorted(line.kept)[:2])
            yield self.say(
                "optimizer-anew",
                spot,
                f"{name} is made anew for each step: {line.lost} times {kind} threw away what it had kept",
                f"{kind} keeps {kept} for each parameter, from step to step. One that is made here for each step "
                "begins with nothing: momentum never adds up, and an average of squared gradients is of one batch.",
                f"{name} = ...  # once, before the loop over the batches, and handed to what makes the step",
                times=line.lost,
                about={slot.key for slot in line.trainer.slots} | {line.trainer.key},
                names=(name,),
            )


def _kept(optimizer: torch.optim.Optimizer) -> Iterator[str]:
    """Yield the names of the tensors that an optimizer keeps for a parameter, and that grow out of gradients."""
    state: dict[str, Any] = next(iter(optimizer.state.values()), {})
    for name, value in state.items():
        if isinstance(value, torch.Tensor) and value.dim() > 0:
            yield name


def _remembers(optimizer: torch.optim.Optimizer) -> bool:
    """Say whether an optimizer has something of earlier steps, as a loaded state, before its first step."""
    states = list(optimizer.state.values())[:1]
    return any(
        bool(value.detach().any()) if isinstance(value, torch.Tensor) else isinstance(value, int) and value > 0
        for state in states
        for name, value in state.items()
        if name != "sum"  # Adagrad begins with a sum
    )
