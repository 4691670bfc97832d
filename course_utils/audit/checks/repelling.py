"""Pairs the wrong way round: what belongs together is pushed apart, and what does not is drawn near."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from functools import lru_cache
from typing import ClassVar, TypeAlias

import torch

from course_utils.audit.check import Check, Found
from course_utils.audit.events import Op, Pass, before, node_behind, number_of, saved_value, through_views
from course_utils.audit.expressions import assigned_value
from course_utils.audit.lines import Spot
from course_utils.audit.source import bound_at, statement
from course_utils.graph.trace import LiveNode, node_name

_TRIPLETS = frozenset({"triplet_margin_loss", "triplet_margin_with_distance_loss"})
_GOOD = re.compile(r"(^|_)(p|ap|pos|positives?|similar|chosen|preferred|winners?|relevant)(_|\d|$)")
_BAD = re.compile(r"(^|_)(n|an|neg|negatives?|dissimilar|rejected|dispreferred|losers?|irrelevant)(_|\d|$)")
# Among the arguments of a triplet these are clear as well; elsewhere a "diff" is a difference.
_SAME = re.compile(r"(^|_)(same|match(es|ing)?|close|near)(_|\d|$)")
_OTHER = re.compile(r"(^|_)(diff|different|others?|mismatch(ed|ing)?|unmatched|far)(_|\d|$)")
_NEAR = re.compile(r"score|sim(?!ple)|cos|logit|reward", re.IGNORECASE)
_FAR = re.compile(r"dist|(^|_)d(_|$)|(^|_)d(ap|an|p|n)(_|$)|energy", re.IGNORECASE)
_DISTANCES = ("NormBackward", "LinalgVectorNorm", "PowBackward", "AbsBackward", "SqrtBackward")
_INSIDE = ("AddBackward", "SumBackward", "PowBackward", "MeanBackward")  # between a root and a difference
_RISING = tuple(
    f"{name}Backward"
    for name in ("Mean", "Add", "Relu", "Clamp", "ClampMin", "Softplus", "Exp", "Sigmoid", "LogSigmoid", "Log", "Log1P")
)
_PASSES, _TIMES, _MOST = 6, 2, 60

_Joint: TypeAlias = tuple[LiveNode, int] | None  # a sum or a difference; of a difference, on which side


class Repelling(Check):
    """Which of two named sides a loss draws near, by its arguments or by the signs along the graph."""

    codes: ClassVar = ("positive-repelled",)
    functions: ClassVar = _TRIPLETS | {"margin_ranking_loss"}

    def __init__(self, *args: object) -> None:
        super().__init__(*args)  # type: ignore[arg-type]
        self._passes = 0
        self._times: Counter[tuple[Spot, str, str]] = Counter()

    def function(self, event: Op) -> None:
        spot = event.spot
        if spot is None:
            return
        if event.name in _TRIPLETS:
            given = _given(spot, ("anchor", "positive", "negative"))
            if len(given) == 3 and (_part(given[1], spot), _part(given[2], spot)) == (-1, 1):
                self._times[spot, given[2], given[1]] += 1
            return
        given = _given(spot, ("input1", "input2", "target"))
        target = event.argument(2, "target")
        if len(given) != 3 or not isinstance(target, torch.Tensor) or not target.numel():
            return
        larger = 1 if bool((target == 1).all()) else -1 if bool((target == -1).all()) else 0
        sides, kinds = [_side(it) for it in given[:2]], [_kind(it, spot) for it in given[:2]]
        if sides[0] * sides[1] == -1 and kinds[0] == kinds[1] and larger * sides[0] * kinds[0] == -1:
            good, bad = given[:2] if sides[0] == 1 else given[1::-1]
            self._times[spot, good, bad] += 1

    def pass_begins(self, event: Pass) -> None:
        if self.recorder.operations is None or not event.accumulate or self._passes >= _PASSES:
            return
        self._passes += 1
        ends: dict[int, tuple[str, Spot | None, int]] = {}
        terms = sorted(
            _terms(node_behind(event.outputs[0]) if event.outputs else None), key=lambda it: number_of(it[0])
        )
        made = [self.recorder.lines.of(number_of(node)) for node, _, _ in terms]
        for at, (node, sign, joined) in enumerate(terms):
            spot = self.recorder.lines.of(number_of(joined[0])) if joined else None
            name = _taken(spot)[joined[1]] if spot and joined and joined[1] >= 0 and _taken(spot) else _bound(made, at)
            side, near = _side_of(name, spot), _attracts(node, name)
            if side and near and (len(name) > 1 or not _side(name)):
                ends[side] = name, spot, -sign * near
        if ends.keys() == {1, -1}:
            (good, spot, drawn), (bad, _, pushed) = ends[1], ends[-1]
            if spot is not None and drawn == -1 and pushed == 1:
                self._times[spot, good, bad] += 1

    def found(self) -> Iterator[Found]:
        for (spot, good, bad), times in self._times.items():
            if times >= _TIMES and self.clock.steps:
                yield self.say(
                    "positive-repelled",
                    spot,
                    f"the loss moves {good} away and draws {bad} near",
                    "It falls when what is called positive gets farther, or is scored lower, and what is called "
                    "negative gets nearer. The two stand in each other's place.",
                    "F.triplet_margin_loss(anchor, positive, negative)  # or relu(d_positive - d_negative + margin), "
                    "and with scores relu(s_negative - s_positive + margin)",
                    certain=False,
                    times=times,
                    names=(good, bad),
                )


def _bound(made: list[Spot | None], at: int) -> str:
    """Return the name that a line binds to a term; of a line that binds several, the one at the term's place."""
    spot = made[at]
    names = re.findall(r"[\w.]+", bound_at(spot)) if spot is not None else []
    same = [number for number, it in enumerate(made) if it == spot]
    return names[0] if len(names) == 1 else names[same.index(at)] if len(names) == len(same) else ""


