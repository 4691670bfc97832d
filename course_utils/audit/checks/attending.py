"""Scores of attention with a wrong scale: multiplied by the root of the width, scaled twice, not scaled where wide."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import torch

from course_utils.audit.check import Check, Found
from course_utils.audit.events import Op, Pass, before, number_of, saved_value
from course_utils.audit.factors import Scores, divides_by_norm, scores_behind
from course_utils.audit.finding import Level
from course_utils.audit.lines import Spot, in_module
from course_utils.graph.trace import LiveNode, node_name

_PASSES, _TIMES, _DEEP = 4, 2, 30
_WIDE, _PEAKED, _KEYS = 32, 0.5, 4
_WEIGHTS = ("Addmm", "Mm", "Bmm", "Linear", "Embedding", "Convolution", "AccumulateGrad", "torch::autograd")
_NORMS = ("Norm", "Rsqrt")
_FIX = "scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])"


@dataclass
class _Tally:
    headline: str
    why: str
    fix: str
    level: Level
    times: int = 0


class Attending(Check):
    """The numbers that products of queries and keys are multiplied by before their softmax."""

    codes: ClassVar = ("attention-scale",)
    functions: ClassVar = frozenset({"scaled_dot_product_attention"})

    def __init__(self, *args: object) -> None:
        super().__init__(*args)  # type: ignore[arg-type]
        self._passes = 0
        self._tallies: dict[tuple[Spot | None, Level], _Tally] = {}

    def function(self, event: Op) -> None:
        query, key, scale = event.argument(0, "query"), event.argument(1, "key"), event.kwargs.get("scale")
        if self._passes > _PASSES or in_module() or not isinstance(query, torch.Tensor) or query.dim() < 2:
            return
        width, sides = query.shape[-1], [scores_behind(getattr(it, "grad_fn", None)) for it in (query, key)]
        if any(_is_normalized(side.made) for side in sides):
            return
        given = width**-0.5 if scale is None else scale
        self._judge(sides, [(float(given), -1)], width, 1, event.spot)

    def pass_begins(self, event: Pass) -> None:
        if self.recorder.operations is None or not event.accumulate or self._passes > _PASSES:
            return
        self._passes += 1
        for node in event.graph.inner:
            if node_name(node) == "SoftmaxBackward0":
                self._softmax(node)

    def _softmax(self, node: LiveNode) -> None:
        scores = scores_behind(before(node))
        product = scores.made
        if product is None or node_name(product) not in ("BmmBackward0", "MmBackward0"):
            return
        one, other = saved_value(product, "self"), saved_value(product, "mat2")
        sides = [scores_behind(before(product, at)) for at in (0, 1)]
        if one is None or other is None or any(_is_leaf(it.made) or _is_normalized(it.made) for it in sides):
            return
        spot = self.recorder.lines.of(number_of(product))
        self._judge(sides, list(scores.factors), one.shape[-1], one.shape[0] if one.dim() == 3 else 1, spot)
        weights = saved_value(node, "result")
        plain = not scores.factors and not any(it.factors for it in sides)
        if plain and one.shape[-1] >= _WIDE and weights is not None and weights.shape[-1] >= _KEYS:
            self._unscaled(weights, one.shape[-1], spot)

    def _judge(
        self, sides: list[Scores], factors: list[tuple[float, int]], width: int, heads: int, spot: Spot | None
    ) -> None:
        """Compare all numbers on the way with the root of the width, or of the width of all heads."""
        every = [*factors, *(it for side in sides for it in side.factors)]
        total = math.prod(number for number, _ in every)
        multiplied = _is_root(total, width, heads)
        inverse = [number for number in every if math.isclose(number[0], width**-0.5, rel_tol=1e-4)]
        if width < 2 or not every or not (multiplied or len(inverse) >= 2):
            return
        own = [number for _, number in every if number >= 0]
        line = self.recorder.lines.of(max(own)) if multiplied and own else None
        if multiplied:
            self._count(
                line or spot,
                f"the scores of attention are multiplied by {total:.3g}, the root of a width, and not divided by it",
                f"A sum of {width} products spreads like the root of {width}. Divided by that, the scores keep to "
                "about 1; multiplied, they grow with the width, one weight is nearly 1, and the softmax passes hardly "
                "a gradient on.",
                _FIX,
                "likely",
            )
        else:
            self._count(
                spot,
                f"the scores of attention are divided by the root of {width} twice",
                "Queries or keys were scaled already, and here it happens again. The scores are then close to 0 and "
                "the weights nearly the same for all keys.",
                "leave out one of the two: scaled_dot_product_attention divides by itself, or takes scale=1.0",
                "likely",
            )

    def _unscaled(self, weights: torch.Tensor, width: int, spot: Spot | None) -> None:
        if float(weights.amax(-1).mean()) > _PEAKED:
            self._count(
                spot,
                f"scores of attention over {width} numbers are not scaled, and one weight takes most",
                f"A sum of {width} products spreads like the root of {width}. Without a division by it, or weights "
                "that begin smaller, as T5 has them, the softmax starts near one key and passes little gradient on.",
                _FIX,
                "note",
            )

    def _count(self, spot: Spot | None, headline: str, why: str, fix: str, level: Level) -> None:
        self._tallies.setdefault((spot, level), _Tally(headline, why, fix, level)).times += 1

    def found(self) -> Iterator[Found]:
        for (spot, level), it in self._tallies.items():
            if it.times >= _TIMES:
                yield self.say("attention-scale", spot, it.headline, it.why, it.fix, level=level, times=it.times)


def _is_root(total: float, width: int, heads: int) -> bool:
    """Say whether a number above 1 is the root of a width, or of that of all heads, or the width itself."""
    if total <= 1.2:
        return False
    share = total * total / width
    whole = math.isclose(share, round(share), rel_tol=1e-4) and round(share) >= 1 and heads % round(share) == 0
    return whole or math.isclose(total, width, rel_tol=1e-4)


def _is_leaf(node: Any) -> bool:
    return node is None or not node.next_functions


def _is_normalized(node: LiveNode | None) -> bool:
    """Say whether a norm stands between vectors and the weights that they come from."""
    queue = [node]
    for it in queue:
        if it is None or len(queue) > _DEEP or node_name(it).startswith(_WEIGHTS):
            continue
        if any(word in node_name(it) for word in _NORMS) or divides_by_norm(it):
            return True
        queue += [to for to, _ in it.next_functions]
    return False
