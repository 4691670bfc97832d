"""Units that never answer."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import torch

from course_utils.audit.check import Check, Found
from course_utils.audit.events import Pass, number_of, saved_value
from course_utils.audit.lines import Spot
from course_utils.graph.trace import node_name

_PASSES = 8
_SILENT = 5


@dataclass
class _Layer:
    spot: Spot | None
    active: torch.Tensor
    passes: int = 0
    silent: int = 0  # passes in a row without a single active unit


class Units(Check):
    """Which units of each relu were above zero, for any sample of any pass."""

    codes: ClassVar = ("dead-units",)

    def __init__(self, *args: object) -> None:
        super().__init__(*args)  # type: ignore[arg-type]
        self._layers: dict[tuple[Spot | None, int, int], _Layer] = {}

    def pass_begins(self, event: Pass) -> None:
        if self.recorder.operations is None or not event.accumulate:
            return
        place = 0
        for node in sorted(event.graph.inner, key=number_of):
            if node_name(node) != "ReluBackward0":
                continue
            place += 1
            result = saved_value(node, "result")
            if result is None or result.dim() < 2:
                continue
            unit = 1 if result.dim() >= 4 else result.dim() - 1
            others = [at for at in range(result.dim()) if at != unit]
            active = result.amax(dim=others) > 0
            key = event.spot, place, active.numel()
            layer = self._layers.get(key)
            if layer is None:
                spot = self.recorder.lines.of(number_of(node)) or event.spot
                layer = self._layers[key] = _Layer(spot, torch.zeros_like(active))
            layer.passes += 1
            layer.active |= active
            layer.silent = 0 if bool(active.any()) else layer.silent + 1

    def found(self) -> Iterator[Found]:
        for (_, place, units), layer in self._layers.items():
            dead = units - int(layer.active.sum())
            gone = layer.silent >= _SILENT and layer.passes >= _PASSES
            if layer.passes < _PASSES or (not gone and dead * 2 < units) or units < 2:
                continue
            count = units if gone else dead
            level = "error" if gone else "likely" if dead * 10 >= units * 9 and units >= 8 else "note"
            passes = layer.silent if gone else layer.passes
            yield self.say(
                "dead-units",
                layer.spot,
                f"{count} of {units} units of relu number {place} were 0 for every sample in {passes} passes",
                "A relu below 0 passes no gradient on, so what feeds these units never changes, and they stay at 0.",
                "a smaller learning rate, a bias near 0 at the start, or nn.LeakyReLU",
                level=level,  # type: ignore[arg-type]
                certain=gone,
                times=passes,
            )
