"""Terms of a loss with the wrong sign: a quantile's difference, a penalty without a size, a change of volume."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import ClassVar

import torch

from course_utils.audit.check import Check, Found
from course_utils.audit.events import Pass, before, node_behind, number_of, through_views
from course_utils.audit.factors import multiplier
from course_utils.audit.lines import Spot
from course_utils.audit.pinballs import difference_in, weighs_positive
from course_utils.audit.reading import scopes_of
from course_utils.audit.reversals import reversals_kept
from course_utils.audit.source import function_around, source_at, text_at
from course_utils.audit.summands import Summand, summands
from course_utils.graph.trace import LiveNode, node_name

_PASSES, _TIMES = 6, 3
_VOLUME = re.compile(r"log_?(abs_?)?(det|jac)|ldj|jacobian|logabsdet", re.I)
_Key = tuple[str, int]


class Misdirected(Check):
    """The signs with which a loss grows with its terms, in the first passes."""

    codes: ClassVar = ("quantile-reversed", "penalty-signed", "volume-reversed", "reversal-missing")

    def __init__(self, *args: object) -> None:
        super().__init__(*args)  # type: ignore[arg-type]
        self._passes = 0
        self._functions: set[str] = set()  # names of nodes
        self._told: Counter[tuple[str, Spot, str]] = Counter()

    def pass_begins(self, event: Pass) -> None:
        if self.recorder.operations is None or not event.accumulate or self._passes >= _PASSES:
            return
        root = node_behind(event.outputs[0]) if len(event.outputs) == 1 else None
        if root is None:
            return
        self._passes += 1
        self._functions.update(map(node_name, event.graph.inner))
        terms = summands(root)
        for term in terms:
            if term.ends and term.scale > 0:
                self._quantile(term.node)
        self._penalties(terms)
        self._volumes(terms, event)

    def _line(self, node: LiveNode) -> Spot | None:
        spot: Spot | None = self.recorder.lines.of(number_of(node))
        return spot

    def _quantile(self, node: LiveNode) -> None:
        difference = difference_in(node)
        spot = self._line(node) if difference is not None else None
        if difference is None or spot is None:
            return
        learnt = [to is not None for to, _ in difference.next_functions]
        weight = weighs_positive(spot)
        if (weight, learnt) in (("q", [True, False]), ("1 - q", [False, True])):
            self._told["quantile-reversed", self._line(difference) or spot, weight] += 1

    def _penalties(self, terms: list[Summand]) -> None:
        """Note sums of weights as they are, beside other terms, where some of the weights are below 0."""
        others = any(it.ends and not hasattr(it.node, "variable") for it in terms)
        seen: set[Spot] = set()
        for term in terms if others else ():
            for to, _ in () if term.ends else term.node.next_functions:
                leaf = getattr(through_views(to), "variable", None)
                if isinstance(leaf, torch.nn.Parameter) and term.sign and self._is_weight(leaf):
                    spot = self._line(term.node)
                    if spot is not None and spot not in seen:
                        seen.add(spot)
                        self._told["penalty-signed", spot, "grow" if term.sign < 0 else "fall"] += 1

    def _is_weight(self, leaf: torch.nn.Parameter) -> bool:
        slot = self.book.find(leaf)
        named = slot is not None and slot.owner is not None and slot.name.rpartition(".")[2] == "weight"
        return named and leaf.dim() >= 2 and bool((leaf.detach() < 0).any())

    def _volumes(self, terms: list[Summand], event: Pass) -> None:
        """Note what an exponential scales by and the loss has as a term, both with signs that fall without a bound."""
        linear = {_key(it.node): it for it in terms if it.ends and it.sign}
        powers: dict[_Key, set[int]] = {}
        for node in event.graph.inner if linear else ():
            if node_name(node) == "ExpBackward0":
                base, sign = _base(before(node))
                if base is not None and _key(base) in linear:
                    powers.setdefault(_key(base), set()).add(sign)
        for key, signs in powers.items():
            if signs == {linear[key].sign}:
                self._volume(linear[key], terms)

    def _volume(self, term: Summand, terms: list[Summand]) -> None:
        """Tell of a term where the line that sums it, or one that it is added on, speaks of a determinant."""
        parents = [it.node for it in terms if not it.ends and self._leads_to(it.node, term.node)]
        lines = [spot for node in parents if (spot := self._line(node)) is not None]
        named = [spot for spot in lines if _VOLUME.search(source_at(spot) or text_at(spot))]
        scope = function_around(named[0]) if named else None
        if scope is not None:
            self._told["volume-reversed", min(named), "-" if term.sign < 0 else "+"] += 1

    def _leads_to(self, node: LiveNode, end: LiveNode) -> bool:
        return any(to is not None and _key(_base(to)[0] or to) == _key(end) for to, _ in node.next_functions)

    def found(self) -> Iterator[Found]:
        if self.clock.steps:
            yield from self._reversals()
        yield from self._signs()

    def _reversals(self) -> Iterator[Found]:
        for name, spot in reversals_kept(scopes_of(self.recorder)):
            if f"{name}Backward" in self._functions:
                yield self.say(
                    "reversal-missing",
                    spot,
                    f"{name} hands the gradient on without a minus: what stands before it helps the adversary",
                    "Forward it changes nothing, and backward it is to turn the gradient round, so that the features "
                    "become such that the domain cannot be told by them. As it stands they are trained to tell it.",
                    "return -ctx.weight * grad, None",
                    certain=False,
                    times=self._passes,
                    names=(name,),
                )

    def _signs(self) -> Iterator[Found]:
        for (code, spot, what), times in self._told.items():
            if times < _TIMES:
                continue
            if code == "quantile-reversed":
                yield self.say(
                    code,
                    spot,
                    "the difference of a quantile's loss is the wrong way round: it learns the quantile 1 - q",
                    f"What is above 0 is weighed by {what}. It has to be what the target exceeds the prediction by, so "
                    "that for q = 0.9 a prediction that is too low costs nine times as much as one that is too high.",
                    "error = target - prediction",
                    certain=False,
                    times=times,
                )
            elif code == "penalty-signed":
                yield self.say(
                    code,
                    spot,
                    f"the sum of weights is a term of the loss as it is: the loss asks all of them to {what}",
                    "A penalty is to be smallest where weights are 0. A plain sum has no smallest value: its gradient "
                    "is the same for each weight, and pushes small and negative ones on.",
                    "penalty = sum(p.abs().sum() for p in model.parameters())",
                    certain=False,
                    times=times,
                )
            else:
                yield self.say(
                    code,
                    spot,
                    "the logarithm of the determinant has the wrong sign: the loss falls without a bound as the "
                    + ("scale" if what == "-" else "negative of the scale")
                    + " grows",
                    "What is multiplied by exp(-s) has a determinant whose logarithm is -s.sum(), and by exp(s) one of "
                    "s.sum(). With the other sign, mapping all data to one point is rewarded, and not paid for.",
                    "log_det = -s.sum(dim=1)  # for z = (x - t) * exp(-s)",
                    certain=False,
                    times=times,
                )


def _base(node: LiveNode | None) -> tuple[LiveNode | None, int]:
    """Return what something is a multiple of by one number, and with which sign."""
    node, sign = through_views(node), 1
    while node is not None:
        if node_name(node) == "NegBackward0":
            sign = -sign
        elif (factor := multiplier(node)) is not None:
            sign = sign if factor > 0 else -sign
        else:
            break
        node = through_views(before(node) or before(node, 1))
    return node, sign


def _key(node: LiveNode) -> _Key:
    variable = getattr(node, "variable", None)
    return ("leaf", id(variable)) if variable is not None else (node_name(node), number_of(node))
