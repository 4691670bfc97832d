"""Noise that is scaled by a variance: std = exp(logvar), where the loss takes exp(logvar) for the variance."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import ClassVar, TypeAlias

from course_utils.audit.check import Check, Found
from course_utils.audit.events import Pass, before, constant_of, node_behind, number_of, through_views
from course_utils.audit.factors import SCALES, multiplier
from course_utils.audit.lines import Spot
from course_utils.graph.trace import LiveNode, node_name

_PASSES, _MOST = 3, 3000  # passes that are looked at, and nodes of a graph
_TIMES = 2
_SUMS = ("MeanBackward", "SumBackward", "AddBackward", "SubBackward", "RsubBackward", "NegBackward")

_Output: TypeAlias = tuple[LiveNode, int]


class Spreads(Check):
    """Which powers of exp(x) scale the noise that is drawn, and which stand beside x in the loss."""

    codes: ClassVar = ("variance-as-std",)

    def __init__(self, *args: object) -> None:
        super().__init__(*args)  # type: ignore[arg-type]
        self._passes = 0
        self._times: Counter[Spot] = Counter()

    def pass_begins(self, event: Pass) -> None:
        if self.recorder.operations is None or not event.accumulate or self._passes >= _PASSES:
            return
        self._passes += 1
        if len(event.graph.inner) > _MOST or not any(node_name(it) == "ExpBackward0" for it in event.graph.inner):
            return
        plain, variances = _terms(node_behind(event.outputs[0]))
        told: set[Spot] = set()
        for node in event.graph.inner:
            grown = _noise_scaled(node) if node_name(node) == "MulBackward0" else None
            if grown is None:
                continue
            base, power = _exponent(grown)
            # A standard deviation is the root of the variance: half of what stands in its exponent.
            spot = self.recorder.lines.of(number_of(grown))
            if base in plain and variances.get(base) == power and spot is not None:
                told.add(spot)
        self._times.update(told)

    def found(self) -> Iterator[Found]:
        for spot, times in self._times.items():
            if times >= _TIMES:
                yield self.say(
                    "variance-as-std",
                    spot,
                    "the noise is scaled by what the loss takes for the variance: its root is missing",
                    "In the loss, exp(x) - x is the term of a Gaussian whose variance is exp(x). A sample of it is "
                    "mean + std * noise, and std is the root of the variance: exp(0.5 * x).",
                    "std = torch.exp(0.5 * logvar)",
                    certain=False,
                    times=times,
                )


def _exponent(node: LiveNode) -> tuple[_Output, float]:
    """Return of an exp what its exponent is a multiple of, and how many times."""
    power: float = 1.0
    to, output = node.next_functions[0]
    while to is not None:
        if node_name(to) in SCALES:
            factor = multiplier(to)
            if factor is None:
                break
            power *= factor
            to, output = next(edge for edge in to.next_functions if edge[0] is not None)
        elif node_name(to) == "NegBackward0":
            power = -power
            to, output = to.next_functions[0]
        else:
            break
    return (to, output), power


def _noise_scaled(node: LiveNode) -> LiveNode | None:
    """Return the exp that a product multiplies by noise: by numbers of both signs that have no graph."""
    edges = [to for to, _ in node.next_functions]
    if sum(to is not None for to in edges) != 1:
        return None
    noise = constant_of(node)
    grown = through_views(next(to for to in edges if to is not None))
    if noise is None or noise.numel() < 2 or grown is None or node_name(grown) != "ExpBackward0":
        return None
    return grown if bool((noise > 0).any()) and bool((noise < 0).any()) else None


def _terms(root: LiveNode | None) -> tuple[set[_Output], dict[_Output, float]]:
    """Return what stands in a loss as it is, and what in an exponent, with how many times it stands there."""
    plain: set[_Output] = set()
    grown: dict[_Output, float] = {}
    waiting, looked = [(root, 0, 1.0)], 0
    while waiting and looked < 500:
        node, output, power = waiting.pop()
        looked += 1
        if node is None:
            continue
        name = node_name(node)
        plain.add((node, output))
        if name == "ExpBackward0":
            base, times = _exponent(node)
            grown[base] = max(grown.get(base, 0.0), times * power, key=abs)
        elif name == "PowBackward0" and node_name(before(node)) == "ExpBackward0":
            waiting.append((before(node), 0, float(node._saved_exponent)))
        elif name.startswith(_SUMS) or through_views(node) is not node or multiplier(node) is not None:
            waiting += [(to, at, 1.0) for to, at in node.next_functions]
    return plain, grown
