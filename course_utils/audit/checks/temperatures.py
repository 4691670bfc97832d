"""Temperatures that do the opposite of what they are for, or stand on one side of a distillation only."""

from __future__ import annotations

import ast
import re
import weakref
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import torch

from course_utils.audit.check import Check, Found
from course_utils.audit.events import Op, Pass, before, node_behind, number_of
from course_utils.audit.expressions import factors_at
from course_utils.audit.factors import is_cosines, scores_behind
from course_utils.audit.finding import Level
from course_utils.audit.lines import Spot
from course_utils.graph.trace import LiveNode, node_name

_SCALES = frozenset({"mul", "div", "__mul__", "__rmul__", "__truediv__", "true_divide", "divide", "multiply"})
_SOFT = frozenset({"softmax", "log_softmax"})
_NAME = re.compile(r"((self|args|cfg|config|\w*params)\.)?(T|(\w+_)?(tau|temp|temperature)(_\w+)?)")
_FLAT, _WARM = 0.9, 1.5
_PASSES, _TIMES, _MOST, _WAY, _AXES = 6, 2, 64, 40, 3


@dataclass(frozen=True)
class _Made:
    """What is known of a tensor: by which number scores were multiplied, and whether a softmax came after."""

    ref: weakref.ref[torch.Tensor]
    factor: float
    spot: Spot | None
    scores: weakref.ref[torch.Tensor]  # as they were before all that
    soft: str = ""


