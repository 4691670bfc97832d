"""A recurrent state that goes from one batch to the next, though the batches are shuffled."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import torch

from course_utils.audit.book import sampled
from course_utils.audit.check import Check, Found
from course_utils.audit.events import Op
from course_utils.audit.lines import Spot, names_in
from course_utils.audit.loops import referred, running
from course_utils.audit.sequences import LAYERS
from course_utils.audit.shuffles import is_shuffled
from course_utils.audit.source import statement
from course_utils.explain.source import names_of
from course_utils.graph.alive import tensors_in

_CELLS = frozenset({"lstm_cell", "gru_cell", "rnn_tanh_cell", "rnn_relu_cell"})
_TIMES = 3
_FRAMES = 5
_MOST = 16  # layers are looked at


@dataclass
class _Last:
    """The state that a layer gave last, and how many passes had been made."""

    passes: int
    state: torch.Tensor


class Carrying(Check):
    """Whether a layer is given the state that it gave before the last pass, and where the rows come from."""

    codes: ClassVar = ("state-of-others",)
    functions: ClassVar = LAYERS | _CELLS

    def __init__(self, *args: object) -> None:
        super().__init__(*args)  # type: ignore[arg-type]
        self._last: dict[int, _Last] = {}  # by the layer's first weight
        # What the targets of a loop stood for, by its line.
        self._rounds: dict[tuple[str, int], list[Callable[[], Any]]] = {}
        self._carried: Counter[Spot] = Counter()
        self._begun: Counter[Spot] = Counter()  # rounds that began with any other state

    def function(self, event: Op) -> None:
        if not torch.is_grad_enabled() or len(self._last) > _MOST:
            return
        given, weight = _given(event.args)
        made = next(tensors_in(event.out[1:] if event.name in LAYERS else (event.out,)), None)
        if given is None or weight is None or made is None or not made.requires_grad:
            return
        last = self._last.get(id(weight))
        if last is None or last.passes < self.clock.passes:
            # Nobody carries zeros: that is a state which was reset in place.
            same = last is not None and last.state.numel() == given.numel() and bool(given.any())
            self._round(same and last is not None and torch.equal(last.state, sampled(given)))
        self._last[id(weight)] = _Last(self.clock.passes, sampled(made))

    def _round(self, carried: bool) -> None:
        """Note which shuffled loop has gone on since the last round, and whether the state came along."""
        place: Spot | None = None
        inner: Spot | None = None
        for frame, spot, loops in running(_FRAMES):
            known = names_in(frame) if loops else {}
            inner = inner or spot
            for loop in reversed(loops):
                targets = names_of(loop.target) if isinstance(loop, ast.For) else set()
                now = [known.get(name) for name in sorted(targets)]
                before, key = self._rounds.get((spot.file, loop.lineno)), (spot.file, loop.lineno)
                self._rounds[key] = list(map(referred, now))
                gone = before is not None and (not targets or any(map(_differ, before, now)))
                if place is None and gone and is_shuffled(loop, spot, known):
                    place = spot if _hands_back(spot) else inner
        if place is not None:
            (self._carried if carried else self._begun)[place] += 1

    def found(self) -> Iterator[Found]:
        for spot, times in self._carried.items():
            if times >= _TIMES and times > self._begun[spot]:
                yield self.say(
                    "state-of-others",
                    spot,
                    "the recurrent state of one batch is where the next one begins, and the batches are shuffled",
                    "The next batch holds other sequences, drawn by chance: what the state tells of has nothing to do "
                    "with them. The model learns to read noise, or to ignore its state; detach() only cuts the graph.",
                    "state = None  # for each batch; a state is carried where batch i + 1 goes on where batch i ended",
                    certain=False,
                    times=times,
                )


def _given(args: tuple[Any, ...]) -> tuple[torch.Tensor | None, torch.Tensor | None]:
    """Return the first state that a layer or cell is given, and its first weight."""
    rest = list(args[1:4])
    if rest and isinstance(rest[0], torch.Tensor) and not rest[0].is_floating_point():
        rest = rest[1:]  # the sizes of a packed sequence's batches
    state = next(tensors_in((rest[0],)), None) if rest else None
    return state, (next(tensors_in((rest[1],)), None) if len(rest) > 1 else None)


def _differ(before: Callable[[], Any], other: Any) -> bool:
    one = before()
    if isinstance(one, int | str) and isinstance(other, int | str):
        return one != other
    return one is not other


def _hands_back(spot: Spot) -> bool:
    """Say whether the statement at a line gives a name to a call that binds it anew: `out, h = model(x, h)`."""
    found = statement(spot)
    if not isinstance(found, ast.Assign):
        return False
    bound = {ast.unparse(it) for to in found.targets for it in ast.walk(to) if isinstance(it, ast.Name | ast.Attribute)}
    read = {ast.unparse(it) for it in ast.walk(found.value) if isinstance(it, ast.Name | ast.Attribute)}
    return bool(bound & read)
