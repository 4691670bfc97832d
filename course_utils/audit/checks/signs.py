"""A policy that is trained away from its rewards: log-probabilities times rewards, minimised."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import ClassVar

from course_utils.audit.check import Check, Found
from course_utils.audit.events import Pass, before, node_behind, number_of, saved_value, through_views
from course_utils.audit.expressions import factors_at
from course_utils.audit.lines import Spot
from course_utils.audit.mentions import key_lines
from course_utils.audit.source import text_at, tree_of
from course_utils.explain.source import called
from course_utils.graph.trace import LiveNode, node_name

_PASSES, _MOST = 4, 200  # passes that are looked at, and nodes and products of each
_TIMES = 2
_REWARD = re.compile(r"^(R|G|ret|rets|rew|rews|adv|advs|\w*(reward|advantage)\w*|(\w+_)?returns?)$")
_LIKELIHOOD = re.compile(r"\blog_?probs?\(|\blog_softmax\(|\.log\(\)|\btorch\.log\(")
_SUMS = ("MeanBackward", "SumBackward", "AddBackward", "StackBackward", "CatBackward")
_NEGATIVE = ("NllLoss", "BinaryCrossEntropy")  # of a log-probability
_CASTS = frozenset({"tensor", "as_tensor", "detach", "to", "float", "unsqueeze", "squeeze", "view", "reshape", "item"})


class Signs(Check):
    """The way from a loss to a product of a log-probability and a reward, and the signs along it."""

    codes: ClassVar = ("reward-minimised",)

    def __init__(self, *args: object) -> None:
        super().__init__(*args)  # type: ignore[arg-type]
        self._passes = 0
        self._signs: dict[Spot, list[int]] = {}

    def pass_begins(self, event: Pass) -> None:
        if self.recorder.operations is None or not event.accumulate or self._passes >= _PASSES:
            return
        self._passes += 1
        root = node_behind(event.outputs[0]) if len(event.outputs) == 1 else None
        for product, sign in _products(root):
            spot = self.recorder.lines.of(number_of(product))
            kept = _reward_at(spot) if spot is not None else 0
            likely = self._likelihood(product) if kept else 0
            if spot is not None and likely:
                self._signs.setdefault(spot, []).append(sign * kept * likely)

    def _likelihood(self, product: LiveNode) -> int:
        """Return 1 if a product's other side is a log-probability, -1 if it is one's negative, 0 if it is neither."""
        sign, node = 1, next((to for to, _ in product.next_functions if to is not None), None)
        while node is not None:
            name = node_name(node)
            if name.startswith(_NEGATIVE):
                return -sign
            spot = self.recorder.lines.of(number_of(node))
            if name == "NegBackward0":
                sign = -sign
            elif spot is not None and _LIKELIHOOD.search(text_at(spot)):
                return sign
            elif through_views(node) is node and not name.startswith(_SUMS):
                return 0
            node = before(node)
        return 0

    def found(self) -> Iterator[Found]:
        for spot, signs in self._signs.items():
            if len(signs) < _TIMES or set(signs) != {1} or not self.clock.steps or key_lines(spot.file, "maximize"):
                continue
            yield self.say(
                "reward-minimised",
                spot,
                "the loss grows with log-probability times reward: each step makes what was rewarded less likely",
                "An optimizer goes downhill. The gradient of expected reward is that of log-probability times reward, "
                "and to climb it the loss has to be its negative.",
                "loss = -(log_prob * reward).mean()",
                certain=False,
                times=len(signs),
            )


def _products(root: LiveNode | None) -> Iterator[tuple[LiveNode, int]]:
    """Yield the products with a constant that a loss is a sum of, each with its sign."""
    waiting = [(root, 1)]
    looked = 0
    while waiting and looked < _MOST:
        node, sign = waiting.pop()
        node, looked = through_views(node), looked + 1
        if node is None:
            continue
        name = node_name(node)
        if name == "NegBackward0":
            waiting.append((before(node), -sign))
        elif name in ("SubBackward0", "RsubBackward1"):
            first, second = (sign, -sign) if name == "SubBackward0" else (-sign, sign)
            waiting += [(before(node), first), (before(node, 1), second)]
        elif name.startswith(_SUMS):
            waiting += [(to, sign) for to, _ in node.next_functions]
        elif name == "DivBackward0" and before(node) is not None and before(node, 1) is None:
            waiting += _scaled(node, sign)
        elif name == "MulBackward0" and sum(to is not None for to, _ in node.next_functions) == 1:
            yield node, sign
            waiting += _scaled(node, sign)


def _scaled(node: LiveNode, sign: int) -> list[tuple[LiveNode | None, int]]:
    """Return what is multiplied or divided by one number, with its sign; nothing where it is by several numbers."""
    factor = saved_value(node, "other" if before(node) is not None else "self")
    if factor is None or factor.numel() != 1:
        return []
    return [(to, sign if factor.item() > 0 else -sign) for to, _ in node.next_functions]


@lru_cache(maxsize=256)
def _reward_at(spot: Spot) -> int:
    """Return with what sign a line multiplies something by a reward: 1 or -1; 0 where it does not, or nobody can tell.

    The names tell. One that is somewhere computed as a reward's negative, or by taking a reward away, says nothing.
    """
    signs = [sign for part in factors_at(spot) if (sign := _reward(part))]
    tree = tree_of(spot.file)
    every = list(ast.walk(tree)) if tree else []
    turned = any(isinstance(node, ast.Assign) and _names(node.targets) and _is_turned(node.value) for node in every)
    return signs[0] if len(signs) == 1 and not turned else 0


def _reward(node: ast.expr) -> int:
    """Return 1 for an expression that grows with a reward, -1 for one that falls, 0 for any other."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return -_reward(node.operand)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Sub | ast.Div):
        return 0 if _is_turned(node) else _reward(node.left)
    if isinstance(node, ast.Call):
        method = node.func if isinstance(node.func, ast.Attribute) else None
        inside = [method.value] if method and ast.unparse(method.value) != "torch" else node.args[:1]
        return _reward(inside[0]) if called(node) in _CASTS and inside else 0
    if isinstance(node, ast.Subscript):
        return _reward(node.value)
    return int(bool(_names([node])))


def _is_turned(value: ast.expr) -> bool:
    """Say whether an expression takes a reward's negative, or takes a reward from something that is none."""
    return any(
        isinstance(part.op, ast.USub) and _speaks_of(part.operand)
        if isinstance(part, ast.UnaryOp)
        else isinstance(part.op, ast.Sub) and _speaks_of(part.right) and not _speaks_of(part.left)
        for part in ast.walk(value)
        if isinstance(part, ast.UnaryOp | ast.BinOp)
    )


def _speaks_of(node: ast.expr) -> bool:
    return _names([*ast.walk(node)])


def _names(nodes: Sequence[ast.AST]) -> bool:
    """Say whether any of these names or attributes stands for a reward."""
    named = (node.id if isinstance(node, ast.Name) else getattr(node, "attr", "") for node in nodes)
    return any(_REWARD.match(name) for name in named)
