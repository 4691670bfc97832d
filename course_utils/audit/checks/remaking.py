"""Optimizers that are made anew for each step, or epoch: what they remember of earlier gradients is thrown away."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import torch

from course_utils.audit.book import Trainer
from course_utils.audit.check import Check, Found
from course_utils.audit.events import Step
from course_utils.audit.lines import Spot, frames
from course_utils.audit.source import around, function_around

_TIMES = 4  # so many in a row must have lost their state after one step
_EPOCHS = 3  # so many after several steps, in what the learner calls epochs


@dataclass
class _Line:
    """A line that makes optimizers of the same parameters, one after another."""

    trainer: Trainer
    version: int | None = None  # of its first parameter, after the last step
    kept: frozenset[str] = frozenset()  # what the last one kept for a parameter
    lost: int = 0  # steps whose state was the last thing that their optimizer did
    whole: int = 0  # optimizers that made more than one step, or went on with what they were given
    epochs: int = 0  # of these, those that one with the same settings followed in the next epoch
    settings: str = ""  # of the last one, as it was made


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
        if line.trainer is trainer and line.settings:
            return
        settings, line.settings = line.settings, repr(optimizer.defaults)
        if line.trainer is trainer:
            return
        last, line.trainer = line.trainer, trainer
        first = slots[0].tensor
        # A model that was given other values meanwhile, as for the next task, begins anew.
        went_on = first is not None and first._version == line.version
        if last.steps > 1 or not went_on or _remembers(optimizer):
            line.whole += 1
            alike = settings == line.settings and line.kept and went_on and not _remembers(optimizer)
            line.epochs += bool(alike and _in_epochs(trainer.made))
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
            steps = line.lost >= _TIMES and line.lost >= 3 * line.whole
            if not steps and line.epochs < _EPOCHS:
                continue
            each, times = ("step", line.lost) if steps else ("epoch", line.epochs)
            name = line.trainer.name or "optimizer"
            kind = type(line.trainer.ref()).__name__ if line.trainer.ref() is not None else "the optimizer"
            kept = " and ".join(sorted(line.kept)[:2])
            yield self.say(
                "optimizer-anew",
                spot,
                f"{name} is made anew for each {each}: {times} times {kind} threw away what it had kept",
                f"{kind} keeps {kept} for each parameter, from step to step. One that is made here for each {each} "
                f"begins with nothing: {_LOSES[each]}",
                f"{name} = ...  # once, before the loop over the {_LOOPS[each]}, and handed to what makes the step",
                level=None if steps else "likely",
                certain=steps,
                times=times,
                about={slot.key for slot in line.trainer.slots} | {line.trainer.key},
                names=(name,),
            )


_LOSES = {
    "step": "momentum never adds up, and an average of squared gradients is of one batch.",
    "epoch": "momentum and averages of squared gradients start from zero with each, as do the first steps' sizes.",
}
_LOOPS = {"step": "batches", "epoch": "epochs"}


def _in_epochs(made: Spot) -> bool:
    """Say whether a line that makes an optimizer runs in each epoch, as loops and functions around it are called."""
    inside = False
    for frame in frames():
        place = Spot(frame.f_code.co_filename, frame.f_lineno)
        if place.file == made.file and function_around(place) is function_around(made):
            inside, place = True, made
        loops = [node for node in around(place) if isinstance(node, ast.For)]
        words = [ast.unparse(it.target) for it in loops] + [ast.unparse(it.iter) for it in loops]
        one = "epoch" in frame.f_code.co_name.lower() and "epochs" not in frame.f_code.co_name.lower()
        if inside and (one or any("epoch" in word.lower() for word in words)):
            return True
    return False


def _kept(optimizer: torch.optim.Optimizer) -> Iterator[str]:
    """Yield the names of the tensors that an optimizer keeps for its parameters, and that grow out of gradients.

    A count of steps is a single number; so is what is kept for a parameter of one, which comes first in many models.
    """
    for state in optimizer.state.values():
        kept = [name for name, value in state.items() if isinstance(value, torch.Tensor) and value.dim() > 0]
        if kept:
            yield from kept
            return


def _remembers(optimizer: torch.optim.Optimizer) -> bool:
    """Say whether an optimizer has something of earlier steps, as a loaded state, before its first step."""
    states = list(optimizer.state.values())[:1]
    return any(
        bool(value.detach().any()) if isinstance(value, torch.Tensor) else isinstance(value, int) and value > 0
        for state in states
        for name, value in state.items()
        if name != "sum"  # Adagrad begins with a sum
    )
