"""Predictions and targets that do not belong together: rows in two orders, noise that was drawn again."""

from __future__ import annotations

import ast
import re
import weakref
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import torch

from course_utils.audit.check import Check, Found
from course_utils.audit.events import Op, Pass
from course_utils.audit.lines import Spot, here, spots
from course_utils.audit.mentions import ran
from course_utils.audit.orders import orders_apart, orders_of_one
from course_utils.audit.origins import Draw, Marks, Origins, spots_of
from course_utils.audit.source import assigned, function_around, source_at, statement, text_at
from course_utils.explain.source import called

_LOSSES = frozenset(
    {
        *("cross_entropy", "nll_loss", "mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss", "kl_div"),
        *("binary_cross_entropy", "binary_cross_entropy_with_logits", "poisson_nll_loss", "gaussian_nll_loss"),
    }
)
_DISTANCES = frozenset({"mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss"})
_SUBTRACTIONS, _SIZES = frozenset({"sub", "__sub__"}), frozenset({"pow", "__pow__", "square", "abs", "norm"})
_ON_PURPOSE = re.compile(
    r"rand_?lab|random_(label|target)|permut|control|null|corrupt|nois[ey]|negativ|fake|wrong", re.I
)
_QUIET = 8  # passes without anything amiss, after which nobody looks any more
_TIMES = 3
_MOST = 64


@dataclass
class _Apart:
    """A line of a loss, and what was amiss with the rows of its target."""

    times: int = 0
    losses: int = 0
    draws: set[int] = field(default_factory=set)
    places: tuple[Spot, ...] = ()
    alone: bool = False


