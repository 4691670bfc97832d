"""The largest of one: a class picked along an axis with a single entry is 0 for every row."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

import torch

from course_utils.audit.check import Check, Found
from course_utils.audit.events import Call, Op
from course_utils.audit.followed import Followed
from course_utils.audit.lines import Spot
from course_utils.audit.mentions import ran
from course_utils.audit.picks import picks

_PICKS = frozenset({"argmax", "max", "topk"})
_EQUALS = frozenset({"eq", "__eq__"})
_CASTS = frozenset({"cpu", "view", "view_as", "squeeze", "flatten", "float", "long", "to", "reshape", "detach"})
_KEPT, _MOST = 16, 200
_TIMES = 2


class Picking(Check):
    """Models with one output, and what is picked from it: heard of while functions are, and else read."""

    codes: ClassVar = ("argmax-of-one",)
    functions: ClassVar = _PICKS | _EQUALS | _CASTS

    def __init__(self, *args: object) -> None:
        super().__init__(*args)  # type: ignore[arg-type]
        self._several: set[int] = set()  # models, by key, whose outputs are not always one a row
        self._one: set[int] = set()
        self._calls: dict[Spot, set[int]] = {}
        self._seen: set[Spot] = set()
        self._picked: Followed[Spot] = Followed(_KEPT)
        self._wide: set[Spot] = set()  # lines that pick from more than one entry, now and then
        self._compared: dict[Spot, int] = {}

    def called(self, event: Call) -> None:
        if event.spots and (event.spots[0] in self._calls or len(self._calls) < _MOST):
            self._calls.setdefault(event.spots[0], set()).add(event.model.key)
            self._seen.update(event.spots)
        if event.out is not None:
            one = event.out.dim() == 2 and event.out.shape[1] == 1
            (self._one if one else self._several).add(event.model.key)

    def function(self, event: Op) -> None:
        if event.name in _PICKS:
            self._pick(event)
        elif self._picked and event.args:
            spot = self._picked.of(event.args[0])
            if event.name in _CASTS:
                if spot is not None and isinstance(event.out, torch.Tensor):
                    self._picked.keep(event.out, spot)
            elif len(event.args) == 2:
                self._compare(event, spot)

    def _pick(self, event: Op) -> None:
        given = event.args[0] if event.args else None
        axis = event.argument(2 if event.name == "topk" else 1, "dim", -1 if event.name == "topk" else None)
        axis = event.kwargs.get("axis", axis)
        if not isinstance(given, torch.Tensor) or not given.is_floating_point() or given.dim() < 2:
            return
        if not isinstance(axis, int) or event.spot is None or given.numel() < 2:
            return
        if given.shape[axis] != 1:
            self._wide.add(event.spot)
            return
        indices = event.out if event.name == "argmax" else event.out[1]
        if isinstance(indices, torch.Tensor):
            self._picked.keep(indices, event.spot)

    def _compare(self, event: Op, spot: Spot | None) -> None:
        other = event.args[1] if spot is not None else event.args[0]
        spot = spot or self._picked.of(event.args[1])
        if spot is not None and isinstance(other, torch.Tensor) and self._compared.get(spot, 0) < _MOST:
            self._compared[spot] = self._compared.get(spot, 0) + int(bool((other != 0).any()))

    def found(self) -> Iterator[Found]:
        for spot, times in self._compared.items():
            if times >= _TIMES and spot not in self._wide:
                yield self._of_one(spot, times)
        one = self._one - self._several
        lines = {spot for spot, keys in self._calls.items() if keys and keys <= one}
        for file, scope in ran(sorted(self._seen)) if lines else ():
            for pick in picks(file, scope):
                made = range(pick.made.lineno, (pick.made.end_lineno or pick.made.lineno) + 1)
                spot = Spot(file, pick.line)
                if spot not in self._wide and any(Spot(file, line) in lines for line in made):
                    yield self._of_one(spot)

    def _of_one(self, spot: Spot, times: int = 1) -> Found:
        return self.say(
            "argmax-of-one",
            spot,
            "the largest is picked along an axis with one entry: its place is 0 for every row",
            "One output for two classes is a score: above a bound it stands for class 1, and else for class 0. The "
            "largest of a single number is always the first, so each row counts as class 0.",
            "predicted = (logits > 0).long()  # with probabilities: > 0.5",
            certain=False,
            times=times,
        )
