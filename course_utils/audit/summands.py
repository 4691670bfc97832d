"""The terms that a loss is a sum of, each with its sign: what adds, scales or averages is gone through."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from course_utils.audit.events import before, constant_of, through_views
from course_utils.graph.trace import LiveNode, node_name

MOST = 400  # nodes of a loss that are looked at
SUMS = ("MeanBackward", "SumBackward", "AddBackward", "StackBackward", "CatBackward")


@dataclass(frozen=True, eq=False)
class Summand:
    """One node on the way from a loss to its terms: with which sign the loss grows with it, and what joins it there."""

    node: LiveNode
    sign: int  # 0 where it is multiplied by 0
    joints: tuple[LiveNode, ...]  # the sums and differences above it, from the loss on
    ends: bool  # a term: nothing behind it is only added, scaled or averaged


def summands(root: LiveNode | None) -> list[Summand]:
    """Return the terms of a loss and what lies between, the loss itself first."""
    waiting: list[tuple[LiveNode | None, int, tuple[LiveNode, ...]]] = [(root, 1, ())]
    found: list[Summand] = []
    while waiting and len(found) < MOST:
        node, sign, joints = waiting.pop()
        node = through_views(node)
        if node is None:
            continue
        inner = [(to, turned) for to, turned in _inner(node, sign) if to is not None]
        found.append(Summand(node, sign, joints, not inner))
        below = (*joints, node) if len(inner) > 1 else joints
        waiting += [(to, turned, below) for to, turned in inner]
    return found


def _inner(node: LiveNode, sign: int) -> list[tuple[LiveNode | None, int]]:
    """Return what a node is a sum of, or a multiple, each with its sign; nothing where it is neither."""
    name = node_name(node)
    if name == "NegBackward0":
        return [(before(node), -sign)]
    if name in ("SubBackward0", "RsubBackward1"):
        first, second = (sign, -sign) if name == "SubBackward0" else (-sign, sign)
        return [(before(node), first), (before(node, 1), second)]
    if name.startswith(SUMS):
        return [(to, sign) for to, _ in node.next_functions]
    if name == "DivBackward0" and before(node) is not None and before(node, 1) is None:
        return _scaled(node, sign)
    return _scaled(node, sign) if is_weighted(node) else []


def is_weighted(node: LiveNode) -> bool:
    """Say whether a node multiplies something by a constant."""
    return node_name(node) == "MulBackward0" and sum(to is not None for to, _ in node.next_functions) == 1


def _scaled(node: LiveNode, sign: int) -> list[tuple[LiveNode | None, int]]:
    """Return what is multiplied or divided by one number, with its sign; nothing where it is by several numbers."""
    factor = constant_of(node)
    if factor is None or factor.numel() != 1:
        return []
    value = factor.item()  # of what is multiplied by 0 the loss does not grow
    turned = sign * ((value > 0) - (value < 0))
    return [(to, turned) for to, _ in node.next_functions]


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
