"""Gradients clipped where it changes nothing, or while they are scaled; steps on scaled gradients."""

from __future__ import annotations

import ast
import weakref
from collections import Counter
from collections.abc import Iterator
from typing import ClassVar

import torch

from course_utils.audit.book import Slot
from course_utils.audit.check import Check, Found
from course_utils.audit.events import Clip, Pass, Step, constant_of, node_behind
from course_utils.audit.expressions import used_up
from course_utils.audit.lines import Spot
from course_utils.audit.source import function_around
from course_utils.explain.source import called
from course_utils.graph.trace import node_name

_DIVIDING = frozenset({"div_", "mul_", "_foreach_div_", "_foreach_mul_"})
_SCALE = 8.0  # a factor of a loss that is no weight: gradients are scaled up to survive in few bits


class Clipping(Check):
    """What a clipping found, and whether a step came to use it."""

    codes: ClassVar = ("clip-after-step", "clip-scaled", "clip-nothing", "step-scaled")

    def __init__(self, *args: object) -> None:
        super().__init__(*args)  # type: ignore[arg-type]
        self._all: Counter[Spot | None] = Counter()
        self._nothing: Counter[Spot | None] = Counter()
        self._empty: set[Spot] = set()  # lines that were given no parameter with a gradient
        self._late: Counter[Spot | None] = Counter()
        self._scaled: Counter[Spot | None] = Counter()
        self._steps: Counter[Spot | None] = Counter()
        self._factor: torch.Tensor | None = None  # that the last pass's loss was multiplied by
        self._clipped: tuple[Spot, float] | None = None  # since the last step, with the factor of its gradients
        self._stepping: tuple[weakref.ref[torch.Tensor], int] | None = None  # a parameter, as the step found it
        self._within: tuple[Spot, int] | None = None  # a clipping in that step, and the parameter's version there
        self._by_hand: Counter[tuple[Spot, Spot, float]] = Counter()  # the same, with the line of the step

    def pass_begins(self, event: Pass) -> None:
        self._stepping = self._within = None  # a step that runs a pass in between has other gradients from here on
        node = node_behind(event.outputs[0]) if event.outputs else None
        factor = constant_of(node) if node is not None and node_name(node) == "MulBackward0" else None
        self._factor = factor if factor is not None and factor.numel() == 1 else None

    def clipped(self, event: Clip) -> None:
        if not event.bounded:
            return
        self._all[event.spot] += 1
        if event.count == 0 or (event.slots and all(not slot.content and slot.is_zero() for slot in event.slots)):
            self._nothing[event.spot] += 1
            if event.count == 0 and event.spot is not None:
                self._empty.add(event.spot)
        elif event.slots and all(slot.used for slot in event.slots):
            self._late[event.spot] += 1
        elif self.recorder.scaling.passes and any(self._is_scaled(slot) for slot in event.slots):
            self._scaled[event.spot] += 1
        elif self._factor is not None and event.spot is not None and (factor := float(self._factor)) >= _SCALE:
            self._clipped = event.spot, factor

    def clipped_within(self, spot: Spot | None) -> None:
        """Take note of a clipping within a step of one's own, with what the parameters were then."""
        tensor = self._stepping[0]() if self._stepping is not None else None
        if spot is not None and self._stepping is not None and tensor is not None:
            self._within = (spot, tensor._version) if tensor._version != self._stepping[1] else None

    def step_ended(self, event: Step) -> None:
        """Count a clipping that nothing followed: the parameters had moved before, and did not again."""
        tensor = self._stepping[0]() if self._stepping is not None else None
        if self._within is not None and tensor is not None and tensor._version == self._within[1]:
            self._late[self._within[0]] += 1
        self._stepping = self._within = None

    def step_begins(self, event: Step) -> None:
        first = next((slot.tensor for slot in event.fresh if slot.tensor is not None), None)
        self._stepping = (weakref.ref(first), first._version) if first is not None else None
        clipped, self._clipped = self._clipped, None
        if clipped is not None and event.spot is not None and event.spot.file == clipped[0].file:
            self._by_hand[clipped[0], event.spot, clipped[1]] += 1
        optimizer = event.trainer.ref()
        if hasattr(optimizer, "grad_scale"):  # it takes the scale off itself
            return
        if self.recorder.scaling.passes and any(self._is_scaled(slot) for slot in event.fresh):
            self._steps[event.spot] += 1

    def _is_scaled(self, slot: Slot) -> bool:
        passes = self.recorder.scaling.passes
        if not any(number in passes for number in slot.content):
            return False
        owners = [trainer for trainer in self.book.trainers.values() if slot in trainer.slots]
        return not any(self.recorder.scaling.is_unscaled(trainer) for trainer in owners)

    def found(self) -> Iterator[Found]:
        for spot, times in self._nothing.items():
            if times >= 2 and times * 2 >= self._all[spot]:
                empty = spot is not None and spot in self._empty
                yield self.say(
                    "clip-nothing",
                    (used_up(spot) if empty and spot is not None else None) or spot,
                    f"{times} of {self._all[spot]} clippings had no gradient to clip"
                    + (f" (line {spot.line})" if empty and spot is not None else ""),
                    "Clipping changes what stands in .grad at that moment: before backward(), or with an iterator of "
                    "parameters that was used up before, that is nothing.",
                    "list(model.parameters())  # an iterator gives them once"
                    if empty and spot is not None and used_up(spot) is not None
                    else "loss.backward()\ntorch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)\noptimizer.step()",
                    times=times,
                )
        for spot, times in self._late.items():
            if times >= 2:
                yield self.say(
                    "clip-after-step",
                    spot,
                    f"gradients are clipped after the step that used them, {times} times",
                    "The step has already moved the parameters along the gradients as they were. What is clipped here "
                    "is not used again.",
                    "torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)\noptimizer.step()",
                    times=times,
                )
        for spot, times in self._scaled.items():
            if times >= 2:
                yield self.say(
                    "clip-scaled",
                    spot,
                    "gradients are clipped while they still carry the scaler's factor",
                    "The bound is meant for true gradients. Scaled ones are thousands of times larger, so each is cut "
                    "down to the bound, and after unscaling almost nothing is left.",
                    "scaler.unscale_(optimizer)\ntorch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)",
                    times=times,
                )
        for (clip, step, factor), times in self._by_hand.items():
            taken_off = _divides_gradients(clip, step) if times >= 2 else None
            if taken_off is not None:
                yield self.say(
                    "clip-scaled",
                    clip,
                    f"gradients are clipped while they are {factor:g} times too large: line {taken_off.line} divides "
                    "them only then",
                    "The bound is meant for true gradients. Scaled ones are cut down to it nearly each time, and then "
                    "made smaller by the factor once more.",
                    "for p in model.parameters(): p.grad /= scale\n"
                    "torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)",
                    times=times,
                )
        for spot, times in self._steps.items():
            if times >= 2:
                yield self.say(
                    "step-scaled",
                    spot,
                    "the optimizer steps on gradients that still carry the scaler's factor",
                    "scaler.scale() multiplied the loss. Only scaler.step() divides the gradients again, and skips the "
                    "step where they overflowed.",
                    "scaler.step(optimizer)\nscaler.update()",
                    times=times,
                )


def _divides_gradients(after: Spot, until: Spot) -> Spot | None:
    """Return the line between a clipping and a step that divides or multiplies gradients as they stand in .grad."""
    scope = function_around(after)
    for node in ast.walk(scope) if scope is not None else ():
        line = getattr(node, "lineno", 0)
        if not after.line < line <= until.line:
            continue
        changed: ast.AST | None = None
        if isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Div | ast.Mult):
            changed = node.target
        elif isinstance(node, ast.Assign) and isinstance(node.value, ast.BinOp):
            changed = node.targets[0] if isinstance(node.value.op, ast.Div | ast.Mult) else None
        elif isinstance(node, ast.Call) and called(node) in _DIVIDING:
            changed = node
        if changed is not None and any(isinstance(it, ast.Attribute) and it.attr == "grad" for it in ast.walk(changed)):
            return Spot(after.file, line)
    return None
