"""Hooks that are registered again and again."""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

from course_utils.audit.check import Check, Found
from course_utils.audit.lines import Spot

_MOST = 1000


@dataclass
class _Pile:
    hooks: weakref.ref[Any]
    moments: int = 0  # steps or passes in which one was added
    last: tuple[int, int] = (-1, -1)
    height: int = 0


class Hooks(Check):
    """How many hooks stand on one tensor or module, and in how many steps they came."""

    codes: ClassVar = ("hooks-pile-up",)

    def __init__(self, *args: object) -> None:
        super().__init__(*args)  # type: ignore[arg-type]
        self._piles: dict[tuple[int, Spot | None], _Pile] = {}

    def hooked(self, hooks: Any, spot: Spot | None) -> None:
        key = id(hooks), spot
        pile = self._piles.get(key)
        if pile is None or pile.hooks() is not hooks:
            if len(self._piles) > _MOST:
                self._piles = {at: it for at, it in self._piles.items() if it.hooks() is not None}
            try:
                pile = self._piles[key] = _Pile(weakref.ref(hooks))
            except TypeError:
                return
        moment = self.clock.steps, self.clock.passes
        if moment != pile.last:
            pile.last = moment
            pile.moments += 1
        pile.height = len(hooks) + 1  # the new one is put in after this

    def found(self) -> Iterator[Found]:
        told = set()
        for (_, spot), pile in self._piles.items():
            if spot in told or pile.moments < 3 or pile.height < pile.moments or pile.height < 3:
                continue
            told.add(spot)
            yield self.say(
                "hooks-pile-up",
                spot,
                f"{pile.height} hooks stand on one tensor or module: a new one came in each of {pile.moments} steps",
                "A hook stays until it is removed. All of them run in each step: the same work many times over, and "
                "whatever they refer to stays in memory.",
                "handle = module.register_forward_hook(hook)  # once, before the loop; else handle.remove() after use",
                times=pile.moments,
            )
