"""A copy that is none: the average of a model, updated in a loop over the model itself."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any, ClassVar

import torch

from course_utils.audit.check import Check, Found
from course_utils.audit.events import Op
from course_utils.audit.expressions import loaded_from, zipped_parameters
from course_utils.audit.lines import Spot, frames, here, names_in
from course_utils.audit.source import assigned


class Averages(Check):
    """Updates of a parameter from itself, in a loop over the parameters of two names that stand for one model."""

    codes: ClassVar = ("copy-is-itself",)
    functions: ClassVar = frozenset({"add_", "lerp_", "copy_"})

    def __init__(self, *args: object) -> None:
        super().__init__(*args)  # type: ignore[arg-type]
        self._times: Counter[tuple[Spot, str, str]] = Counter()
        self._loads: Counter[tuple[Spot, str, str]] = Counter()

    def function(self, event: Op) -> None:
        given = event.args[:2]
        if len(given) < 2 or given[0] is not given[1] or not isinstance(given[0], torch.nn.Parameter):
            return
        spot, frame = here(), next(frames(), None)
        if spot is None or frame is None:
            return
        known = names_in(frame)
        for one, other in zipped_parameters(spot):
            model = _value(known, one)
            if one != other and model is not None and model is _value(known, other):
                self._times[spot, one, other] += 1

    def loads(self, module: torch.nn.Module, state: Any, spot: Spot | None) -> None:
        names, frame = loaded_from(spot) if spot is not None else None, next(frames(), None)
        if spot is None or names is None or frame is None or names[0] == names[1]:
            return
        known = names_in(frame)
        if all(_value(known, name) is module for name in names):
            self._loads[spot, *names] += 1

    def found(self) -> Iterator[Found]:
        for (spot, one, other), times in self._times.items():
            if times >= 2:
                yield self.say(
                    "copy-is-itself",
                    assigned(spot, one) or assigned(spot, other) or spot,
                    f"{one} and {other} are one model: {one} is no copy",
                    f"An assignment copies nothing. Line {spot.line} computes each parameter from itself: there is no "
                    "average, and the model that is trained is changed instead.",
                    f"{one} = copy.deepcopy({other})",
                    times=times,
                    names=(one, other),
                )
        for (spot, one, other), times in self._loads.items():
            yield self.say(
                "copy-is-itself",
                assigned(spot, one) or assigned(spot, other) or spot,
                f"{one} and {other} are one model: {one} is no copy",
                f"An assignment copies nothing. Line {spot.line} loads the model into itself, and between two such "
                f"loads {one} moves with each step of {other}.",
                f"{one} = copy.deepcopy({other})",
                times=times,
                names=(one, other),
            )


def _value(known: dict[str, Any], path: str) -> Any:
    first, *rest = path.split(".")
    value = known.get(first)
    for name in rest:
        value = getattr(value, name, None)
    return value if isinstance(value, torch.nn.Module) else None
