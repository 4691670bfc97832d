"""What a term of a loss is, as its graph tells: an entropy, a penalty, a divergence, a similarity, a likelihood."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from course_utils.audit.events import before, constant_of, through_views
from course_utils.audit.summands import Summand
from course_utils.graph.trace import LiveNode, node_name

_UP = ("Exp", "Softmax", "Sigmoid")
_ALONG = ("Log", "Clamp", "Div", "Add", "Sub", *_UP)
_SCALES = ("Pow", "Div", "Mul", "Sqrt", "Clamp", "AddBackward")
_DEEP = 8
_TINY = 1e-3


def entropy_sign(node: LiveNode, text: str) -> int:
    """Return 1 for a term that grows with an entropy, -1 for one that falls with it, 0 for any other.

    `text` is the line that made the node: of a continuous distribution's entropy only a logarithm is left.
    """
    name = node_name(node)
    if name == "MulBackward0" and any(_is_share_and_log(node, at) for at in range(2)):
        return -1
    own = name.startswith(("LogBackward", "BinaryCrossEntropyWithLogits")) and all(
        to is not None for to, _ in node.next_functions[:2]
    )
    return int(own and ".entropy(" in text)


def _is_share_and_log(product: LiveNode, at: int) -> bool:
    """Say whether one factor is a probability, and the other one the logarithm of the same."""
    share, logarithm = (_along(before(product, side)) for side in (at, 1 - at))
    common = next((node for node in share if any(node is it for it in logarithm)), None)
    if common is None:
        return False
    above, over = share[: _at(common, share)], logarithm[: _at(common, logarithm)]
    if any(node_name(node).startswith("Log") for node in above):
        return False
    if any(node_name(node).startswith("Log") for node in over):
        return any(node_name(node).startswith(_UP) for node in share)
    after = before(common, 1)
    normal = node_name(common).startswith("LogSoftmax") or (
        node_name(common) == "SubBackward0" and after is not None and node_name(after).startswith("Logsumexp")
    )
    return normal and any(node_name(node).startswith(_UP) for node in above)


def _along(node: LiveNode | None) -> list[LiveNode]:
    """Return a node and those before it that change each of its numbers by itself."""
    found: list[LiveNode] = []
    while (node := through_views(node)) is not None and len(found) < _DEEP:
        found.append(node)
        if not node_name(node).startswith(_ALONG):
            break
        node = before(node)
    return found


def _at(node: LiveNode, nodes: Sequence[LiveNode]) -> int:
    return next(at for at, it in enumerate(nodes) if it is node)


def penalized(node: LiveNode) -> torch.Tensor | None:
    """Return the leaf that a term is the size of: its squares, absolute values or norm."""
    name = node_name(node)
    if not _is_square(node) and not name.startswith(("Abs", "LinalgVectorNorm", "Norm")):
        return None
    inner = through_views(before(node))
    while inner is not None and node_name(inner).startswith("Cat"):
        inner = through_views(before(inner))
    leaf = getattr(inner, "variable", None)
    return leaf if isinstance(leaf, torch.Tensor) else None


def _is_square(node: LiveNode) -> bool:
    if node_name(node) == "MulBackward0":
        return before(node) is not None and before(node) is before(node, 1)
    return node_name(node) == "PowBackward0" and getattr(node, "_saved_exponent", None) == 2


def divergence(parts: Sequence[Summand], sign: int) -> list[Summand]:
    """Return the terms of a normal distribution's divergence from a fixed one that a loss grows with, or falls with.

    These are a variance and, the other way, its logarithm: exp(logvar) - logvar, or var - log(var); and a square.
    """
    mine = [part for part in parts if part.sign == sign and part.ends]
    turned = [part for part in parts if part.sign == -sign]
    for part in mine:
        is_exp = node_name(part.node) == "ExpBackward0"
        inner = _core(before(part.node)) if is_exp else _core(part.node) if _is_square(part.node) else None
        if inner is None:
            continue
        found = [it for it in turned if _is_logarithm(it.node, inner, written=not is_exp)]
        if not is_exp and node_name(inner) == "ExpBackward0":  # the square of a scale that is kept by its logarithm
            own = _core(before(inner))
            found += [it for it in turned if own is not None and _core(it.node) is own]
        means = [it for it in mine if it is not part and _is_square(it.node)]
        if found and means:
            return [part, found[0], means[0]]
    return []


def _is_logarithm(node: LiveNode, inner: LiveNode, *, written: bool) -> bool:
    if written:
        return node_name(node) == "LogBackward0" and _core(before(node)) is inner
    return _core(node) is inner


def _core(node: LiveNode | None) -> LiveNode | None:
    """Return what a value is a multiple or a power of."""
    for _ in range(_DEEP):
        node = through_views(node)
        if node is None or not node_name(node).startswith(_SCALES):
            break
        first = before(node)
        if first is not None and before(node, 1) not in (None, first):
            break
        node = first if first is not None else before(node, 1)
    return node


def similar(node: LiveNode) -> bool:
    """Say whether a term is a product of two values of length 1, number by number: summed, a cosine."""
    if node_name(node) != "MulBackward0":
        return False
    sides = [before(node, at) for at in range(2)]
    made = [it for it in sides if it is not None]
    if len(made) == 2:
        return all(map(_is_unit, made))
    factor = constant_of(node)
    return len(made) == 1 and _is_unit(made[0]) and factor is not None and _has_unit_rows(factor)


def _is_unit(node: LiveNode) -> bool:
    """Say whether a value is divided by its own length."""
    quotient = through_views(node)
    if quotient is None or node_name(quotient) != "DivBackward0":
        return False
    length = through_views(before(quotient, 1))
    while length is not None and node_name(length).startswith(("Clamp", "Sqrt", "Sum", "Add")):
        length = through_views(before(length))
    return length is not None and node_name(length).startswith(("LinalgVectorNorm", "Norm", "Pow"))


def _has_unit_rows(factor: torch.Tensor) -> bool:
    if not factor.dim() or not factor.is_floating_point():
        return False
    lengths = (factor.norm(dim=at) for at in {1 if factor.dim() > 1 else 0, factor.dim() - 1})
    return any(bool(((it - 1).abs() < _TINY).all()) for it in lengths)


def fit_sign(node: LiveNode) -> int:
    """Return 1 for a term that grows with a squared or absolute distance from a value, -1 for one that falls with it.

    0 is for any other, and for a distance from what is itself computed with a graph: a sample that was drawn with one.
    """
    sign, top = 1, before(node) if node_name(node) == "DivBackward0" else node
    while (top := through_views(top)) is not None and node_name(top) == "NegBackward0":
        sign, top = -sign, before(top)
    if top is None or not (_is_square(top) or node_name(top).startswith("Abs")):
        return 0
    inner = _core(before(top))
    if inner is None or not node_name(inner).startswith(("Sub", "Rsub")):
        return sign
    return 0 if before(inner) is not None and before(inner, 1) is not None else sign