class Pairing(Check):
    """What predictions and targets were made of, told apart by the chance that went into them."""

    codes: ClassVar = ("shuffled-apart", "noise-anew")
    functions: ClassVar = frozenset({"*"})

    def __init__(self, *args: object) -> None:
        super().__init__(*args)  # type: ignore[arg-type]
        self._origins = Origins()
        self._apart: dict[Spot, _Apart] = {}
        self._anew: dict[Spot, _Apart] = {}  # by the line that draws the noise of the target
        self._differences: OrderedDict[int, tuple[weakref.ref[torch.Tensor], Marks, Marks]] = OrderedDict()
        self._quiet = 0
        self._suspicious = False
        self._ran: set[Spot] = set()

    def function(self, event: Op) -> None:
        if self._quiet >= _QUIET:
            return
        self._origins.follow(event)
        if event.name in _LOSSES:
            one, other = event.argument(0, "input"), event.argument(1, "target")
            if isinstance(one, torch.Tensor) and isinstance(other, torch.Tensor):
                self._compare(one, other, event.name in _DISTANCES)
        elif event.name in _SUBTRACTIONS:
            self._subtract(event)
        elif event.name in _SIZES and self._differences:
            known = self._differences.get(id(event.args[0]))
            if known is not None and known[0]() is event.args[0]:
                self._judge(known[1], known[2], True)

    def _subtract(self, event: Op) -> None:
        one, other = (*event.args, None, None)[:2]
        if not isinstance(one, torch.Tensor) or not isinstance(other, torch.Tensor):
            return
        if one.requires_grad == other.requires_grad or one.shape != other.shape:
            return
        mine, wanted = (one, other) if one.requires_grad else (other, one)
        marks = self._origins.of(wanted)
        if marks.rows or marks.noise:
            self._differences[id(event.out)] = weakref.ref(event.out), self._origins.of(mine), marks
            if len(self._differences) > _MOST:
                self._differences.popitem(last=False)

    def _compare(self, one: torch.Tensor, other: torch.Tensor, distance: bool) -> None:
        if one.requires_grad == other.requires_grad:
            return
        mine, wanted = (one, other) if one.requires_grad else (other, one)
        self._judge(self._origins.of(mine), self._origins.of(wanted), distance)

    def _judge(self, mine: Marks, wanted: Marks, distance: bool) -> None:
        spot = here()
        if spot is None or not (wanted.rows or wanted.noise):
            return
        self._rows(mine, wanted, spot)
        if distance and wanted.pure and not wanted.noise & mine.noise:
            draws = self._origins.draws
            for number in wanted.noise:
                drawn = draws[number]
                twins = [it for it in mine.noise if draws[it].added and draws[it].shape == drawn.shape]
                if twins and drawn.spot is not None:
                    found = self._anew.setdefault(drawn.spot, _Apart())
                    found.draws.add(number)
                    found.places = tuple(it for it in (draws[twins[-1]].spot,) if it is not None)
                    self._suspicious = True

    def _rows(self, mine: Marks, wanted: Marks, spot: Spot) -> None:
        apart = self._apart.setdefault(spot, _Apart())
        apart.losses += 1
        draws = self._origins.draws
        others, own = wanted.rows - mine.rows, mine.rows - wanted.rows
        pairs = [
            (draws[one], draws[other], rows)
            for one in own
            for other in others
            for rows in draws[one].used.keys() & draws[other].used.keys()
        ]
        if pairs:
            self._note(apart, [pairs[0][1], pairs[0][0]], pairs[0][2])
        elif others and not mine.rows and not mine.drawn:
            known = others - self._origins.abroad
            alone = [draws[it] for it in known if draws[it].whole and not draws[it].left]
            if alone and len(alone) == len(others):
                apart.alone = True
                self._note(apart, alone[:1], next(iter(alone[0].used)))

    def _note(self, apart: _Apart, draws: list[Draw], rows: int) -> None:
        apart.times += 1
        apart.places = tuple(spots_of(draws, rows))
        self._suspicious = True

    def pass_begins(self, event: Pass) -> None:
        if event.number <= _QUIET:
            self._ran.update(spots())
        self._quiet = 0 if self._suspicious else self._quiet + 1
        self._suspicious = False

    def found(self) -> Iterator[Found]:
        for file, scope in ran(self._ran) if self.clock.steps >= _TIMES else ():
            for drawn, used, rows, labels in orders_apart(file, scope):
                if not _is_on_purpose(used) and not _is_on_purpose(drawn):
                    yield self._ordered(
                        drawn,
                        f"{rows} and {labels} are shuffled in two different orders",
                        f"Each order is drawn by itself, and applied up to line {used.line}.",
                        rows,
                        labels,
                    )
            for drawn, used, rows, labels in orders_of_one(file, scope):
                if not _is_on_purpose(used):
                    yield self._ordered(
                        drawn,
                        f"{rows} is shuffled, and {labels} is not",
                        f"Line {used.line} takes both by the same numbers.",
                        rows,
                        labels,
                        also=[("taken here", used)],
                    )
        for spot, apart in self._apart.items():
            if apart.times < _TIMES or apart.times < apart.losses or not apart.places:
                continue
            if apart.alone and _is_on_purpose(apart.places[0]):
                continue
            yield self._shuffled(spot, apart)
        for spot, anew in self._anew.items():
            if len(anew.draws) >= _TIMES:
                yield self._drawn_again(spot, anew)

    def _shuffled(self, spot: Spot, apart: _Apart) -> Found:
        lines = " and ".join(f"line {place.line}" for place in sorted(set(apart.places)))
        return self.say(
            "shuffled-apart",
            _loader_at(max(apart.places)),
            "the targets are shuffled, and the inputs are not: rows and targets do not belong together"
            if apart.alone
            else "inputs and targets are shuffled in two different orders: rows and targets do not belong together",
            f"Each order is drawn by itself ({lines}), and the loss in line {spot.line} compares what comes out row by "
            "row. Nearly each prediction is compared with the target of another sample.",
            "order = torch.randperm(len(x))\nx, y = x[order], y[order]  # one order for both, or one loader of both",
            level="likely" if apart.alone else None,
            certain=not apart.alone,
            times=apart.times,
        )

    def _ordered(
        self, drawn: Spot, what: str, how: str, rows: str, labels: str, also: Sequence[tuple[str, Spot]] = ()
    ) -> Found:
        return self.say(
            "shuffled-apart",
            drawn,
            f"{what}: rows and targets do not belong together",
            f"{how} Nearly each prediction is compared with the target of another sample.",
            f"order = rng.permutation(len({rows}))\n{rows}[order], {labels}[order]  # one order for both",
            level="likely",
            certain=False,
            also=also,
        )

    def _drawn_again(self, spot: Spot, anew: _Apart) -> Found:
        where = f"line {anew.places[0].line}" if anew.places else "another line"
        return self.say(
            "noise-anew",
            spot,
            "the noise in the loss is drawn anew: it is not the noise that was added",
            f"What the model is given holds the noise of {where}. The target is other noise, which nothing that the "
            "model sees tells of: the best that it can learn is its mean, zero.",
            "noise = torch.randn_like(x)  # once: for the input, and for the loss",
            times=len(anew.draws),
        )


def _loader_at(spot: Spot) -> Spot:
    """Return the line that makes the last of several loaders that a loop goes through in pairs; else the line."""
    loop = statement(spot)
    pairs = loop.iter if isinstance(loop, ast.For) and called(loop.iter) == "zip" else None
    given = pairs.args if isinstance(pairs, ast.Call) else []
    made = [assigned(spot, ast.unparse(it)) for it in given if isinstance(it, ast.Name | ast.Attribute)]
    lines = [it for it in made if it is not None and "shuffle" in source_at(it)]
    return max(lines) if len(lines) == len(given) > 1 else spot


def _is_on_purpose(spot: Spot) -> bool:
    """Say whether names at a line, or of its function, tell that targets were to be shuffled."""
    name: Any = getattr(function_around(spot), "name", "")
    text = text_at(spot).replace(".permutation(", "")
    return bool(_ON_PURPOSE.search(text) or _ON_PURPOSE.search(name))
