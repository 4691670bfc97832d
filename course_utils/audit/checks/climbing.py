"""Trainings that climb a loss which is to become small: an update by hand with a plus, `maximize=True`, a minus."""

from __future__ import annotations

import ast
import math
import re
import weakref
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, ClassVar

import torch

from course_utils.audit.ascents import updates
from course_utils.audit.book import Trainer, sampled
from course_utils.audit.check import Check, Found
from course_utils.audit.costs import cost_sign
from course_utils.audit.events import Op, Pass, node_behind, number_of
from course_utils.audit.expressions import assigned_value
from course_utils.audit.lines import Spot
from course_utils.audit.mentions import key_lines, ran
from course_utils.audit.source import around, blocks_of, nearest, source_at, statement, tree_of
from course_utils.explain.source import names_of

_PASSES = 64  # of a line that are looked at
_ENOUGH = 8
_UPWARDS = 0.5  # cosine of a move with the gradient at its beginning
_EACH = 0.9  # of the moves
_RISEN = 1.02  # the last quarter's mean loss, as a multiple of the first quarter's
_LEAVES = 8
# What climbs on purpose says so somewhere in its function.
_ON_PURPOSE = re.compile(
    r"adv|attack|pgd|fgsm|perturb|unlearn|forget|ascen|ascend|climb|reward|critic|discrim|player|minimax|dual|"
    r"lagrang|multiplier|likelihood|elbo|utility|fitness|fool|confus|repel|dream|sam\b|worst|robust",
    re.I,
)
_ERROR = re.compile(r"loss|cost|err|mse|nll|crit|entropy|(^|\W)(ce|bce|l1)(\W|_|$)", re.I)

_NEGATED = "the loss is the negative of what is to become small", "loss = F.cross_entropy(scores, target)  # no minus"


@dataclass
class _Trained:
    """What the passes of one line gave."""

    signs: set[int] = field(default_factory=set)
    values: list[float] = field(default_factory=list)
    up: int = 0
    moves: int = 0
    down: int = 0
    made: Spot | None = None  # the line that gave the loss its last function
    foreign: bool = False  # something was differentiated that belongs to no model, while models were there


