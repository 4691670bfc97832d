"""Layers that read a sequence both ways, of which one end is taken."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from typing import Any, ClassVar

import torch

from course_utils.audit.check import Check, Found
from course_utils.audit.events import Op, Pass
from course_utils.audit.followed import Followed
from course_utils.audit.lines import Spot
from course_utils.audit.sequences import LAYERS, taken_along
from course_utils.audit.source import function_around, statement, taken_apart

_PARTS = frozenset({"chunk", "split", "narrow", "tensor_split", "view", "reshape", "unflatten"})
_TIMES = 2
_MOST = 300


class BothWays(Check):
    """What is taken of the output and of the states of a layer with both directions."""

    codes: ClassVar = ("one-end-of-both",)
    functions: ClassVar = LAYERS | _PARTS | {"__getitem__", "select", "index_select"}

    def __init__(self, *args: object) -> None:
        super().__init__(*args)  # type: ignore[arg-type]
        self._outputs: Followed[int] = Followed(_MOST)  # with the axis of time
        # States where nothing reads the output: which of them were taken, and where.
        self._states: Followed[dict[int, Spot]] = Followed(_MOST)
        self._ends: Followed[Spot] = Followed(_MOST)  # last steps, with the line
        self._steps: set[Spot] = set()  # lines that take other steps, too
        self._lasts: Counter[Spot] = Counter()
        self._halves: Counter[Spot] = Counter()

    def function(self, event: Op) -> None:
        if event.name in LAYERS:
            self._ran(event)
            return
        one: Any = event.args[0] if event.args else None
        self._ends.forget(one)  # of the last step a part is taken: perhaps the way there alone
        axis, states = self._outputs.of(one), self._states.of(one)
        if axis is None and states is None:
            return
        taken = taken_along(event, axis or 0)
        place = taken.place if taken is not None and taken.whole else None
        if axis is not None and event.spot is not None and place is not None:
            if place % one.shape[axis] == one.shape[axis] - 1:
                self._ends.keep(event.out, event.spot)
            else:
                self._steps.add(event.spot)
        elif states is not None and event.name == "index_select":  # PyTorch's own, after packed sequences
            self._states.keep(event.out, states)
        elif states is not None:
            if place is None or event.spot is None:
                self._states.forget(one)
            else:
                states[place % one.shape[0]] = event.spot

    def _ran(self, event: Op) -> None:
        packed = len(event.args) > 1 and isinstance(event.args[1], torch.Tensor) and event.args[1].dim() == 1
        both = event.args[-1 if packed else -2] if len(event.args) > 2 else False
        if both is not True or event.spot is None:
            return
        out, state = event.out[0], event.out[1]
        axis = int(bool(event.args[-1]))
        if not packed and out.dim() == 3 and out.shape[axis] > 1:
            self._outputs.keep(out, axis)
        if _is_for_states(event.spot):
            self._states.keep(state, {})

    def pass_begins(self, event: Pass) -> None:
        if event.accumulate:
            self._lasts.update(set(self._ends.facts()))
            halves = [it for it in self._states.facts() if len({place % 2 for place in it}) == 1]
            self._halves.update({spot for it in halves for spot in it.values()})
        self._ends.clear()
        self._outputs.clear()
        self._states.clear()

    def found(self) -> Iterator[Found]:
        for spot, times in self._lasts.items():
            if times >= _TIMES and spot not in self._steps:
                yield self.say(
                    "one-end-of-both",
                    spot,
                    "the last step of a layer with both directions is taken: of the way back it has read one step",
                    "Half of the output comes from reading the sequence from its end to its start. At the last place "
                    "that reading has only begun; what it holds of the whole sequence stands at place 0.",
                    "torch.cat([out[:, -1, :size], out[:, 0, size:]], dim=-1)  # size: the layer's hidden_size; or of "
                    "the states: torch.cat([h[-2], h[-1]], dim=-1)",
                    certain=False,
                    times=times,
                )
        for spot, times in self._halves.items():
            if times >= _TIMES:
                yield self.say(
                    "one-end-of-both",
                    spot,
                    "the state of one direction is taken, and the layer has both",
                    "The states stand layer by layer, for each the way there and then the way back. What the other "
                    "direction computed has no part in the loss, and its weights learn nothing.",
                    "torch.cat([h[-2], h[-1]], dim=-1)  # of the last layer: the way there, the way back",
                    certain=False,
                    times=times,
                )


def _is_for_states(spot: Spot) -> bool:
    """Say whether a line keeps the states of a layer's call, and nothing reads its output."""
    line, function = statement(spot), function_around(spot)
    if not isinstance(line, ast.Assign) or function is None or not isinstance(line.targets[0], ast.Tuple):
        return False
    output = taken_apart(line.targets[0])[0]
    return isinstance(output, ast.Name) and not any(
        isinstance(it, ast.Name) and it.id == output.id and isinstance(it.ctx, ast.Load) for it in ast.walk(function)
    )
