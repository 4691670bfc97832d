"""Backward passes in evaluation mode, whose gradients end in a step of the training."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from course_utils.audit.check import Check, Found
from course_utils.audit.counting import in_every_nth
from course_utils.audit.events import Call, Pass, Step
from course_utils.audit.lines import Spot

_KEPT = 500


@dataclass
class _Phases:
    """Steps of an optimizer by the mode of the models that it trains."""

    steps: int = 0  # in training mode
    aside: int = 0  # in evaluation mode
    returned: int = 0  # how often evaluation mode began after steps in training mode
    spot: Spot | None = None  # the pass of the last step in evaluation mode
    last: bool | None = None

    def step(self, training: bool, spot: Spot | None) -> None:
        self.returned += self.last is True and not training
        self.steps, self.aside = self.steps + training, self.aside + (not training)
        self.spot, self.last = self.spot if training else spot, training


class Validating(Check):
    """Whether steps that mostly use passes in training mode now and then use some of evaluation, too."""

    codes: ClassVar = ("pass-in-validation",)

    def __init__(self, *args: object) -> None:
        super().__init__(*args)  # type: ignore[arg-type]
        self._training = True  # the mode of the last recorded call
        self._passes: dict[int, tuple[Spot | None, bool]] = {}  # line, and the mode
        self._spilled: Counter[tuple[int, Spot | None]] = Counter()  # steps, by optimizer and line
        self._modes: dict[int, bool] = {}  # of the last recorded call of each model
        self._phases: dict[int, _Phases] = {}  # by optimizer
        self._pure: Counter[int] = Counter()  # steps of passes in training mode only

    def called(self, event: Call) -> None:
        if event.recorded is not None and next(event.module.parameters(), None) is not None:  # a loss has no mode
            self._training = self._modes[event.model.key] = event.training

    def pass_begins(self, event: Pass) -> None:
        if event.accumulate:
            self._passes[event.number] = event.spot, self._training
            if len(self._passes) > _KEPT:
                self._passes = dict(list(self._passes.items())[_KEPT // 2 :])

    def step_begins(self, event: Step) -> None:
        if event.in_pass or event.closure:
            return
        content = max((slot.content for slot in event.fresh), key=len, default=())
        used = [self._passes[number] for number in content if number in self._passes]
        aside = {spot for spot, training in used if not training}
        modes = {self._modes[slot.owner] for slot in event.fresh if slot.owner in self._modes}
        if modes and used:
            self._phases.setdefault(event.trainer.key, _Phases()).step(any(modes), used[-1][0])
        if used and not aside:
            self._pure[event.trainer.key] += 1
        elif any(training for _, training in used):
            for spot in aside:
                self._spilled[event.trainer.key, spot] += 1

    def found(self) -> Iterator[Found]:
        yield from self._trained()
        for (key, spot), times in self._spilled.items():
            trainer = self.book.trainer_of(key)
            if trainer is None or times < 2 or self._pure[key] <= times or spot is None or in_every_nth(spot):
                continue
            name = trainer.name or "optimizer"
            yield self.say(
                "pass-in-validation",
                spot,
                f"this pass runs in evaluation mode, and {times} training steps of {name} used its gradients",
                "A backward pass adds to .grad in every mode. Nothing cleared it before training went on, so the "
                "first step afterwards also moved along what was evaluated.",
                "with torch.no_grad():  # around the evaluation, and no backward() in it",
                level="likely",
                certain=False,
                times=times,
                about={slot.key for slot in trainer.slots} | {trainer.key},
                names=(name,),
            )

    def _trained(self) -> Iterator[Found]:
        for trainer in self.book.trainers.values():
            phases = self._phases.get(trainer.key)
            if phases is None or phases.returned < 2 or not 2 <= phases.aside <= phases.steps or phases.spot is None:
                continue
            name = trainer.name or "optimizer"
            yield self.say(
                "pass-in-validation",
                phases.spot,
                f"the validation batches train the model: {phases.aside} steps of {name} were made in evaluation mode",
                f"The model went from training to evaluation {phases.returned} times, and {name} makes its steps in "
                "both: what is measured on these batches is no measure of new data.",
                "if model.training:  # as in: if phase == 'train'; and the validation under torch.no_grad()\n"
                f"    loss.backward()\n    {name}.step()",
                level="likely",
                times=phases.aside,
                about={slot.key for slot in trainer.slots} | {trainer.key},
                names=(name,),
            )
