"""A policy's log-probability of an action that nobody took: one that was drawn anew for it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import torch

from course_utils.audit.check import Check, Found
from course_utils.audit.events import Pass, constant_of, node_behind, number_of
from course_utils.audit.expressions import assigned_value, factors_at, given_to, is_used_elsewhere
from course_utils.audit.lines import Spot
from course_utils.audit.operations import Lines
from course_utils.audit.policies import weighed
from course_utils.audit.rewards import reward_at
from course_utils.audit.source import function_around, taken_apart, text_at, tree_of
from course_utils.audit.summands import summands
from course_utils.explain.source import called, names_of
from course_utils.graph.trace import LiveNode

_PASSES, _TIMES = 8, 3
_PAIR = 2  # factors of the only product in a line
_NODES = 30  # between a product and the line of its log-probability


@dataclass
class _Asked:
    """A line that asks for a log-probability, and the weights that it got."""

    times: int = 0
    varies: bool = False  # a coefficient, as that of an entropy, is one number

    def add(self, weight: torch.Tensor) -> None:
        self.times += 1
        self.varies |= weight.numel() > 1 and bool((weight != weight.reshape(-1)[0]).any())


class Redrawn(Check):
    """The samples whose log-probabilities are weighed by rewards, and whether anybody else has them."""

    codes: ClassVar = ("other-sample",)

    def __init__(self, *args: object) -> None:
        super().__init__(*args)  # type: ignore[arg-type]
        self._passes = 0
        self._asked: dict[Spot, _Asked] = {}

    def pass_begins(self, event: Pass) -> None:
        if self.recorder.operations is None or not event.accumulate or self._passes >= _PASSES:
            return
        self._passes += 1
        lines = self.recorder.lines
        for product, at in weighed(summands(node_behind(event.outputs[0])), lines):
            spot, weight = self._line(product), constant_of(product)
            if spot is not None and weight is not None and _drawn_at(spot):
                asked = self._asked.setdefault(spot, _Asked())
                asked.add(weight)
                asked.varies |= reward_at(at) != 0 and len(factors_at(at)) == _PAIR

    def _line(self, product: LiveNode) -> Spot | None:
        """Return the line behind a product that asks a distribution for a log-probability."""
        lines: Lines = self.recorder.lines
        queue = [product]
        for node in queue:
            spot = lines.of(number_of(node))
            if spot is not None and ".log_prob(" in text_at(spot):
                return spot
            queue += [to for to, _ in node.next_functions if to is not None and len(queue) < _NODES]
        return None

    def found(self) -> Iterator[Found]:
        for spot, asked in self._asked.items():
            if asked.times < _TIMES or not asked.varies or not self.clock.steps or not _others(spot):
                continue
            yield self.say(
                "other-sample",
                spot,
                f"log_prob is given {_drawn_at(spot)}, which nobody else has: the reward is that of another sample",
                "Each call of sample() draws anew. The loss weighs how likely one action is by what another one "
                "earned: on average that is no gradient of the reward.",
                "action = distribution.sample()  # once; then act with it, and log_prob(action)",
                certain=False,
                times=asked.times,
            )


def _drawn_at(spot: Spot) -> str:
    """Return what a line gives `log_prob`, where it is drawn there, or just for it; else nothing."""
    given = given_to(spot, "log_prob")
    if given is None:
        return ""
    if _draws(given):
        return ast.unparse(given)
    if not isinstance(given, ast.Name) or is_used_elsewhere(spot, given.id) or _is_taken_in_turn(spot, given.id):
        return ""
    made = assigned_value(spot, given.id)
    return given.id if made is not None and _draws(made) else ""


def _is_taken_in_turn(spot: Spot, name: str) -> bool:
    """Say whether the function around a line is given a name, or a loop or comprehension in it binds the name."""
    scope = function_around(spot)
    for node in ast.walk(scope) if scope is not None else ():
        if isinstance(node, ast.For | ast.comprehension) and name in names_of(node.target):
            return True
        if isinstance(node, ast.arg) and node.arg == name:
            return True
    return False


def _draws(value: ast.expr) -> bool:
    return isinstance(value, ast.Call) and called(value) == "sample" and isinstance(value.func, ast.Attribute)


def _others(spot: Spot) -> bool:
    """Say whether the file draws actions on another line as well, which are kept under a name."""
    tree = tree_of(spot.file)
    mine = given_to(spot, "log_prob")
    name = mine.id if isinstance(mine, ast.Name) else ""
    for node in ast.walk(tree) if tree is not None else ():
        if isinstance(node, ast.Assign) and all(
            ast.unparse(part) != name for target in node.targets for part in taken_apart(target)
        ):
            drawing = (called(it) for it in ast.walk(node.value) if isinstance(it, ast.Call))
            if any(it in ("sample", "multinomial") for it in drawing) and node.lineno != spot.line:
                return True
    return False
