"""The terms that a loss is a sum of, each with its sign: what adds, scales or averages is gone through."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from course_utils.audit.events import before, constant_of, signed, through_views
from course_utils.graph.trace import LiveNode, node_name

MOST = 400  # nodes of a loss that are looked at
SUMS = ("MeanBackward", "SumBackward", "AddBackward", "StackBackward", "CatBackward")


@dataclass(frozen=True, eq=False)
class Summand:
    """One node on the way from a loss to its terms: how the loss grows with it, and what joins it there."""

    node: LiveNode
    scale: float  # the loss's change for a change of one of its numbers, by which it is multiplied, added or averaged
    joints: tuple[LiveNode, ...]  # the sums and differences above it, from the loss on
    ends: bool  # a term: nothing behind it is only added, scaled or averaged

    @property
    def sign(self) -> int:
        """With which sign the loss grows with it; 0 where it is multiplied by 0."""
        return (self.scale > 0) - (self.scale < 0)


def summands(root: LiveNode | None) -> list[Summand]:
    """Return the terms of a loss and what lies between, the loss itself first."""
    waiting: list[tuple[LiveNode | None, float, tuple[LiveNode, ...]]] = [(root, 1.0, ())]
    found: list[Summand] = []
    while waiting and len(found) < MOST:
        node, scale, joints = waiting.pop()
        node = through_views(node)
        if node is None:
            continue
        inner = [(to, factor) for to, factor in _inner(node) if to is not None]
        found.append(Summand(node, scale, joints, not inner))
        below = (*joints, node) if len(inner) > 1 else joints
        waiting += [(to, scale * factor, below) for to, factor in inner]
    return found


def _inner(node: LiveNode) -> list[tuple[LiveNode | None, float]]:
    """Return what a node is a sum of, or a multiple, each with its factor; nothing where it is neither."""
    name = node_name(node)
    if name == "NegBackward0":
        return [(before(node), -1.0)]
    if name in ("SubBackward0", "RsubBackward1"):
        alpha = float(getattr(node, "_saved_alpha", 1))
        first, second = (1.0, -alpha) if name == "SubBackward0" else (-alpha, 1.0)
        return [(before(node), first), (before(node, 1), second)]
    if name.startswith("AddBackward"):
        edges, alpha = node.next_functions, float(getattr(node, "_saved_alpha", 1))
        return [(to, alpha if at == 1 else 1.0) for at, (to, _) in enumerate(edges)]
    if name.startswith(SUMS):
        return [(to, 1 / averaged(node)) for to, _ in node.next_functions]
    if name == "DivBackward0" and before(node) is not None and before(node, 1) is None:
        return _scaled(node)
    return _scaled(node) if is_weighted(node) else []


def averaged(node: LiveNode) -> int:
    """Return over how many numbers a node takes each mean; 1 for one that takes none."""
    if not node_name(node).startswith("MeanBackward"):
        return 1
    sizes = getattr(node, "_saved_self_sym_sizes", ())
    dims = [signed(it) for it in getattr(node, "_saved_dim", None) or range(len(sizes))]
    return math.prod(sizes[it] for it in dims) or 1 if sizes else 1


def is_weighted(node: LiveNode) -> bool:
    """Say whether a node multiplies something by a constant."""
    return node_name(node) == "MulBackward0" and sum(to is not None for to, _ in node.next_functions) == 1


def _scaled(node: LiveNode) -> list[tuple[LiveNode | None, float]]:
    """Return what is multiplied or divided by one number, with the factor; nothing where it is by several numbers."""
    factor = constant_of(node)
    if factor is None or factor.numel() != 1 or factor.is_complex():
        return []
    value = float(factor)  # of what is multiplied by 0 the loss does not grow
    if node_name(node) == "DivBackward0":
        value = 1 / value if value else math.copysign(math.inf, value)
    return [(to, value) for to, _ in node.next_functions]


def joint_of(term: Sequence[Summand], every: Iterable[Summand]) -> LiveNode | None:
    """Return the sum or difference that joins a term to the rest of a loss; None where the term is all of it."""
    mine = {id(part.node) for part in term}
    rest = [part for part in every if part.ends and id(part.node) not in mine]
    for joint in reversed(term[0].joints):
        if all(_is_below(part, joint) for part in term) and any(_is_below(part, joint) for part in rest):
            return joint
    return None


def _is_below(part: Summand, joint: LiveNode) -> bool:
    return any(it is joint for it in part.joints)
