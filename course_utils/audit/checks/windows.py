"""Several passes for one step: losses that are not divided, and passes that are left over."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, ClassVar

from course_utils.audit.book import Trainer
from course_utils.audit.check import Check, Found
from course_utils.audit.counting import all_but_every_nth, counting_if, in_every_nth
from course_utils.audit.events import Pass, Step, before, constant_of, node_behind, through_views
from course_utils.audit.lines import Spot
from course_utils.audit.source import loop_around, text_at
from course_utils.graph.trace import LiveNode, node_name

_WORDS = re.compile(r"accum|micro", re.IGNORECASE)
_DEPTH = 4


@dataclass
class _Window:
    trainer: Trainer
    sizes: Counter[int] = field(default_factory=Counter)
    divided: int = 0
    means: int = 0  # windows of losses that are means, and not divided
    rest: int = 0  # passes that no step used, or that went into the next window
    shares: Counter[int] = field(default_factory=Counter)  # steps, by the whole number that the loss was divided by
    step_spot: Spot | None = None


class Windows(Check):
    """How many passes of one line each step of an optimizer uses."""

    codes: ClassVar = ("not-divided", "leftover-window")

    def __init__(self, *args: object) -> None:
        super().__init__(*args)  # type: ignore[arg-type]
        self._windows: dict[tuple[int, Spot], _Window] = {}
        self._passes: dict[int, tuple[Spot | None, bool]] = {}  # line, and whether the loss is an undivided mean
        self._share = 0  # the whole number that the last pass's loss was divided by

    def pass_begins(self, event: Pass) -> None:
        if event.accumulate:
            self._passes[event.number] = event.spot, not event.seeded and _is_plain_mean(event)
            self._share = _divisor(event)
            if len(self._passes) > 2000:
                self._passes = dict(list(self._passes.items())[1000:])

    def step_begins(self, event: Step) -> None:
        if event.in_pass or event.closure:
            return
        self._erased(event)
        content = max((slot.content for slot in event.fresh), key=len, default=())
        by_line = Counter(self._passes[number][0] for number in content if number in self._passes)
        if not by_line:
            return
        spot, size = by_line.most_common(1)[0]
        if spot is None:
            return
        window = self._windows.setdefault((event.trainer.key, spot), _Window(event.trainer))
        window.step_spot = event.spot
        usual = _usual(window)
        if usual > 1 and usual < size < 2 * usual:
            window.rest += size - usual
        window.sizes[size] += 1
        window.shares[self._share] += 1
        touched = any(slot.touched for slot in event.fresh)
        if size > 1 and not touched:
            means = [self._passes[number][1] for number in content if self._passes.get(number, (None,))[0] == spot]
            window.means += all(means)

    def _erased(self, event: Step) -> None:
        """Count passes whose gradients were cleared before a step: fewer than a window has."""
        lost = max((slot.erased for slot in event.trainer.slots if slot.erased), key=len, default=())
        lines = Counter(self._passes[number][0] for number in lost if number in self._passes)
        for (key, spot), window in self._windows.items():
            if key == event.trainer.key and 0 < lines[spot] < _usual(window):
                window.rest += lines[spot]

    def found(self) -> Iterator[Found]:
        for (_, spot), window in self._windows.items():
            yield from self._turned_round(window)
            usual = _usual(window)
            if usual < 2 or window.sizes[usual] < 2:
                continue
            name = window.trainer.name or "optimizer"
            about = {slot.key for slot in window.trainer.slots}
            if window.means * 2 > sum(window.sizes.values()):
                sure = _is_accumulation(spot, window.step_spot)
                yield self.say(
                    "not-divided",
                    spot,
                    f"each step of {name} uses the sum of {usual} mean losses, undivided",
                    f"A mean over each of {usual} parts, added up, is {usual} times the mean over all of them: the "
                    "step is as much longer.",
                    f"(loss / {usual}).backward()",
                    level="likely" if sure else "note",
                    certain=False,
                    times=window.sizes[usual],
                    about=about,
                )
            rest = window.rest + self._at_the_end(window, spot)
            if rest:
                place = (counting_if(window.step_spot) if window.step_spot else None) or window.step_spot or spot
                yield self.say(
                    "leftover-window",
                    place,
                    f"{rest} passes did not make a full window of {usual}: no step used them by themselves",
                    "The number of batches is no multiple of the window. What the last passes of an epoch collected is "
                    "thrown away, or spills into the first window of the next.",
                    f"if (i + 1) % {usual} == 0 or i + 1 == len(loader):",
                    times=rest,
                    about=about,
                )

    def _turned_round(self, window: _Window) -> Iterator[Found]:
        """Yield the `if` that keeps a step from each nth pass, where the losses are divided for n passes a step."""
        parts = window.shares.most_common(1)[0][0]
        place = all_but_every_nth(window.step_spot, parts) if window.step_spot and parts > 2 else None
        if place is not None and _usual(window) == 1 and window.sizes[2] > 1:
            yield self.say(
                "leftover-window",
                place,
                f"the `if` holds in {parts - 1} of {parts} rounds: most steps use one pass, and each loss is divided "
                f"by {parts}",
                f"What is left of a division is 0 in each {_nth(parts)} round only, and 0 counts as false. The step "
                "comes in all the others.",
                f"if (i + 1) % {parts} == 0:",
                times=sum(window.sizes.values()),
                about={slot.key for slot in window.trainer.slots},
            )

    def _at_the_end(self, window: _Window, spot: Spot) -> int:
        contents = [slot.content for slot in window.trainer.slots if not slot.used]
        content = max(contents, key=len, default=())
        count = sum(number in self._passes and self._passes[number][0] == spot for number in content)
        return count if 0 < count < _usual(window) else 0


def _nth(number: int) -> str:
    return {3: "third", 5: "fifth"}.get(number, f"{number}th")


def _divisor(event: Pass) -> int:
    """Return the whole number that a pass's loss was divided by, or 0."""
    node = node_behind(event.outputs[0]) if event.outputs else None
    divided = node is not None and node_name(node).startswith(("Div", "Mul"))
    constant = constant_of(node) if node is not None and divided else None
    if node is None or constant is None or constant.numel() != 1 or not float(constant):
        return 0
    value = float(constant) if node_name(node).startswith("Div") else 1 / float(constant)
    return round(value) if abs(value - round(value)) < 1e-6 else 0


def _usual(window: _Window) -> int:
    return window.sizes.most_common(1)[0][0] if window.sizes else 0


def _is_accumulation(spot: Spot, step: Spot | None) -> bool:
    """Say whether the source shows that parts of one batch are meant: a counting `if`, or a telling name."""
    if step is not None and in_every_nth(step) and not in_every_nth(spot):
        return True
    loop = loop_around(spot)
    return loop is not None and bool(_WORDS.search(text_at(Spot(spot.file, loop.lineno))))


def _is_plain_mean(event: Pass) -> bool:
    """Say whether a loss is a mean as a loss function or `mean()` gives it, multiplied with nothing."""
    node = through_views(node_behind(event.outputs[0]) if event.outputs else None)
    if event.scaled:
        node = through_views(before(node)) if node is not None else None
    for _ in range(_DEPTH):
        if node is None:
            return False
        name = node_name(node)
        if name == "MeanBackward0":
            return True
        if hasattr(node, "_saved_reduction"):
            return bool(node._saved_reduction == 1)
        if name == "AddBackward0":  # several losses: the first answers for all
            node = through_views(before(node)) or _second(node)
            continue
        return False
    return False


def _second(node: LiveNode) -> Any:
    return through_views(before(node, 1))
