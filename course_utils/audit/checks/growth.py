"""Graphs that outlive their step: in a list, in a running total, in a state that is carried on."""

from __future__ import annotations

import gc
import weakref
from collections import deque
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

import torch

from course_utils.audit.check import Check, Found
from course_utils.audit.events import Call, Pass, Step, number_of
from course_utils.audit.finding import Level
from course_utils.audit.holders import Holder, carried, holders
from course_utils.audit.lines import Spot
from course_utils.audit.stores import detached
from course_utils.graph.alive import Graphs
from course_utils.graph.trace import LiveNode

# Graphs of so many earlier steps alive at once: those that a pass has run through, and those that may still be used.
_CONSUMED = 4
_WAITING = 12

# The beginnings of graphs are watched in the first steps, later in every fourth: what is kept of the middle of a model
# keeps them alive.
_BEGUN, _EVERY, _UNTIL = 8, 4, 64
_BEGINNINGS = 6
_MOST = 32  # of them in one graph

# Looking for cycles takes long, so it is done so often at most.
_COLLECTIONS = 4


class _Births:
    """Graphs by the step in which they were made."""

    def __init__(self) -> None:
        self._steps: dict[int, Graphs] = {}

    def add(self, step: int, tensor: torch.Tensor) -> None:
        self._steps.setdefault(step, Graphs()).add(tensor)

    def add_node(self, step: int, node: LiveNode) -> None:
        self._steps.setdefault(step, Graphs()).add_node(node)

    def alive(self, before: int) -> int:
        """Return of how many steps before this one a graph is alive."""
        gone = [step for step, graphs in self._steps.items() if step < before and not graphs.alive()]
        for step in gone:
            del self._steps[step]
        return sum(step < before for step in self._steps)


class _Inside:
    """Passes of one line before a step, each through the graph of the one before, on new data each time.

    Layers that have losses of their own do the same on one input; there it is right.
    """

    def __init__(self) -> None:
        self.spot: Spot | None = None
        self.holder: Holder | None = None
        self.times = 0
        self._fresh = False  # a model was given data since the last pass that it was not given before
        self._step = -1
        self._numbers: frozenset[int] = frozenset()
        self._given: weakref.ref[torch.Tensor] | None = None

    def called(self, given: torch.Tensor | None) -> None:
        if given is not None and not given.requires_grad:
            self._fresh |= self._given is None or self._given() is not given
            self._given = weakref.ref(given)

    def began(self, event: Pass) -> None:
        if event.create or not event.retain or event.spot is None:
            return
        last, numbers = self._numbers, event.graph.numbers
        fresh, self._fresh = self._fresh, False
        goes_on = fresh and event.spot == self.spot and event.step == self._step and len(numbers) > len(last)
        self.times = self.times + 1 if goes_on and 2 * len(last & numbers) >= len(last) else 0
        self.spot, self._step, self._numbers = event.spot, event.step, numbers
        if self.times >= 3 and self.holder is None:
            self.holder = carried(numbers)


