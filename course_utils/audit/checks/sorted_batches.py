"""Batches that hold one class each, as the data are sorted and nobody shuffles them."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import groupby
from typing import ClassVar

import torch
from torch.utils.data import DataLoader

from course_utils.audit.book import Trainer
from course_utils.audit.check import Check, Found
from course_utils.audit.events import Pass, Step, node_behind, saved_value
from course_utils.audit.lines import Spot, names_in
from course_utils.audit.loops import running
from course_utils.audit.source import assigned
from course_utils.graph.trace import LiveNode, node_name

_ROWS = 4  # of a batch
_BATCHES = 6
_CLASSES = 3
_MIXED = 0.34  # of the batches may hold two classes, as one ends in them and the next begins
_NEAR = 6  # nodes between a loss and its cross-entropy
_MOST = 2000
_FRAMES = 5


@dataclass
class _Series:
    """The classes of an optimizer's batches, one after the other; None for a batch with two."""

    trainer: Trainer
    spot: Spot | None
    classes: list[int | None] = field(default_factory=list)
    shuffled: bool = False


class SortedBatches(Check):
    """Which classes the batches of a classifier hold."""

    codes: ClassVar = ("sorted-batches",)

    def __init__(self, *args: object) -> None:
        super().__init__(*args)  # type: ignore[arg-type]
        self._series: dict[int, _Series] = {}
        self._target: torch.Tensor | None = None

    def pass_begins(self, event: Pass) -> None:
        self._target = None
        if self._series and all(it.shuffled for it in self._series.values()):
            return
        node = node_behind(event.outputs[0]) if event.accumulate and len(event.outputs) == 1 else None
        self._target = _targets(node) if node is not None else None

    def step_begins(self, event: Step) -> None:
        target, self._target = self._target, None
        series = self._series.get(event.trainer.key)
        if series is not None and series.shuffled:
            return
        if series is None:
            series = self._series[event.trainer.key] = _Series(event.trainer, None)
        few = target is not None and target.numel() < _ROWS
        if few and series.classes:  # what is left at the end of an epoch
            return
        if target is None or few or event.closure:
            series.shuffled = True
            return
        first, last = int(target.min()), int(target.max())
        series.classes.append(first if first == last else None)
        if first != last and not bool(((target == first) | (target == last)).all()):
            series.shuffled = True
        series.shuffled |= len(series.classes) >= _BATCHES and _mixed(series.classes) > _MIXED
        if series.spot is None and not series.shuffled:
            series.spot = _loader() or event.spot
        if len(series.classes) > _MOST:
            del series.classes[: _MOST // 2]

    def found(self) -> Iterator[Found]:
        for series in self._series.values():
            if series.shuffled or len(series.classes) < _BATCHES or _mixed(series.classes) > _MIXED:
                continue
            runs = [it for it, _ in groupby(it for it in series.classes if it is not None)]
            many = len(set(runs))
            # The same classes in the same order, again and again: a curriculum does not go back to its beginning.
            if many < _CLASSES or len(runs) <= many or any(it != runs[at % many] for at, it in enumerate(runs)):
                continue
            yield self.say(
                "sorted-batches",
                series.spot,
                f"each batch holds one class: {many} classes come one after the other, in the same order each time",
                "The data are sorted, and nothing shuffles them. Each step teaches the model one answer for whatever "
                "it is shown, and the next class undoes it.",
                "DataLoader(dataset, batch_size=..., shuffle=True)  # or rows by torch.randperm(len(x))",
                certain=False,
                times=len(series.classes),
                about={series.trainer.key},
            )


def _mixed(classes: list[int | None]) -> float:
    return sum(it is None for it in classes) / len(classes)


def _targets(node: LiveNode) -> torch.Tensor | None:
    """Return the classes that a loss was computed for: of its only cross-entropy, near its end."""
    queue, found = [node], []
    for at in queue:
        if node_name(at) == "NllLossBackward0":
            found.append(saved_value(at, "target"))
        elif len(queue) <= _NEAR:
            queue += [to for to, _ in at.next_functions if to is not None]
    return found[0] if len(found) == 1 else None


def _loader() -> Spot | None:
    """Return the line that makes the loader which the running loop goes through; else the line of that loop."""
    loop: Spot | None = None
    made: Spot | None = None
    loader: object = None
    for frame, spot, loops in running(_FRAMES):
        known = names_in(frame)
        for node in reversed(loops if loop is None else []):
            if isinstance(node, ast.For):
                loop = loop or Spot(spot.file, node.lineno)
                for part in ast.walk(node.iter):
                    if isinstance(part, ast.Name | ast.Attribute):
                        value = known.get(part.id) if isinstance(part, ast.Name) else _attribute(part, known)
                        if loader is None and isinstance(value, DataLoader):
                            loader, made = value, assigned(spot, ast.unparse(part))
        for name, value in known.items() if loader is not None else ():
            if value is loader:
                made = assigned(spot, name) or made
    return made or loop


def _attribute(node: ast.Attribute, known: dict[str, object]) -> object:
    owner = known.get(node.value.id) if isinstance(node.value, ast.Name) else None
    return getattr(owner, "__dict__", {}).get(node.attr)