@lru_cache(maxsize=128)
def _taken(spot: Spot) -> tuple[str, ...]:
    """Return the names of both sides of the one difference of a positive and a negative that a line takes."""
    found = statement(spot)
    pairs = [
        (ast.unparse(it.left), ast.unparse(it.right))
        for it in (ast.walk(found) if found is not None else ())
        if isinstance(it, ast.BinOp) and isinstance(it.op, ast.Sub)
    ]
    fitting = [pair for pair in pairs if _side_of(pair[0], spot) * _side_of(pair[1], spot) == -1]
    return fitting[0] if len(fitting) == 1 and all(re.fullmatch(r"[\w.]+", it) for it in fitting[0]) else ()


@lru_cache(maxsize=128)
def _given(spot: Spot, names: tuple[str, ...]) -> tuple[str, ...]:
    """Return what the call with three arguments at a line is given, in the order of the parameters' names."""
    found = statement(spot)
    for node in ast.walk(found) if found is not None else ():
        if isinstance(node, ast.Call):
            keywords = {it.arg: it.value for it in node.keywords}
            given = [*node.args, *(keywords[name] for name in names[len(node.args) :] if name in keywords)]
            if len(given) >= 3:
                return tuple(ast.unparse(it) for it in given[:3])
    return ()


def _side(text: str) -> int:
    """Return 1 for what is called positive, -1 for what is called negative, 0 for anything else, or both."""
    words = re.findall(r"[A-Za-z_]\w*", text.lower())
    good, bad = (any(map(pattern.search, words)) for pattern in (_GOOD, _BAD))
    return good - bad


def _side_of(text: str, spot: Spot | None) -> int:
    """Return the side that a name says, or else the one that what it was assigned speaks of."""
    plain = re.fullmatch(r"[A-Za-z_]\w*", text)
    value = assigned_value(spot, text) if spot is not None and plain and not _side(text) else None
    return _side(text) or (_side(ast.unparse(value)) if value is not None else 0)


def _part(text: str, spot: Spot) -> int:
    """Return which part of a triplet an argument is called, as `_side` does; else what it was made of."""
    value = assigned_value(spot, text)
    for it in (text, ast.unparse(value) if value is not None else ""):
        words = re.findall(r"[A-Za-z_]\w*", it.lower())
        side = _side(it) or any(map(_SAME.search, words)) - any(map(_OTHER.search, words))
        if side:
            return side
    return 0


def _kind(text: str, spot: Spot) -> int:
    """Return 1 for what is the larger the nearer two are, -1 for a distance, 0 where neither is known."""
    value = assigned_value(spot, text)
    words = f"{text} {ast.unparse(value) if value is not None else ''}"
    near, far = bool(_NEAR.search(words)), bool(_FAR.search(words))
    return near - far


def _attracts(node: LiveNode, name: str) -> int:
    """Return 1 if a node makes similarities, -1 if it makes distances, 0 if neither is known."""
    kind = node_name(node)
    if kind == "CdistBackward0" or (kind.startswith(_DISTANCES) and _of_difference(node)):
        return -1
    if kind.startswith(_DISTANCES):
        return 0  # how large something is, as the goodness of a layer
    if kind in ("MulBackward0", "BmmBackward0", "MmBackward0") and all(
        it is not None and it.next_functions for it in (before(node), before(node, 1))
    ):
        return 1
    return int(bool(_NEAR.search(name)) and not _FAR.search(name))


def _of_difference(node: LiveNode) -> bool:
    """Say whether a norm or a square is that of a difference."""
    inner = through_views(before(node))
    while inner is not None and node_name(inner).startswith(_INSIDE):
        inner = through_views(before(inner))
    return inner is not None and node_name(inner) == "SubBackward0"


def _terms(root: LiveNode | None) -> Iterator[tuple[LiveNode, int, _Joint]]:
    """Yield what a loss is made of by functions that only rise or fall: each with its sign, and where it was joined."""
    waiting: list[tuple[LiveNode | None, int, _Joint]] = [(root, 1, None)]
    for _ in range(_MOST):
        node, sign, joined = waiting.pop() if waiting else (None, 0, None)
        node = through_views(node)
        if node is None:
            continue
        name = node_name(node)
        makers = [to for to, _ in node.next_functions if to is not None]
        if name == "NegBackward0":
            waiting.append((before(node), -sign, joined))
        elif name in ("SubBackward0", "RsubBackward1", "RsubBackward0"):
            first = -sign if name.startswith("Rsub") else sign
            ends = [(node, 0), (node, 1)] if len(makers) > 1 else [joined, joined]
            waiting += [(before(node), first, ends[0]), (before(node, 1), -first, ends[1])]
        elif name in ("MulBackward0", "DivBackward0") and len(makers) == 1 and before(node) is not None:
            factor = saved_value(node, "other")
            if factor is not None and factor.numel() and bool((factor >= 0).all() or (factor <= 0).all()):
                waiting.append((makers[0], sign if bool((factor >= 0).all()) else -sign, joined))
        elif name.startswith(_RISING) or name == "SumBackward0":
            added = (node, -1) if name.startswith("Add") and len(makers) > 1 else joined
            waiting += [(to, sign, added) for to in makers]
        elif name == "SumBackward1" and before(node) is not None:
            yield before(node), sign, joined
        else:
            yield node, sign, joined
