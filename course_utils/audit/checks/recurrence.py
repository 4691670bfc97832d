"""Sequences: a state that is cut at every step, an output that is read along the wrong axis, a layer run along it."""

from __future__ import annotations

import weakref
from collections import Counter
from collections.abc import Iterator
from typing import Any, ClassVar

import torch

from course_utils.audit.check import Check, Found
from course_utils.audit.classes import made_near
from course_utils.audit.events import Call, Op, Pass, number_of
from course_utils.audit.lines import Spot, here
from course_utils.audit.sequences import LAYERS, taken_along
from course_utils.audit.source import calls, nearest

_CELLS = frozenset({"gru_cell", "lstm_cell", "rnn_tanh_cell", "rnn_relu_cell"})
_ATTENDS = "multi_head_attention_forward"
_MADE = {
    True: r"\b(Transformer(En|De)coderLayer|Transformer|MultiheadAttention)$",
    False: r"\b(LSTM|GRU|RNN)$",
}
_STEPS = 3
_TIMES = 3
_MOST = 300


class Recurrence(Check):
    """What recurrent cells and layers of PyTorch's give, and what becomes of it."""

    codes: ClassVar = ("state-cut", "axes-swapped")
    functions: ClassVar = _CELLS | LAYERS | {"detach", "__getitem__", "select", _ATTENDS}

    def __init__(self, *args: object) -> None:
        super().__init__(*args)  # type: ignore[arg-type]
        self._cells: dict[int, Spot] = {}  # by the number of a cell's node: since the last pass
        self._cut: dict[Spot, list[int]] = {}  # nodes of cells whose results were detached, by line
        self._lost: Counter[Spot] = Counter()  # passes for which all but the last step were cut
        self._outputs: dict[int, weakref.ref[torch.Tensor]] = {}  # of layers whose first axis is time
        self._swapped: Counter[Spot] = Counter()
        self._runs: list[tuple[int, int, Spot, bool]] = []  # since the last call: the axis run along, the other one
        # Layers by their line and kind: calls in which the places that they ran along were samples, and others.
        self._across: Counter[tuple[Spot, bool]] = Counter()
        self._along: set[tuple[Spot, bool]] = set()

    def function(self, event: Op) -> None:
        name, out = event.name, event.out
        if name in _CELLS:
            spot = event.spot
            if spot is not None and event.ended > event.began and len(self._cells) < _MOST:
                self._cells.update(dict.fromkeys(range(event.began, event.ended), spot))
        elif name == "detach":
            self._detached(event.args[0])
        elif name == _ATTENDS:
            query, key = event.argument(0, "query"), event.argument(1, "key")
            if query is key and query.dim() == 3:
                self._note(query.shape[0], query.shape[1], event.spot, True)
        elif name in LAYERS:
            self._ran(event)
            given = event.args[0] if event.args else None
            if event.args and event.args[-1] is False and isinstance(given, torch.Tensor) and given.dim() == 3:
                if len(self._outputs) > _MOST:
                    self._outputs.clear()
                self._outputs[id(out[0])] = weakref.ref(out[0])
        elif self._outputs and event.args and self._is_output(event.args[0]) and _takes_last(event):
            spot = event.spot
            if spot is not None:
                self._swapped[spot] += 1

    def _ran(self, event: Op) -> None:
        given, first = event.args[0], event.args[-1]
        if isinstance(first, bool) and isinstance(given, torch.Tensor) and given.dim() == 3:
            self._note(given.shape[int(first)], given.shape[1 - int(first)], event.spot, False)

    def _note(self, along: int, other: int, spot: Spot | None, attends: bool) -> None:
        if spot is not None and len(self._runs) < _MOST:
            self._runs.append((along, other, spot, attends))

    def called(self, event: Call) -> None:
        """Compare the rows that a model gave with the axes that its layers ran along.

        Where it gives one row for each place along the axis, and not one for each along the other, the places were
        samples. A layer that runs over parts of the samples has a batch of a multiple of them: of that nothing is said.
        """
        runs, self._runs = self._runs, []
        out, given = event.out, event.given
        if out is None or given is None or out.dim() not in (1, 2) or given.dim() < 2:
            return
        rows = out.shape[0]
        for along, other, spot, attends in runs:
            if along != other and (other == 1 or other % rows or along != rows):
                if along == rows and other > 1 and {along, other} == set(given.shape[:2]):
                    self._across[spot, attends] += 1
                else:
                    self._along.add((spot, attends))

    def _is_output(self, thing: Any) -> bool:
        known = self._outputs.get(id(thing))
        return known is not None and known() is thing

    def _detached(self, tensor: Any) -> None:
        node = tensor.grad_fn if isinstance(tensor, torch.Tensor) else None
        number = number_of(node) if node is not None else -1
        spot = here() if number in self._cells else None
        if spot is not None:
            self._cut.setdefault(spot, []).append(number)

    def pass_begins(self, event: Pass) -> None:
        cut, self._cut = self._cut, {}
        if cut and event.accumulate:
            for spot, made in cut.items():
                self._lost[spot] += len(made) >= _STEPS and not event.graph.numbers & set(made)
        self._cells.clear()

    def found(self) -> Iterator[Found]:
        for spot, times in self._lost.items():
            if times >= _TIMES:
                yield self.say(
                    "state-cut",
                    spot,
                    "the state is detached at each step of the sequence: only the last step is in the graph",
                    "What the steps before computed has no part in the loss. Nothing flows back through time, so the "
                    "cell learns nothing from what came earlier.",
                    "state = cell(x, state)  # detach between two sequences, and not within one",
                    certain=False,
                    times=times,
                )
        for (spot, attends), times in self._across.items():
            layer = made_near(spot, _MADE[attends])
            if times >= _TIMES and (spot, attends) not in self._along:
                yield self.say(
                    "axes-swapped",
                    layer,
                    f"{'attention' if attends else 'the layer'} runs across the samples: the axis that it takes for "
                    "time has one place for each row that the model gives",
                    "By default these layers take the first axis for time and the second for the batch, and "
                    "batch_first=True turns that round. Run along the batch, each result depends on the other samples "
                    "of its batch, and the steps of one sample never meet.",
                    "batch_first=True  # where the layer is made, for input of shape (batch, time, ...)",
                    certain=False,
                    times=times,
                )
        for spot, times in self._swapped.items():
            if times >= _TIMES:
                made = calls(spot.file, r"\b(LSTM|GRU|RNN)$")
                yield self.say(
                    "axes-swapped",
                    nearest(made, spot) or spot,
                    f"line {spot.line} takes the last of the batch, and not of the time: the layer's first axis is "
                    "time",
                    "Without batch_first=True the layer runs along the first axis. Given the batch there, it carries "
                    "its state from sample to sample, and each time step is by itself.",
                    "batch_first=True  # where the layer is made; or output[-1] for input of shape (time, batch, ...)",
                    certain=False,
                    times=times,
                )


def _takes_last(event: Op) -> bool:
    taken = taken_along(event, 1)
    return taken is not None and taken.place == -1
