"""Forwards that undo a training: parameters that are set anew, and checkpoints that draw other noise again."""

from __future__ import annotations

import ast
import sys
from collections import Counter
from collections.abc import Iterator
from types import FrameType
from typing import Any, ClassVar

import torch

from course_utils.audit.book import Slot, sampled
from course_utils.audit.check import Check, Found
from course_utils.audit.events import Op, Step
from course_utils.audit.lines import Spot, here, is_checkpointing, is_learners, is_torch, names_in
from course_utils.audit.reading import scopes_of
from course_utils.audit.renewed import Renewal, renewals
from course_utils.audit.source import assigned, function_around, statement

_NOISE = frozenset(
    {
        *("dropout", "dropout1d", "dropout2d", "dropout3d", "alpha_dropout", "feature_alpha_dropout", "rrelu"),
        *("rand", "rand_like", "randn", "randn_like", "bernoulli", "normal"),
    }
)
_ROUNDS = frozenset({"sign_", "sgn_", "round_", "floor_", "trunc_"})
_FEW, _MANY = 0.25, 0.5  # shares of a parameter's numbers that are different: rounded ones, and others
_LEAST = 16  # so many numbers a parameter must have
_STEPS = 5
_SHARE = 0.8


class Replacing(Check):
    """Parameters that are set anew in each forward, and checkpoints that draw anew in each recomputation."""

    codes: ClassVar = ("overwritten", "recomputed-otherwise")
    functions: ClassVar = frozenset({"data.__set__", "copy_"}) | _NOISE | _ROUNDS

    def __init__(self, *args: object) -> None:
        super().__init__(*args)  # type: ignore[arg-type]
        self._steps: dict[tuple[Spot, int], set[int]] = {}  # by line and leaf: steps before which it was set
        self._rounded: dict[tuple[Spot, int], set[int]] = {}  # the same, where few different values were left
        self._exact: dict[int, bool] = {}  # leaves that were rounded, and whether the last step told them apart again
        self._otherwise: Counter[Spot] = Counter()

    def function(self, event: Op) -> None:
        if event.name in _NOISE:
            if event.name.find("dropout") < 0 or event.argument(2, "training", True):
                spot = _unkept()
                if spot is not None:
                    self._otherwise[spot] += 1
            return
        self._round(event.args[0] if event.args else None)
        if event.args and isinstance(event.args[0], torch.nn.Parameter):
            slot, spot = self.book.find(event.args[0]), event.spot
            if slot is not None and spot is not None and self.clock.steps:
                self._steps.setdefault((spot, slot.key), set()).add(self.clock.steps)

    def _lost(self, spot: Spot, slots: list[Slot]) -> Found:
        names = ", ".join(slot.name for slot in slots[:3])
        return self.say(
            "overwritten",
            spot,
            f"each forward writes rounded values over {names}, so what a small step did to it is lost",
            "The optimizer moves a number a little, and this line sets it to one of a few values again. Only a step "
            "that is large enough for the next value stays; the small ones never add up.",
            "exact = self.weight\nrounded = exact + (exact.sign() * scale - exact).detach()  # and compute with it",
            level="likely",
            times=max(len(steps) for (line, _), steps in self._rounded.items() if line == spot),
            about={slot.key for slot in slots},
            names=[slot.name for slot in slots],
        )

    def _renewed(self, it: Renewal) -> Found:
        return self.say(
            "overwritten",
            it.spot,
            f"{it.place} is made anew each time that this line runs: the optimizer holds the parameter that was there",
            "nn.Parameter(...) is another tensor than the one that the optimizer was given. The passes reach the new "
            "one, the steps move the old one, and nothing of what it learns is ever computed with.",
            "with torch.no_grad():\n    parameter.copy_(...)  # or make it once, before the optimizer",
            level="likely",
            certain=False,
            names=(it.place,),
        )

    def _round(self, written: Any) -> None:
        """Note a leaf of whose values a forward leaves few different ones."""
        spot, slot = here(), self._slot(written)
        if slot is None or spot is None or not _is_forward():
            return
        leaf = slot.tensor
        few = leaf is not None and leaf.requires_grad and _variety(leaf) <= _FEW
        if few and self._exact.setdefault(slot.key, False):
            self._rounded.setdefault((spot, slot.key), set()).add(self.clock.steps)

    def _slot(self, written: Any) -> Slot | None:
        """Return the leaf whose memory a tensor is."""
        if not isinstance(written, torch.Tensor) or written.numel() < _LEAST:
            return None
        known = self.book.find(written)
        if known is not None:
            return known
        held = [(slot, slot.tensor) for slot in self.book.live() if slot.shape == written.shape]
        return next((slot for slot, leaf in held if leaf is not None and leaf.data_ptr() == written.data_ptr()), None)

    def step_ended(self, event: Step) -> None:
        for slot in event.trainer.slots if self._exact else ():
            leaf = slot.tensor
            if slot.key in self._exact and leaf is not None:
                self._exact[slot.key] = _variety(leaf) >= _MANY

    def found(self) -> Iterator[Found]:
        rounded: dict[Spot, list[Any]] = {}
        by_key = {slot.key: slot for slot in self.book.live()}
        for (spot, key), steps in self._rounded.items():
            if len(steps) >= _STEPS - 2 and key in by_key:
                rounded.setdefault(spot, []).append(by_key[key])
        for spot, slots in rounded.items():
            yield self._lost(spot, slots)
        held, watched = self.book.held(), min(self.clock.steps, self.recorder.full_steps)
        lines: dict[Spot, list[Any]] = {}
        for (spot, key), steps in self._steps.items():
            slot = by_key.get(key)
            often = len(steps) >= _STEPS and len(steps) >= _SHARE * (watched - 1)
            if often and slot is not None and key in held and slot.received >= _STEPS and _is_set_anew(spot):
                lines.setdefault(spot, []).append(slot)
        for spot, slots in lines.items():
            names = ", ".join(slot.name for slot in slots[:3])
            yield self.say(
                "overwritten",
                spot,
                f"each forward sets {names} anew, so what the steps did to it is lost",
                "This line gives the parameter a value that does not come from the one that it had. The optimizer "
                "moves it, and the next forward puts another in its place.",
                "set it once: under a flag that is then switched, or before the training",
                level="likely",
                certain=False,
                times=max(len(self._steps[spot, slot.key]) for slot in slots),
                about={slot.key for slot in slots},
                names=[slot.name for slot in slots],
            )
        idle = [it for it in self.book.trainers.values() if it.steps >= 2 and any(map(_is_idle, it.slots))]
        for renewal in renewals(scopes_of(self.recorder)) if idle else ():
            yield self._renewed(renewal)
        for spot, times in self._otherwise.items():
            if times >= 2:
                yield self.say(
                    "recomputed-otherwise",
                    spot,
                    "the checkpoint computes the block again with other random numbers",
                    "preserve_rng_state=False lets the second forward draw a mask of its own. The gradient is that of "
                    "another network than the one that gave the loss.",
                    "checkpoint(block, x, use_reentrant=False)  # without preserve_rng_state=False",
                    times=times,
                )


