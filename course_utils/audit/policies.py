"""The terms of a policy's loss: log-probabilities and ratios that are weighed by something, as graphs tell."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from course_utils.audit.events import before, constant_of, number_of, through_views
from course_utils.audit.lines import Spot
from course_utils.audit.operations import Lines
from course_utils.audit.source import text_at
from course_utils.audit.summands import SUMS, Summand, is_weighted
from course_utils.graph.trace import LiveNode, node_name

_LIKELIHOOD = re.compile(r"\blog_?probs?\(|\blog_softmax\(|\.log\(\)|\btorch\.log\(")
_NEGATIVE = ("NllLoss", "BinaryCrossEntropy")  # of a log-probability
_DEEP = 4  # functions between a ratio and the difference that it is the exponential of


def likelihood_in(product: LiveNode, lines: Lines) -> int:
    """Return 1 if a product's other side is a log-probability, -1 if it is one's negative, 0 if it is neither."""
    sign, node = 1, next((to for to, _ in product.next_functions if to is not None), None)
    while node is not None:
        name = node_name(node)
        if name.startswith(_NEGATIVE):
            return -sign
        if is_ratio(node) or name.startswith("LogSoftmax"):
            return sign
        spot = lines.of(number_of(node))
        if name == "NegBackward0":
            sign = -sign
        elif spot is not None and _LIKELIHOOD.search(text_at(spot)):
            return sign
        elif through_views(node) is node and not name.startswith((*SUMS, "Gather")):
            return 0
        node = before(node)
    return 0


def is_ratio(node: LiveNode | None) -> bool:
    """Say whether a value is the exponential of a difference, as the ratio of two probabilities is."""
    node = through_views(node)
    if node is None or node_name(node) != "ExpBackward0":
        return False
    for _ in range(_DEEP):
        node = through_views(before(node)) if node is not None else None
        if node is None or not node_name(node).startswith(("Sum", "Mean", "Mul", "Div", "Clamp")):
            break
    return node is not None and node_name(node).startswith(("Sub", "Rsub"))


def bounds_in(node: LiveNode) -> LiveNode | None:
    """Return the first product in PPO's bound of two: a ratio and the same ratio limited, equally weighed."""
    sides = [through_views(before(node, at)) for at in range(2)]
    turned = [it is not None and node_name(it) == "NegBackward0" for it in sides]
    if all(turned):
        sides = [through_views(before(it)) for it in sides if it is not None]
    one, other = sides if len(sides) == 2 else (None, None)
    if one is None or other is None or any(turned) != all(turned) or not (is_weighted(one) and is_weighted(other)):
        return None
    ratios = [_factor(it) for it in (one, other)]
    limited = [it is not None and node_name(it).startswith("Clamp") for it in ratios]
    free = [it for it, is_limited in zip(ratios, limited, strict=True) if not is_limited]
    if len(free) != 1 or not is_ratio(free[0]) or not _weighs_alike(one, other):
        return None
    return one


def _factor(product: LiveNode) -> LiveNode | None:
    return through_views(next((to for to, _ in product.next_functions if to is not None), None))


def _weighs_alike(one: LiveNode, other: LiveNode) -> bool:
    mine, theirs = constant_of(one), constant_of(other)
    return mine is not None and theirs is not None and mine.shape == theirs.shape and bool((mine == theirs).all())


def weighed(parts: Iterable[Summand], lines: Lines) -> Iterator[tuple[LiveNode, Spot]]:
    """Yield the products of a log-probability or a ratio and a constant that a loss is a sum of, with their lines."""
    for part in parts:
        product = part.node
        if node_name(product).startswith(("Minimum", "Maximum")):
            product = bounds_in(product) or product
        spot = lines.of(number_of(product)) if is_weighted(product) else None
        if spot is not None and likelihood_in(product, lines):
            yield product, spot
