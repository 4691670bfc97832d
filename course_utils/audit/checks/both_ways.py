"""Layers that read a sequence both ways, of which one end is taken."""

from __future__ import annotations

import ast
import weakref
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, ClassVar

import torch

from course_utils.audit.check import Check, Found
from course_utils.audit.events import Op, Pass
from course_utils.audit.lines import Spot
from course_utils.audit.source import function_around, statement, taken_apart

_LAYERS = frozenset({"lstm", "gru", "rnn_tanh", "rnn_relu"})
_PARTS = frozenset({"chunk", "split", "narrow", "tensor_split", "view", "reshape", "unflatten"})
_TIMES = 2
_MOST = 300


@dataclass
class _Output:
    """What a layer gave: its output, with the axis of time, or its states, where nothing reads the output."""

    thing: weakref.ref[torch.Tensor]
    axis: int
    taken: dict[int, Spot] = field(default_factory=dict)  # of states: which were taken, and where


class BothWays(Check):
    """What is taken of the output and of the states of a layer with both directions."""

    codes: ClassVar = ("one-end-of-both",)
    functions: ClassVar = _LAYERS | _PARTS | {"__getitem__", "select", "index_select"}

    def __init__(self, *args: object) -> None:
        super().__init__(*args)  # type: ignore[arg-type]
        self._outputs: dict[int, _Output] = {}
        self._states: dict[int, _Output] = {}
        self._ends: dict[int, tuple[weakref.ref[torch.Tensor], Spot]] = {}  # last steps, by the tensor's id
        self._steps: set[Spot] = set()  # lines that take other steps, too
        self._lasts: Counter[Spot] = Counter()
        self._halves: Counter[Spot] = Counter()

    def function(self, event: Op) -> None:
        if event.name in _LAYERS:
            self._ran(event)
            return
        one: Any = event.args[0] if event.args else None
        end = self._ends.get(id(one))
        if end is not None and end[0]() is one:  # of the last step a part is taken: perhaps the way there alone
            del self._ends[id(one)]
        output, state = _known(self._outputs, one), _known(self._states, one)
        place = _place(event, output.axis if output is not None else 0)
        if output is not None and event.spot is not None and place is not None:
            if place % one.shape[output.axis] == one.shape[output.axis] - 1:
                self._ends[id(event.out)] = weakref.ref(event.out), event.spot
            else:
                self._steps.add(event.spot)
        elif state is not None and event.name == "index_select":  # PyTorch's own, after packed sequences
            self._states[id(event.out)] = _Output(weakref.ref(event.out), 0, state.taken)
        elif state is not None:
            if place is None or event.spot is None:
                del self._states[id(one)]
            else:
                state.taken[place % one.shape[0]] = event.spot

    def _ran(self, event: Op) -> None:
        packed = len(event.args) > 1 and isinstance(event.args[1], torch.Tensor) and event.args[1].dim() == 1
        both = event.args[-1 if packed else -2] if len(event.args) > 2 else False
        if both is not True or event.spot is None:
            return
        if len(self._outputs) + len(self._states) > _MOST:
            self._outputs.clear()
            self._states.clear()
        out, state = event.out[0], event.out[1]
        axis = int(bool(event.args[-1]))
        if not packed and out.dim() == 3 and out.shape[axis] > 1:
            self._outputs[id(out)] = _Output(weakref.ref(out), axis)
        if _is_for_states(event.spot):
            self._states[id(state)] = _Output(weakref.ref(state), 0)

    def pass_begins(self, event: Pass) -> None:
        if event.accumulate:
            self._lasts.update({spot for _, spot in self._ends.values()})
            for state in self._states.values():
                if len({place % 2 for place in state.taken}) == 1:
                    self._halves.update(set(state.taken.values()))
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


def _known(kept: dict[int, _Output], thing: Any) -> _Output | None:
    found = kept.get(id(thing))
    return found if found is not None and found.thing() is thing else None


def _place(event: Op, axis: int) -> int | None:
    """Return which entry along an axis is taken, where it is one, and whole."""
    if event.name == "select":
        return int(event.argument(2, "index")) if event.argument(1, "dim") == axis else None
    if event.name != "__getitem__" or len(event.args) < 2:
        return None
    index = event.args[1]
    places = index if isinstance(index, tuple) else (index,)
    if any(not isinstance(it, slice | int) or isinstance(it, bool) for it in places) or len(places) <= axis:
        return None
    place, others = places[axis], places[:axis] + places[axis + 1 :]
    return place if isinstance(place, int) and all(it == slice(None) for it in others) else None


def _is_for_states(spot: Spot) -> bool:
    """Say whether a line keeps the states of a layer's call, and nothing reads its output."""
    line, function = statement(spot), function_around(spot)
    if not isinstance(line, ast.Assign) or function is None or not isinstance(line.targets[0], ast.Tuple):
        return False
    output = taken_apart(line.targets[0])[0]
    return isinstance(output, ast.Name) and not any(
        isinstance(it, ast.Name) and it.id == output.id and isinstance(it.ctx, ast.Load) for it in ast.walk(function)
    )