class Growth(Check):
    """What is still alive some steps later."""

    codes: ClassVar = ("kept-losses", "running-total", "carried-state")

    def __init__(self, *args: object) -> None:
        super().__init__(*args)  # type: ignore[arg-type]
        self._roots, self._outputs, self._beginnings = _Births(), _Births(), _Births()
        self._looked = 0
        self._next = 0
        self._alive = 0
        self._holder: Holder | None = None
        self._spot: Spot | None = None
        self._created = False
        self._reaching: deque[int] = deque(maxlen=5)  # nodes of the last passes that reached back for steps
        self._reached = 0
        self._reached_at: Spot | None = None
        self._carried: Holder | None = None
        self._total = False
        self._last_root = -1
        self._retained = False
        self._inside = _Inside()

    def called(self, event: Call) -> None:
        self._inside.called(event.given)
        if event.out is not None and event.grad:
            self._outputs.add(self.clock.steps, event.out)

    def pass_begins(self, event: Pass) -> None:
        self._created |= event.create and event.accumulate
        for out in event.outputs:
            if event.accumulate and isinstance(out, torch.Tensor) and out.grad_fn is not None:
                self._roots.add(self.clock.steps, out)
        step = self.clock.steps
        if event.accumulate and (step < _BEGUN or (step < _UNTIL and step % _EVERY == 0)):
            self._mark_beginnings(event)
        if event.accumulate and (event.retain or self._retained):
            self._reaches_back(event)
            self._inside.began(event)
        self._retained |= event.retain
        if event.root is not None and event.accumulate:
            self._last_root = event.root[0]
        self._spot = event.spot or self._spot

    def _mark_beginnings(self, event: Pass) -> None:
        """Watch what was computed from leaves alone, and since the last step, the deepest first."""
        since, marked = self.clock.marks[-1], 0
        for node in reversed(event.graph.inner):
            if number_of(node) >= since and all(to is None or not to.next_functions for to, _ in node.next_functions):
                self._beginnings.add_node(self.clock.steps, node)
                marked += 1
                if marked == _MOST:
                    return

    def _reaches_back(self, event: Pass) -> None:
        """Note a graph that began some steps ago and is larger than the last."""
        marks = self.clock.marks
        if len(marks) < 4 or event.create:
            return
        numbers = event.graph.numbers
        if not numbers or min(numbers) >= marks[-3]:
            return
        count = len(numbers)
        grows = not self._reaching or count > self._reaching[-1]
        if not grows:
            self._reaching.clear()
        self._reaching.append(count)
        if len(self._reaching) >= 3:
            self._reached += 1
            self._reached_at = event.spot
            self._total |= self._last_root in numbers
            if self._carried is None and event.spot is not None:
                self._carried = carried(numbers)

    def step_ended(self, event: Step) -> None:
        step = self.clock.steps
        if step <= self._next or event.in_pass:
            return
        self._next = step
        self._look(step - 1)

    def _look(self, before: int) -> None:
        if self._holder is not None or not self._is_growing(before) or self._looked >= _COLLECTIONS:
            return
        self._looked += 1
        gc.collect()  # cycles are freed late by themselves
        if self._is_growing(before):
            found = holders(self.clock.marks[-2] if len(self.clock.marks) > 1 else 0)
            self._holder = next(iter(found), Holder("", "unknown", None))

    def _is_growing(self, before: int) -> bool:
        """Count of how many earlier steps a graph is alive, and say whether that is too many."""
        consumed, waiting = self._roots.alive(before), self._outputs.alive(before)
        begun = self._beginnings.alive(before)
        self._alive = max(consumed, waiting, begun)
        return consumed >= _CONSUMED or waiting >= _WAITING or begun >= _BEGINNINGS

    def found(self) -> Iterator[Found]:
        if self._holder is None:
            self._look(self.clock.steps)
        if self._reached >= 2:
            yield self._reaching_back()
        elif self._inside.holder is not None:
            self._carried, self._reached_at, self._reached = self._inside.holder, self._inside.spot, self._inside.times
            yield self._reaching_back("likely")
        holder = self._holder
        if holder is None:
            return
        if self._created and holder.kind != "list":
            yield self.say(
                "needless-create-graph",
                self._spot,
                f"backward(create_graph=True) leaks: the graphs of {self._alive} earlier steps are alive",
                "Each .grad carries a graph that holds its parameter, and the parameter holds .grad: a cycle that "
                "nothing frees.",
                "grads = torch.autograd.grad(loss, parameters, create_graph=True)",
                level="error",
                times=self._alive,
            )
            return
        name = holder.name or "something"
        if holder.kind == "total":
            yield self.say(
                "running-total",
                holder.spot or self._spot,
                f"{name} adds up losses with their graphs: those of {self._alive} earlier steps are alive",
                f"The sum of tensors that have a graph has a graph, too: {name} refers to every step so far, and "
                "memory grows.",
                f"{name} += loss.item()  # or loss.detach()",
                certain=holder.spot is not None,
                times=self._alive,
                names=(name,),
            )
            return
        yield self.say(
            "kept-losses",
            holder.spot or self._spot,
            f"{name} keeps the graphs of {self._alive} earlier steps alive",
            "A tensor that was computed with a graph refers to all of it. Kept in a container, it keeps the graph, "
            "and memory grows from step to step.",
            f"{name}.append(loss.item())  # or loss.detach(): the number without the graph"
            if holder.numbers
            else f"{detached(holder.spot)}  # the values without the graph",
            certain=holder.kind == "list",
            times=self._alive,
            names=(name,) if holder.name else (),
        )

    def _reaching_back(self, level: Level = "error") -> Found:
        holder, at = self._carried, self._reached_at
        name = holder.name if holder else ""
        spot = (holder.spot if holder else None) or at
        common: Mapping[str, Any] = {"level": level, "times": self._reached, "names": (name,) if name else ()}
        if self._total:
            return self.say(
                "running-total",
                spot,
                "each pass runs through the losses of all steps before it again",
                "The loss is added to a total that has a graph, and the pass starts from the total: earlier losses "
                "count again in each step, with retain_graph=True to keep PyTorch from saying so.",
                "loss.backward()  # the loss of this step alone; total += loss.item()",
                **common,
            )
        return self.say(
            "carried-state",
            spot,
            f"{name or 'a state'} carries its graph from step to step: each pass runs through all earlier steps again",
            f"The graph has grown in each of the last passes{f' (line {at.line})' if at else ''}. retain_graph=True "
            "keeps PyTorch from refusing it; it is the state that has to be cut.",
            f"{name or 'state'} = {name or 'state'}.detach()  # between two steps; then no retain_graph=True",
            **common,
        )