def _is_idle(slot: Slot) -> bool:
    """Say whether an optimizer holds a leaf that no pass ever reached, though it is to be trained.

    One that was reached, and then replaced, is told of as what no optimizer holds.
    """
    tensor = slot.tensor
    return tensor is not None and tensor.requires_grad and not slot.received


def _variety(leaf: torch.Tensor) -> float:
    """Return how many of the numbers that are not zero are different, as a share of them."""
    values = sampled(leaf)
    values = values[values != 0]
    return values.unique().numel() / values.numel() if values.numel() >= _LEAST else 1.0


def _is_forward() -> bool:
    """Say whether a line runs on behalf of a module's call."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if frame.f_code.co_name == "_call_impl" and is_torch(frame.f_code.co_filename):
            return True
        frame = frame.f_back
    return False


def _is_set_anew(spot: Spot) -> bool:
    """Say whether a line of a forward sets `self.x.data`, or copies into `self.x`, from what does not come from it."""
    scope, found = function_around(spot), statement(spot)
    if not isinstance(scope, ast.FunctionDef) or scope.name != "forward":
        return False
    target: ast.expr | None = None
    value: ast.expr | None = None
    if isinstance(found, ast.Assign) and isinstance(found.targets[0], ast.Attribute):
        target, value = found.targets[0].value, found.value
    elif isinstance(found, ast.Expr) and isinstance(found.value, ast.Call):
        function = found.value.func
        if isinstance(function, ast.Attribute) and function.attr == "copy_" and found.value.args:
            target, value = function.value, found.value.args[0]
    name = ast.unparse(target).removesuffix(".data") if target is not None else ""
    if value is None or not name.startswith("self."):
        return False
    texts = [ast.unparse(value)]
    for part in ast.walk(value):
        made = assigned(spot, part.id) if isinstance(part, ast.Name) else None
        line = statement(made) if made is not None else None
        texts += [ast.unparse(line)] if line is not None else []
    return not any(name in text for text in texts)


def _unkept() -> Spot | None:
    """Return the learner's line of the checkpoint that is running, if it does not keep the random state."""
    frame: FrameType | None = sys._getframe(1)
    inside = False
    while frame is not None:
        code = frame.f_code
        if code.co_name == "checkpoint" and is_checkpointing(code.co_filename):
            inside = names_in(frame).get("preserve") is False
        elif inside and is_learners(code.co_filename):
            return Spot(code.co_filename, frame.f_lineno)
        frame = frame.f_back
    return None
