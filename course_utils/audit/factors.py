"""Numbers that scores are multiplied by on their way to a softmax, as the graph keeps them."""

from __future__ import annotations

import math
from typing import NamedTuple

import torch

from course_utils.audit.events import before, constant_of, number_of, saved_value, signed, through_views
from course_utils.graph.trace import LiveNode, node_name

SCALES = ("MulBackward0", "DivBackward0")
_MASKS = ("MaskedFill", "Where", "AddBackward", "SubBackward", "NativeDropout")
_DEEP = 12


class Scores(NamedTuple):
    """What scores were made by, and the numbers that they were multiplied by since, each with when that was."""

    made: LiveNode | None
    factors: tuple[tuple[float, int], ...]

    @property
    def factor(self) -> float:
        return math.prod(number for number, _ in self.factors)


def scores_behind(node: LiveNode | None) -> Scores:
    """Follow scores back to what made them: through views, masks that have no graph, and products with a number."""
    factors: list[tuple[float, int]] = []
    for _ in range(_DEEP):
        node = through_views(node)
        makers = [to for to, _ in node.next_functions if to is not None] if node is not None else []
        if node is None or len(makers) != 1:
            break
        number = multiplier(node)
        if number:
            factors.append((number, number_of(node)))
        elif not node_name(node).startswith(_MASKS):
            break
        node = makers[0]
    return Scores(node, tuple(factors))


def multiplier(node: LiveNode) -> float | None:
    """Return the number that a product or quotient multiplies something by; None where a node does something else."""
    name, makers = node_name(node), sum(to is not None for to, _ in node.next_functions)
    if name not in SCALES or makers != 1 or (name == "DivBackward0" and before(node) is None):
        return None
    value = constant_of(node)
    if value is None or value.numel() != 1 or value.is_complex() or not float(value):
        return None
    return float(value) if name == "MulBackward0" else 1 / float(value)


def has_unit_rows(value: torch.Tensor | None, dim: int) -> bool:
    """Say whether all vectors along an axis have length 1."""
    if value is None or not value.is_floating_point() or value.dim() < 2 or not value.numel():
        return False
    return bool(((value.float().norm(dim=dim) - 1).abs() < 1e-3).all())


def divides_by_norm(node: LiveNode | None) -> bool:
    """Say whether a node divides something by a value that has a graph of its own, as F.normalize does."""
    divides = node is not None and node_name(node) == "DivBackward0"
    return node is not None and divides and before(node) is not None and before(node, 1) is not None


def is_cosines(node: LiveNode | None) -> bool:
    """Say whether a node is a product of vectors that all have length 1."""
    name = node_name(node) if node is not None else ""
    if node is None:
        return False
    if name == "CatBackward0":
        return all(is_cosines(scores_behind(to).made) for to, _ in node.next_functions)
    if name in ("MmBackward0", "BmmBackward0"):
        one, other = saved_value(node, "self"), saved_value(node, "mat2")
        units = [(one, -1, 0), (other, -2, 1)]
        return any(it is not None for it in (one, other)) and all(
            divides_by_norm(through_views(before(node, at))) if value is None else has_unit_rows(value, dim)
            for value, dim, at in units  # what is multiplied by a constant is not kept
        )
    if name == "SumBackward1" and node._saved_dim is not None and len(node._saved_dim) == 1:
        product = before(node)
        if product is not None and node_name(product) == "MulBackward0":
            dim = signed(node._saved_dim[0])
            return all(has_unit_rows(saved_value(product, name), dim) for name in ("self", "other"))
    return False