class Temperatures(Check):
    """The numbers that scores are multiplied by before a softmax, on both sides of a loss."""

    codes: ClassVar = ("temperature-misplaced",)
    functions: ClassVar = _SCALES | _SOFT | {"kl_div", "cross_entropy"}

    def __init__(self, *args: object) -> None:
        super().__init__(*args)  # type: ignore[arg-type]
        self._made: dict[int, _Made] = {}
        self._passes = 0
        self._said: dict[tuple[Spot | None, str, str, str, Level], int] = {}
        self._warm: deque[tuple[int, float, Spot | None]] = deque(maxlen=_MOST)  # losses at a temperature

    def function(self, event: Op) -> None:
        if self._passes > _PASSES:
            return
        one = event.argument(0, "input")
        if event.name in _SOFT:
            if isinstance(one, torch.Tensor) and one.dim() <= _AXES:  # more than that are weights of attention
                known = self._of(one)
                factor, spot = (known.factor, known.spot) if known else (1.0, event.spot)
                self._keep(event.out, factor, spot, known.scores if known else weakref.ref(one), event.name)
            return
        other = event.argument(1, "target" if event.name in ("kl_div", "cross_entropy") else "other")
        if event.name in _SCALES and isinstance(one, torch.Tensor) and isinstance(other, int | float):
            if one.is_floating_point() and one.dim() >= 1 and other:
                known = self._of(one)
                number = 1 / other if "div" in event.name else float(other)
                bare = known is None or bool(known.soft)
                factor = number if bare or known is None else number * known.factor
                self._keep(event.out, factor, event.spot, weakref.ref(one) if bare or known is None else known.scores)
        elif isinstance(one, torch.Tensor) and isinstance(other, torch.Tensor) and event.out.requires_grad:
            self._pair(event, one, other)

    def _keep(self, out: Any, factor: float, spot: Spot | None, scores: Any, soft: str = "") -> None:
        if isinstance(out, torch.Tensor):
            if len(self._made) >= _MOST:
                self._made.clear()
            self._made[id(out)] = _Made(weakref.ref(out), factor, spot, scores, soft)

    def _of(self, tensor: torch.Tensor) -> _Made | None:
        known = self._made.get(id(tensor))
        return known if known is not None and known.ref() is tensor else None

    def _pair(self, event: Op, one: torch.Tensor, other: torch.Tensor) -> None:
        """Compare the two sides of a distillation: a student's log-softmax and a teacher's softmax."""
        mine, theirs = self._of(one), self._of(other)
        if event.name == "cross_entropy":
            ref = weakref.ref(one)
            mine = replace(mine or _Made(ref, 1.0, event.spot, ref), soft="log_softmax")
        if mine and theirs and (mine.soft, theirs.soft) == ("softmax", "log_softmax") and event.name != "kl_div":
            mine, theirs = theirs, mine
        if not mine or not theirs or (mine.soft, theirs.soft) != ("log_softmax", "softmax"):
            return
        same = mine.scores() is not None and mine.scores() is theirs.scores()  # the entropy of one distribution
        if same or mine.factor == theirs.factor == 1:
            return
        spot = event.spot
        warm = sorted({mine.factor, theirs.factor})
        if 1.0 in warm and warm[0] <= 1 / _WARM and _is_round(1 / warm[0]):
            side, bare = ("teacher", "student") if theirs.factor < 1 else ("student", "teacher")
            self._say(
                spot,
                f"the {side}'s scores are divided by {1 / warm[0]:g}, and the {bare}'s are not",
                "The loss compares two distributions, and one is flattened: a student that gives the same scores as "
                "its teacher is moved away from them.",
                "kl_div((student / T).log_softmax(1), (teacher / T).softmax(1), reduction='batchmean') * T * T",
                "likely",
            )
        elif mine.factor >= _WARM and theirs.factor in (mine.factor, 1 / mine.factor, 1.0) and self._named(mine):
            self._multiplied(mine.spot, mine.factor)
        elif mine.factor == theirs.factor <= 1 / 2 and isinstance(event.out, torch.Tensor) and event.name == "kl_div":
            node = node_behind(event.out)
            if node is not None:
                self._warm.append((number_of(node), 1 / mine.factor, spot))

    def _named(self, made: _Made) -> bool:
        """Say whether the line that multiplied the scores names a temperature as the factor."""
        return made.spot is not None and any(_NAME.fullmatch(ast.unparse(it)) for it in factors_at(made.spot))

    def pass_begins(self, event: Pass) -> None:
        if self.recorder.operations is None or not event.accumulate or self._passes > _PASSES:
            return
        self._passes += 1
        for node in event.graph.inner:
            if node_name(node) in ("LogSoftmaxBackward0", "ExpBackward0", "LogsumexpBackward0"):
                self._cosines(node)
        self._weight(event)

    def _cosines(self, node: LiveNode) -> None:
        scores = scores_behind(before(node))
        makers = [scores]
        if scores.made is not None and node_name(scores.made) == "CatBackward0":
            makers = [scores_behind(to) for to, _ in scores.made.next_functions]
        least = min((scores.factor * (1.0 if it is scores else it.factor) for it in makers), default=1.0)
        numbers = [number for it in [scores, *makers] for _, number in it.factors]
        if 0 < least < _FLAT and numbers and all(is_cosines(it.made) for it in makers):
            self._multiplied(self.recorder.lines.of(max(numbers)), least, cosines=True)

    def _multiplied(self, spot: Spot | None, factor: float, cosines: bool = False) -> None:
        if cosines:
            headline = f"cosines are multiplied by {factor:.3g} before their softmax: all shares are nearly the same"
            why = (
                f"A cosine lies between -1 and 1, and times {factor:.3g} two of them differ by at most "
                f"{2 * factor:.3g}. Even a perfect model cannot tell one from the others, and the loss stays near its "
                "first value."
            )
        else:
            headline = f"scores are multiplied by the temperature {factor:.3g}, and not divided by it"
            why = (
                "A temperature above 1 makes a softmax flatter, so that small shares are seen, too. Multiplied by it "
                "the scores move apart, and nearly nothing but the largest is left."
            )
        self._say(spot, headline, why, "scores / temperature", "likely")

    def _weight(self, event: Pass) -> None:
        """Note a loss at a temperature whose weight beside another loss does not make up for it."""
        if not self._warm or not any(node_name(it).startswith("NllLoss") for it in event.graph.inner):
            self._warm.clear()
            return
        weights = _weights(node_behind(event.outputs[0]) if event.outputs else None)
        for number, warm, spot in self._warm:
            weight = weights.get(number)
            if weight is not None and weight <= 1 < warm:
                self._say(
                    spot,
                    f"a loss at temperature {warm:g} has the weight {weight:.3g} beside the other one",
                    f"Dividing the scores by {warm:g} makes its gradient smaller by about {warm * warm:g}. Multiplied "
                    "by that it keeps its share of the sum, whatever temperature is chosen.",
                    "kl_div(...) * T ** 2",
                    "note",
                )
        self._warm.clear()

    def _say(self, spot: Spot | None, headline: str, why: str, fix: str, level: Level) -> None:
        key = spot, headline, why, fix, level
        if len(self._said) < _MOST:
            self._said[key] = self._said.get(key, 0) + 1

    def found(self) -> Iterator[Found]:
        for (spot, headline, why, fix, level), times in self._said.items():
            if times >= _TIMES:
                yield self.say("temperature-misplaced", spot, headline, why, fix, level=level, times=times)


def _is_round(number: float) -> bool:
    """Say whether a temperature was chosen, and not fitted: a whole number or a half."""
    return abs(2 * number - round(2 * number)) < 1e-6


def _weights(root: LiveNode | None) -> dict[int, float]:
    """Return the nodes that a loss is a weighted sum of, by their numbers, each with its weight."""
    found: dict[int, float] = {}
    waiting = [(root, 1.0)]
    for _ in range(_WAY):
        node, weight = waiting.pop() if waiting else (None, 1.0)
        if node is None:
            continue
        found[number_of(node)] = weight
        scores = scores_behind(node)
        if scores.factors and scores.made is not None:
            for factor, number in scores.factors:
                found[number] = weight
                weight *= factor
            waiting.append((scores.made, weight))
        elif node_name(node).startswith(("Add", "Sum", "Mean", "Stack", "Cat")):
            waiting += [(to, weight) for to, _ in node.next_functions]
    return found
