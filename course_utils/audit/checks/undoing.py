"""A training that is thrown away: the model that is trained is loaded, again and again, from one that is not."""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import torch

from course_utils.audit.check import Check, Found
from course_utils.audit.events import Call
from course_utils.audit.expressions import loaded_from
from course_utils.audit.lines import Spot, frames, module_at, names_in

_TIMES = 2  # loads that took back steps, after the first


@dataclass
class _Line:
    """What one line loads, from where, and what both were like when it last did."""

    names: tuple[str, str]
    source: weakref.ref[torch.nn.Module]
    written: int
    steps: dict[int, int]  # of the optimizers that hold what is loaded
    times: int = 0


class Undoing(Check):
    """Lines that load a trained model from a frozen one that answers for it: a target, a teacher, an average."""

    codes: ClassVar = ("training-undone",)

    def __init__(self, *args: object) -> None:
        super().__init__(*args)  # type: ignore[arg-type]
        self._lines: dict[tuple[Spot, int], _Line] = {}
        self._called: set[int] = set()  # models, by their key

    def called(self, event: Call) -> None:
        self._called.add(event.model.key)

    def loads(self, module: torch.nn.Module, state: Any, spot: Spot | None) -> None:
        names, frame = loaded_from(spot) if spot is not None else None, next(frames(), None)
        source = module_at(names_in(frame), names[1]) if names is not None and frame is not None else None
        if spot is None or names is None or source is None or source is module:
            return
        if not self.book.trained(module) or self.book.trained(source):
            return
        written, steps = _written(source), self._steps(module)
        line = self._lines.get((spot, id(module)))
        if line is None or line.source() is not source or line.written != written or line.steps.keys() != steps.keys():
            # The first load, or one for a training that begins anew with another optimizer.
            self._lines[spot, id(module)] = _Line(names, weakref.ref(source), written, steps)
            return
        line.times += steps != line.steps
        line.steps = steps

    def _steps(self, module: torch.nn.Module) -> dict[int, int]:
        """Return how many steps the optimizers have made that hold a module's parameters."""
        keys = {slot.key for p in module.parameters() if (slot := self.book.find(p)) is not None}
        held = (it for it in self.book.trainers.values() if any(slot.key in keys for slot in it.slots))
        return {it.key: it.steps for it in held}

    def found(self) -> Iterator[Found]:
        for (spot, _), line in self._lines.items():
            source = line.source()
            if line.times < _TIMES or source is None or self.book.model(source).key not in self._called:
                continue
            model, other = line.names
            yield self.say(
                "training-undone",
                spot,
                f"{model} is loaded from {other}, which never changes: the steps since the last load are lost",
                f"The optimizer moves {model}. This line puts {other}'s numbers in the place of what it "
                f"learned, {line.times} times after the first. The copy goes the other way: {other} is what follows.",
                f"{other}.load_state_dict({model}.state_dict())",
                times=line.times,
                names=line.names,
            )


def _written(module: torch.nn.Module) -> int:
    return sum(p._version for p in module.parameters())
