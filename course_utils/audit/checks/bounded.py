"""Results of a model that cannot get where the loss wants them: a last ReLU, tanh or sigmoid bounds them."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, ClassVar

import torch

from course_utils.audit.check import Check, Found
from course_utils.audit.classes import made_in_class
from course_utils.audit.events import Op, Pass, before, number_of, through_views
from course_utils.audit.lines import Spot
from course_utils.audit.source import bound_at, calls, nearest, statement, text_at
from course_utils.graph.trace import LiveNode, node_name

_INF = float("inf")
_RANGES = {
    "ReluBackward0": ("ReLU", 0.0, _INF),
    "SoftplusBackward0": ("Softplus", 0.0, _INF),
    "TanhBackward0": ("Tanh", -1.0, 1.0),
    "SigmoidBackward0": ("Sigmoid", 0.0, 1.0),
}
_ENTROPY, _BINARY = "the cross-entropy", "binary_cross_entropy_with_logits"
_ERRORS = frozenset({"mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss"})
_DIFFERENCES = frozenset({"sub", "rsub"})
_UNREACHED = 0.1  # so much of the targets' variance lies beyond the range, or it is noise
_TIMES, _PASSES, _LOOKS, _TAIL = 3, 6, 12, 12


@dataclass
class _Tally:
    kind: str
    loss: str
    shares: list[float] = field(default_factory=list)
    times: int = 0


class Bounded(Check):
    """Which function is a model's last, and what its loss compares its results with."""

    codes: ClassVar = ("output-bounded",)
    functions: ClassVar = _ERRORS | _DIFFERENCES

    def __init__(self, *args: object) -> None:
        super().__init__(*args)  # type: ignore[arg-type]
        self._tallies: dict[Spot, _Tally] = {}
        self._looked: Counter[Spot] = Counter()
        self._passes = 0
        self._compared: list[tuple[range, tuple[str, int], str, float]] = []  # no nodes: they would keep a graph

    def function(self, event: Op) -> None:
        one = event.argument(0, "input")
        other = event.argument(1, "target" if event.name in _ERRORS else "other")
        if not isinstance(one, torch.Tensor) or not isinstance(other, torch.Tensor) or one.shape != other.shape:
            return
        if one.requires_grad == other.requires_grad or one.numel() < 2:
            return
        given, target = (one, other) if one.requires_grad else (other, one)
        made = through_views(given.grad_fn)
        if made is None or node_name(made) not in _RANGES:
            return
        spot = event.spot
        if spot is None or self._looked[spot] >= _LOOKS:
            return
        self._looked[spot] += 1
        share = _unreached(target, *_RANGES[node_name(made)][1:])
        last = node_name(made), number_of(made)
        self._compared.append((range(event.began, event.ended), last, event.name, share))

    def pass_begins(self, event: Pass) -> None:
        compared, self._compared = self._compared, []
        if self.recorder.operations is None or not event.accumulate:
            return
        if self._passes < _PASSES:
            self._passes += 1
            for node in event.graph.inner:
                scores, loss = _scores(node)
                name = node_name(scores) if scores is not None else ""
                if scores is not None and name in _RANGES and name != "SigmoidBackward0" and not _is_raised(scores):
                    self._count(name, number_of(scores), loss)
        if compared:
            near = _near(event)
            for made, last, loss, share in compared:
                if any(number in near for number in made):
                    self._count(*last, loss if loss in _ERRORS else "the loss", share)

    def _count(self, name: str, number: int, loss: str, share: float = 1.0) -> None:
        kind = _RANGES[name][0]
        spot = self.recorder.lines.of(number)
        if spot is not None and kind.lower() not in text_at(spot).lower():
            pattern = rf"\b{kind}$"
            inside = made_in_class(spot, pattern)
            made = inside[-1] if inside else nearest(calls(spot.file, pattern), spot) or spot
            spot = spot if _is_called(made, kind, text_at(spot)) else made
        if spot is not None:
            tally = self._tallies.setdefault(spot, _Tally(kind, loss))
            tally.times += 1
            tally.shares.append(share)

    def found(self) -> Iterator[Found]:
        for spot, tally in self._tallies.items():
            if tally.times < _TIMES or min(tally.shares) < _UNREACHED:
                continue
            low, high = next((low, high) for kind, low, high in _RANGES.values() if kind == tally.kind)
            bounds = f"at least {low:g}" if high == _INF else f"between {low:g} and {high:g}"
            if tally.loss in (_ENTROPY, _BINARY):
                why = (
                    f"It expects scores of any size and sign. After {tally.kind} they are {bounds}"
                    + (", and one that was below 0 passes no gradient on" if tally.kind == "ReLU" else "")
                    + ": what the model holds for unlikely cannot be said any more."
                )
                headline = f"{tally.loss} gets the result of {tally.kind}: scores that are {bounds}"
            else:
                headline = f"{tally.kind} keeps the results {bounds}, and the targets lie beyond"
                why = (
                    f"At least {min(tally.shares):.0%} of the targets' variance in a batch lies where no result of the "
                    "model can get. The loss stays above that, and pushes the last function to its end, where it "
                    "passes hardly a gradient on."
                )
            yield self.say(
                "output-bounded",
                spot,
                headline,
                why,
                f"leave out the last {tally.kind}"
                + ("" if tally.loss in (_ENTROPY, _BINARY) else ", or bring the targets into its range"),
                times=tally.times,
            )


def _is_called(made: Spot, kind: str, text: str) -> bool:
    """Say whether a line calls a part by its own name: one that `self.act = nn.ReLU()` made."""
    line = statement(made)
    value = line.value if isinstance(line, ast.Assign) else None
    own = isinstance(value, ast.Call) and ast.unparse(value.func).endswith(kind)
    return own and f"{bound_at(made)}(" in text and bound_at(made).startswith("self.")


def _scores(node: LiveNode) -> tuple[LiveNode | None, str]:
    """Return what made the scores that a cross-entropy is given, and the loss; None where a node is none."""
    name = node_name(node)
    if name == "BinaryCrossEntropyWithLogitsBackward0":
        return through_views(before(node)), _BINARY
    soft = through_views(before(node)) if name in ("NllLossBackward0", "NllLoss2DBackward0") else None
    if soft is None or node_name(soft) != "LogSoftmaxBackward0":
        return None, ""
    return through_views(before(soft)), _ENTROPY


def _is_raised(node: LiveNode) -> bool:
    """Say whether a ReLU bounds what is never below 0 anyway: a square, an absolute value or a distance."""
    first = through_views(before(node))
    return first is not None and node_name(first).startswith(("Pow", "Abs", "Norm", "LinalgV"))


def _unreached(target: torch.Tensor, low: float, high: float) -> float:
    """Return which share of the targets' variance lies beyond a range."""
    values = target.detach().float()
    over = (values - values.clamp(low, high)).square().mean()
    return float(over / values.var(correction=0).clamp_min(1e-12)) if bool(values.isfinite().all()) else 0.0


def _near(event: Pass) -> set[int]:
    """Return the numbers of the nodes between a loss and its differences."""
    queue: list[Any] = [getattr(out, "grad_fn", None) for out in event.outputs]
    found: set[int] = set()
    for node in queue:
        if node is not None and len(found) < 4 * _TAIL:
            found.add(number_of(node))
            passes = node_name(node).startswith(("Mean", "Sum", "Pow", "Abs", "Mul", "Div", "Add", "Sqrt", "Square"))
            queue += [to for to, _ in node.next_functions] if passes else []
    return found