class Climbing(Check):
    """The losses of each line's passes, and which way what was differentiated moved between them."""

    codes: ClassVar = ("loss-climbs",)
    functions: ClassVar = frozenset({"grad"})

    def __init__(self, *args: object) -> None:
        super().__init__(*args)  # type: ignore[arg-type]
        self._trained: dict[Spot, _Trained] = {}
        self._asked: tuple[Spot, list[weakref.ref[torch.Tensor]]] | None = None  # in the pass that runs, or is over
        self._last: dict[Spot, list[tuple[torch.Tensor, torch.Tensor]]] = {}  # values and gradients of a line's pass

    def pass_begins(self, event: Pass) -> None:
        self._asked = None
        out = event.outputs[0] if len(event.outputs) == 1 else None
        if event.spot is None or event.seeded is event.accumulate or event.create:
            return
        if not isinstance(out, torch.Tensor) or out.numel() != 1 or not out.is_floating_point():
            return
        trained = self._trained.setdefault(event.spot, _Trained())
        if len(trained.values) >= _PASSES or 0 in trained.signs:
            return
        root = node_behind(out)
        trained.signs.add(cost_sign(root))
        trained.values.append(float(out.detach()))
        trained.made = trained.made or (self.recorder.lines.of(number_of(root)) if root is not None else None)
        if not any(key != 0 for key in self.book.trainers):
            leaves = [leaf for _, leaf in event.graph.leaves if leaf.requires_grad]
            self._compare(event.spot, trained, leaves)
            self._asked = event.spot, list(map(weakref.ref, leaves))

    def _compare(self, spot: Spot, trained: _Trained, leaves: list[torch.Tensor]) -> None:
        """Note whether all that was differentiated in the last pass of a line has moved along its gradient since."""
        last = self._last.pop(spot, [])
        if not last or [it.shape for it, _ in last] != [sampled(it).shape for it in leaves[:_LEAVES]]:
            return
        moved = [(sampled(leaf) - was, slope) for leaf, (was, slope) in zip(leaves, last, strict=False)]
        judged = [(float(way.flatten() @ slope.flatten()), float(way.norm() * slope.norm())) for way, slope in moved]
        if any(length > 0 for _, length in judged):
            trained.moves += 1
            trained.up += all(along > _UPWARDS * length for along, length in judged if length > 0)
            trained.down += all(along < -_UPWARDS * length for along, length in judged if length > 0)

    def pass_ended(self, event: Pass) -> None:
        if self._asked is not None and event.accumulate:
            spot, leaves = self._asked[0], self._alive()
            self._keep(spot, leaves, [leaf.grad for leaf in leaves])

    def function(self, event: Op) -> None:
        inputs, slopes = event.argument(1, "inputs"), event.out
        if self._asked is None or not isinstance(slopes, tuple):
            return
        spot, leaves = self._asked[0], self._alive()
        asked = [inputs] if isinstance(inputs, torch.Tensor) else list(inputs)
        found = {id(leaf): slope for leaf, slope in zip(asked, slopes, strict=False)}
        self._keep(spot, leaves, [found.get(id(leaf)) for leaf in leaves])

    def _alive(self) -> list[torch.Tensor]:
        """Return what is differentiated in the last pass, or nothing where some of it is gone."""
        found = [ref() for ref in self._asked[1]] if self._asked is not None else []
        alive = [it for it in found if it is not None]
        return alive if len(alive) == len(found) else []

    def _keep(self, spot: Spot, leaves: list[torch.Tensor], slopes: list[Any]) -> None:
        self._asked = None
        if any(slope is None or slope.is_sparse for slope in slopes) or not leaves:
            return
        self._trained[spot].foreign |= bool(self.book.models) and not all(map(self._is_of_model, leaves))
        both = zip(leaves[:_LEAVES], slopes, strict=False)
        self._last[spot] = [(sampled(leaf), sampled(slope)) for leaf, slope in both]

    def _is_of_model(self, leaf: torch.Tensor) -> bool:
        slot = self.book.find(leaf)
        return slot is not None and slot.owner is not None

    def found(self) -> Iterator[Found]:
        trainers = [it for it in self.book.trainers.values() if it.key]
        for spot, trained in self._trained.items():
            if trained.signs not in ({1}, {-1}) or len(trained.values) < _ENOUGH or _is_meant(spot):
                continue
            sign = next(iter(trained.signs))
            if not _rises([sign * it for it in trained.values]):
                continue
            told = self._by_optimizer(spot, trained, sign, trainers) if trainers else self._by_hand(spot, trained, sign)
            if told is not None:
                yield self._climbs(*told, trained)

    def _by_hand(self, spot: Spot, trained: _Trained, sign: int) -> tuple[Spot, str, str] | None:
        ways = trained.up if sign > 0 else trained.down
        if trained.foreign or trained.moves < _ENOUGH - 1 or ways < _EACH * trained.moves:
            return None
        if sign < 0:
            return (trained.made, *_NEGATED) if trained.made is not None else None
        line = _update(spot)
        return (line, "this update adds the gradient", "w -= lr * w.grad") if line is not None else None

    def _by_optimizer(
        self, spot: Spot, trained: _Trained, sign: int, trainers: list[Trainer]
    ) -> tuple[Spot, str, str] | None:
        optimizer = trainers[0].ref() if len(trainers) == 1 and self._trains_all() else None
        climbs = {bool(group.get("maximize")) for group in optimizer.param_groups} if optimizer is not None else set()
        if sign < 0:
            return (trained.made, *_NEGATED) if climbs == {False} and trained.made is not None else None
        if climbs != {True}:
            return None
        made = trainers[0].made or spot
        return (
            nearest(key_lines(made.file, "maximize"), made) or made,
            "maximize=True: each step climbs",
            "maximize=False",
        )

    def _trains_all(self) -> bool:
        """Say whether the one optimizer there is holds all parameters of the models that were called."""
        held = self.book.held()
        models = [it for it in self.book.models.values() if it.calls]
        if not models:
            return True
        return all(slot.key in held for model in models for slot in model.slots)

    def _climbs(self, spot: Spot, what: str, fix: str, trained: _Trained) -> Found:
        first, last = abs(trained.values[0]), abs(trained.values[-1])
        return self.say(
            "loss-climbs",
            spot,
            f"{what}, and the error grows from {first:.3g} to {last:.3g}",
            "It is a distance to fixed targets, which training is to make small. A gradient points to where it grows "
            "fastest, and each step goes there.",
            fix,
            certain=False,
            times=len(trained.values),
        )


def _rises(values: list[float]) -> bool:
    quarter = len(values) // 4
    first, last = sum(values[:quarter]) / quarter, sum(values[-quarter:]) / quarter
    return math.isnan(last) or last > first + (_RISEN - 1) * abs(first)


def _is_meant(spot: Spot) -> bool:
    """Say whether the functions around a line speak of climbing, or of anything but an error to be made small."""
    scopes = [it for it in around(spot) if isinstance(it, ast.FunctionDef | ast.ClassDef)]
    scope = scopes[0] if scopes else tree_of(spot.file)
    body = "\n".join(map(ast.unparse, blocks_of(scope))) if scope is not None else ""
    text = f"{getattr(scope, 'name', '')}\n{body}"
    asked = [source_at(spot), *_given(spot)]
    return _ON_PURPOSE.search(text.replace("maximize", "")) is not None or not any(map(_ERROR.search, asked))


def _given(spot: Spot) -> Iterator[str]:
    """Yield what the names at a line were assigned."""
    for name in names_of(statement(spot)):
        value = assigned_value(spot, name)
        if value is not None:
            yield ast.unparse(value)


def _update(spot: Spot) -> Spot | None:
    """Return the last line that adds a gradient to something, in the function of a pass or in what that calls."""
    near = [(spot.file, it) for it in around(spot) if isinstance(it, ast.FunctionDef)]
    scopes = [*near[-1:], *reversed(ran([spot]))]
    return next((line for file, scope in scopes for line in reversed(updates(file, scope))), None)
