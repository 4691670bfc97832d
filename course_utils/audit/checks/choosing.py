"""What is kept as the best, and is not: a comparison the wrong way round, never true, or one that decides nothing."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, ClassVar

from course_utils.audit.check import Check, Found
from course_utils.audit.choices import Choice, choices, first_value
from course_utils.audit.events import Call, Pass, Step
from course_utils.audit.lines import Spot
from course_utils.audit.mentions import ran
from course_utils.audit.overwritten_best import Kept, Written

_MOST = 50
_HUGE = 1e4


class Choosing(Check):
    """The lines that choose a best value or model, in what ran beside a training."""

    codes: ClassVar = ("worst-kept",)

    def __init__(self, *args: object) -> None:
        super().__init__(*args)  # type: ignore[arg-type]
        self._seen: set[Spot] = set()
        self._states: set[Spot] = set()
        self._kept = Kept()

    def pass_begins(self, event: Pass) -> None:
        if event.spot is not None:
            self._kept.look(event.spot.file)
        if event.spot is not None and len(self._seen) < _MOST:
            self._seen.add(event.spot)

    def step_begins(self, event: Step) -> None:
        if event.spot is not None and len(self._seen) < _MOST:
            self._seen.add(event.spot)

    def called(self, event: Call) -> None:
        if len(self._seen) < _MOST:
            self._seen.update(event.spots)

    def state_made(self, module: Any, state: Any, spot: Spot | None) -> None:
        if spot is not None and len(self._states) < _MOST:
            self._states.add(spot)

    def found(self) -> Iterator[Found]:
        told: set[tuple[str, str]] = set()
        for file, written, times in self._kept.worsened():
            told.add((file, written.best))
            yield self._overwritten(file, written, times)
        for file, scope in ran(sorted(self._seen)) if self.clock.steps else ():
            for choice in choices(file, scope):
                if (file, choice.best) in told:
                    continue
                first = first_value(file, scope, choice.best) if choice.saves else None
                if choice.is_worst:
                    told.add((file, choice.best))
                    yield self._worst(choice)
                elif first is not None and self._is_never(choice, first):
                    told.add((file, choice.best))
                    yield self._never(choice, first)

    def _is_never(self, choice: Choice, first: float) -> bool:
        """Say whether nothing can be better than what a best value begins with, and nothing was kept."""
        impossible = first <= 0 if choice.better == "falls" else first >= _HUGE
        low, high = choice.kept
        kept = any(it.file == choice.spot.file and low <= it.line <= high for it in self._states)
        return impossible and not kept and not self.clock.interrupted

    def _overwritten(self, file: str, written: Written, times: int) -> Found:
        return self.say(
            "worst-kept",
            Spot(file, written.line),
            f"{written.best} takes each new {written.metric}, better or not: it became worse {times} times",
            f"This line runs after each comparison, whatever that said. The next {written.metric} is compared with the "
            "last one, and not with the best so far.",
            f"if {written.metric} {'>' if written.rises else '<'} {written.best}:\n    {written.best} = "
            f"{written.metric}  # nowhere else",
            times=times,
            names=(written.best,),
        )

    def _worst(self, choice: Choice) -> Found:
        falls = choice.better == "falls"
        extreme, other = ("largest", "smallest") if falls else ("smallest", "largest")
        fix = f"take the {other} {choice.metric}: {'min' if falls else 'max'}(...) in place of the other one"
        if choice.kept[0]:
            begins = 'float("inf")' if falls else 'float("-inf")'
            fix = f"{choice.metric} {'<' if falls else '>'} {choice.best}  # and begin with {begins}"
        return self.say(
            "worst-kept",
            choice.spot,
            f"{choice.best} keeps the {extreme} {choice.metric}: the worst one, and not the best",
            f"{choice.metric} becomes better as it {choice.better}. Chosen this way round, a worse value takes the "
            "place of a better one, with all that is kept beside it.",
            fix,
            level=None if choice.is_model else "note",
            certain=False,
            names=(choice.best,),
        )

    def _never(self, choice: Choice, first: float) -> Found:
        falls = choice.better == "falls"
        begins = first if not math.isinf(first) else f'float("{first}")'
        return self.say(
            "worst-kept",
            choice.spot,
            f"{choice.best} begins with {begins}, and no {choice.metric} is better: nothing was ever kept",
            f"A first value has to be worse than any that can come. {choice.metric} becomes better as it "
            f"{choice.better}, and the lines that keep a state never ran.",
            f"{choice.best} = " + ('float("inf")' if falls else 'float("-inf")'),
            certain=False,
            names=(choice.best,),
        )
