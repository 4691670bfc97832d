"""Whether a loss is a distance to fixed targets, and nothing else: then a training is to make it small."""

from __future__ import annotations

from course_utils.audit.events import before, through_views
from course_utils.audit.summands import summands
from course_utils.graph.trace import LiveNode, node_name

_TO_TARGETS = (
    *("MseLossBackward", "SmoothL1LossBackward", "HuberLossBackward", "BinaryCrossEntropyBackward"),
    *("BinaryCrossEntropyWithLogitsBackward", "NllLoss"),
)
_SIZES = ("PowBackward", "AbsBackward", "LinalgVectorNormBackward", "NormBackward")
_DIFFERENCES = ("SubBackward0", "RsubBackward1", "RsubBackward0", "AddBackward0")
_MOST = 12
_AVERAGES = ("MeanBackward", "SumBackward")


def cost_sign(root: LiveNode | None) -> int:
    """Return 1 for a sum of distances to fixed targets, -1 for a negated one alone, 0 for anything else."""
    node, sign = root, 1
    while node is not None and (node_name(node) == "NegBackward0" or node_name(node).startswith(_AVERAGES)):
        sign = -sign if node_name(node) == "NegBackward0" else sign
        node = through_views(before(node))
    if sign < 0:
        return -1 if node is not None and is_cost(node) else 0
    ends = [it for it in summands(root) if it.ends]
    return int(bool(ends) and all(it.scale > 0 and is_cost(it.node) for it in ends))


def is_cost(node: LiveNode) -> bool:
    """Say whether a node is a distance of something that is learnt to something that is not."""
    name = node_name(node)
    makers = [to for to, _ in node.next_functions if to is not None]
    if name.startswith(_TO_TARGETS):
        return len(makers) == 1
    if name.startswith(_SIZES):
        inner = through_views(before(node))
        return inner is not None and _misses(inner)
    return name == "MulBackward0" and len(makers) == 2 and makers[0] is makers[1] and _misses(makers[0])


def _misses(node: LiveNode) -> bool:
    """Say whether a node takes a constant from something, or something from a constant, perhaps in several steps."""
    constant = False
    waiting: list[LiveNode] = [node]
    for it in waiting:
        if node_name(it) not in _DIFFERENCES or len(waiting) > _MOST:
            continue
        makers = [through_views(to) for to, _ in it.next_functions]
        constant |= any(to is None for to in makers)
        waiting += [to for to in makers if to is not None]
    return constant and node_name(node) in _DIFFERENCES
