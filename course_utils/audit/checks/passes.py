"""Passes over one graph: twice over the same loss, retained or differentiable for nobody."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import ClassVar

from course_utils.audit.adapted import Adapted, Line
from course_utils.audit.book import listed
from course_utils.audit.check import Check, Found
from course_utils.audit.events import Op, Pass
from course_utils.audit.inner_steps import loss_after
from course_utils.audit.lines import Spot

# A graph that nobody came back to for so many steps is taken for gone, and so many are waited for at a time.
_STEPS = 2
_WAITING = 16
_MOVED = 3  # so many steps in which weights were moved for nobody


@dataclass
class _Tally:
    used: int = 0
    unused: int = 0
    accumulate: bool = True


@dataclass
class _Kept:
    """A graph that a pass left for a later one: the numbers of its nodes."""

    spot: Spot | None
    step: int
    create: bool
    accumulate: bool
    numbers: frozenset[int] = field(default=frozenset())
    made: range = range(0)  # numbers of the nodes that the pass itself recorded


class Passes(Check):
    """What became of graphs that passes left behind."""

    codes: ClassVar = ("same-loss-twice", "needless-retain", "needless-create-graph")
    functions: ClassVar = frozenset({"*"})

    def __init__(self, *args: object) -> None:
        super().__init__(*args)  # type: ignore[arg-type]
        self._roots: dict[tuple[int, int], tuple[int, Spot | None]] = {}  # of this step: pass and line
        self._step = -1
        self._doubled: tuple[int, Spot | None] | None = None
        self._twice: dict[Spot | None, tuple[int, Spot | None]] = {}
        self._kept: list[_Kept] = []
        self._tallies: dict[tuple[Spot | None, bool], _Tally] = {}
        self._numbers: frozenset[int] = frozenset()
        self._adapted = Adapted(self.book, self.recorder.cuts)

    def function(self, event: Op) -> None:
        if event.name == "grad" or self._adapted.slopes:
            self._adapted.look(event, self.clock.steps)

    def pass_begins(self, event: Pass) -> None:
        self._adapted.passed(event)
        if event.step != self._step:
            self._step, self._roots = event.step, {}
        self._settle(event.step)
        self._doubled = None
        plain = event.accumulate and not event.seeded and not event.limited
        if plain and event.root is not None:
            self._doubled = self._roots.get(event.root)
        if self._kept or (event.retain and event.direct):
            self._numbers = event.graph.numbers
            self._use(self._numbers)
            if plain and self._doubled is None:
                inside = [found for (number, _), found in self._roots.items() if number in self._numbers]
                self._doubled = inside[0] if inside else None
        if plain and event.root is not None:
            self._roots[event.root] = event.number, event.spot

    def pass_ended(self, event: Pass) -> None:
        if self._doubled is not None:
            number = self._doubled[0]
            if any(number in slot.content[:-1] for slot in event.received):
                times, _ = self._twice.get(event.spot, (0, None))
                self._twice[event.spot] = times + 1, self._doubled[1]
            self._doubled = None
        if event.retain and event.direct and event.root is not None:
            kept = _Kept(event.spot, event.step, event.create, event.accumulate)
            if event.create:
                kept.made = range(event.began, event.ended)
            else:
                kept.numbers = self._numbers
            self._kept.append(kept)
            del self._kept[:-_WAITING]
        self._numbers = frozenset()

    def _use(self, numbers: frozenset[int]) -> None:
        for kept in list(self._kept):
            if kept.numbers & numbers or any(number in kept.made for number in numbers):
                self._tally(kept).used += 1
                self._kept.remove(kept)

    def _settle(self, step: int) -> None:
        for kept in [kept for kept in self._kept if step - kept.step >= _STEPS]:
            self._tally(kept).unused += 1
            self._kept.remove(kept)

    def _tally(self, kept: _Kept) -> _Tally:
        return self._tallies.setdefault((kept.spot, kept.create), _Tally(accumulate=kept.accumulate))

    def found(self) -> Iterator[Found]:
        self._settle(self.clock.steps + _STEPS)
        for spot, (times, first) in self._twice.items():
            if times >= 2:
                yield self.say(
                    "same-loss-twice",
                    spot,
                    "one loss went through backward() twice before a step: its gradient counts double",
                    f"The pass on line {first.line if first else '?'} ran over this loss as well, and nothing cleared "
                    ".grad between them. Both results were added up.",
                    "loss.backward()  # once; add losses up before the pass where there are several",
                    times=times,
                )
        for (spot, create), tally in self._tallies.items():
            if tally.unused < 3 or tally.used:
                continue
            if create and not tally.accumulate:
                continue  # autograd.grad gives the gradients to the learner, who may keep them for anything
            yield self._needless_create(spot, tally) if create else self._needless_retain(spot, tally)
        for spot, line in self._adapted.idle():
            if len(line.steps) >= _MOVED:
                yield self._moved_for_nobody(spot, line)

    def _needless_retain(self, spot: Spot | None, tally: _Tally) -> Found:
        return self.say(
            "needless-retain",
            spot,
            f"retain_graph=True kept {tally.unused} graphs, and no other pass used any of them",
            "What the forward saved stays in memory until the graph itself goes. It is needed only where a second "
            "pass runs over the same graph.",
            "leave out retain_graph=True",
            times=tally.unused,
        )

    def _needless_create(self, spot: Spot | None, tally: _Tally) -> Found:
        return self.say(
            "needless-create-graph",
            spot,
            f"create_graph=True recorded {tally.unused} passes, and nothing was differentiated a second time",
            "Each .grad carries a graph of its own, and graph and parameter hold each other: memory is freed only "
            "when .grad is set to None.",
            "leave out create_graph=True; for second derivatives use torch.autograd.grad(..., create_graph=True)",
            times=tally.unused,
        )

    def _moved_for_nobody(self, spot: Spot, line: Line) -> Found:
        slots = [slot for slot in self.book.live() if slot.key in line.leaves]
        return self.say(
            "needless-create-graph",
            loss_after(spot) or spot,
            f"{listed(slots)} are moved by a gradient with its graph, and no loss is computed with the moved weights",
            "Nothing but the next inner step uses them: the optimizer's steps follow losses of the weights as they "
            "were before. What was learned within the step never reaches them.",
            "functional_call(model, moved, (x,))  # the outer loss, with the moved weights",
            certain=False,
            times=len(line.steps),
            about=line.leaves,
            names=[slot.name for slot in slots],
        )
