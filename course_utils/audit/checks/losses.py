"""Losses of the wrong thing: a softmax or sigmoid too many, a logarithm too few, shapes that broadcast."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import torch

from course_utils.audit.check import Check, Found
from course_utils.audit.events import Op, Pass, before, node_behind, number_of, saved_value, through_views
from course_utils.audit.lines import Spot
from course_utils.audit.source import bound_at, calls, text_at
from course_utils.graph.trace import LiveNode, node_name

_SOFT = {"SoftmaxBackward0": "softmax", "SigmoidBackward0": "sigmoid"}
_COMPARES = frozenset(
    {"mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss", "binary_cross_entropy", "binary_cross_entropy_with_logits"}
)
_DIFFERENCES = frozenset({"sub", "rsub", "subtract"})
_PRODUCTS = frozenset({"mul", "multiply"})

# Between a difference and a loss: elementwise functions and reductions.
_TAIL = (
    "Mean",
    "Sum",
    "Pow",
    "Abs",
    "Mul",
    "Div",
    "Neg",
    "Sqrt",
    "Add",
    "Square",
    "Clamp",
    "Where",
    "Log",
    "Exp",
    "Huber",
    "Rsub",
    "Softplus",
    "LogSigmoid",
)
_TAIL_NODES = 40

_PICKING = ("Neg", "Mean", "Sum", "Gather", "Index", "Select", "Squeeze")
_LIKELIHOOD = re.compile(r"nll|log_?(lik|prob)|cross_?ent|xent|(^|_)ce($|_)", re.IGNORECASE)


@dataclass
class _Tally:
    code: str
    spot: Spot | None
    words: tuple[str, str, str]
    times: int = 0


class Losses(Check):
    """What the last functions before a loss are, and which shapes it compares."""

    codes: ClassVar = ("softmax-twice", "sigmoid-twice", "log-missing", "broadcast-loss")
    functions: ClassVar = _COMPARES | _DIFFERENCES | _PRODUCTS | {"kl_div"}

    def __init__(self, *args: object) -> None:
        super().__init__(*args)  # type: ignore[arg-type]
        self._tallies: dict[tuple[str, Spot | None], _Tally] = {}
        self._differences: deque[tuple[range, Spot | None, Any, Any]] = deque(maxlen=200)

    def function(self, event: Op) -> None:
        if event.name == "kl_div":
            given = event.argument(0, "input")
            if isinstance(given, torch.Tensor) and given.requires_grad:
                made = through_views(given.grad_fn)
                soft = made is not None and node_name(made) == "SoftmaxBackward0"
                self._logarithm(
                    given, "kl_div", (self._where(made, "softmax") if soft and made else None) or event.spot
                )
            return
        one = event.argument(0, "input")
        other = event.argument(1, "target" if event.name in _COMPARES else "other")
        if not isinstance(one, torch.Tensor) or not isinstance(other, torch.Tensor) or one.shape == other.shape:
            return
        try:
            both = torch.broadcast_shapes(one.shape, other.shape)
        except RuntimeError:
            return
        if both.numel() <= max(one.numel(), other.numel()):
            return
        if event.name in _COMPARES:
            self._broadcast(event.spot, one, other, both)
        elif event.name in _PRODUCTS and not (one.numel() == other.numel() and one.dim() + other.dim() == 3):
            return  # no column against a row of as many: an outer product of unlike things is often meant
        elif one.dim() != other.dim() and one.requires_grad != other.requires_grad:
            spot = event.spot
            text = text_at(spot) if spot else ""
            if "None" not in text and "unsqueeze" not in text:
                self._differences.append((range(event.began, event.ended), spot, one.shape, other.shape))

    def _broadcast(self, spot: Spot | None, one: Any, other: Any, both: Any, product: bool = False) -> None:
        shapes = f"{tuple(one.shape if hasattr(one, 'shape') else one)}", f"{tuple(getattr(other, 'shape', other))}"
        if product:
            self._count(
                "broadcast-loss",
                spot,
                f"the loss multiplies shapes {shapes[0]} and {shapes[1]}: {both.numel()} products",
                "Both are stretched to the same shape, so each entry of one is multiplied by every entry of the other: "
                "none is left with its own, as an action with its return or a score with its label.",
                "column.squeeze(1) * row  # both of one shape, as log-probabilities and returns",
            )
            return
        self._count(
            "broadcast-loss",
            spot,
            f"the loss compares shapes {shapes[0]} and {shapes[1]}: {both.numel()} differences",
            "Both are stretched to the same shape, so each prediction is compared with every target. The best answer "
            "to all of them at once is their mean.",
            "target = target.view_as(prediction)  # or prediction.squeeze(1)",
        )

    def pass_begins(self, event: Pass) -> None:
        if self.recorder.operations is None or not event.accumulate:
            return
        for node in event.graph.inner:
            name = node_name(node)
            if name in ("LogSoftmaxBackward0", "BinaryCrossEntropyWithLogitsBackward0"):
                self._twice(node, name, event)
            elif name == "LogBackward0":
                first = through_views(before(node))
                if first is not None and node_name(first) == "SoftmaxBackward0":
                    self._twice(first, "LogSoftmaxBackward0", event)
            elif name in ("NllLossBackward0", "NllLoss2DBackward0"):
                self._logarithm(
                    saved_value(node, "self"), "nll_loss", self.recorder.lines.of(number_of(node)) or event.spot
                )
        if self._differences:
            self._tail(event)
        self._picked(event)

    def _picked(self, event: Pass) -> None:
        """Find a loss that is minus the probabilities of the targets, and is named as their logarithm."""
        node = node_behind(event.outputs[0]) if event.outputs else None
        spot = self.recorder.lines.of(number_of(node)) if node is not None else None
        passed: set[str] = set()
        while node is not None and (through_views(node) is not node or node_name(node).startswith(_PICKING)):
            passed.add(node_name(node))
            node = before(node)
        picked = {"GatherBackward0", "IndexBackward0"} & passed and "NegBackward0" in passed
        if node is not None and picked and node_name(node) == "SoftmaxBackward0" and spot is not None:
            name = bound_at(spot)
            if _LIKELIHOOD.search(name):
                self._count(
                    "log-missing",
                    spot,
                    f"{name} is minus a probability: the logarithm is missing",
                    "It lies between -1 and 0. Minus the logarithm grows without bound where a target is thought "
                    "impossible; this hardly pushes there, as a softmax is flat near 0.",
                    "F.cross_entropy(scores, target)  # or log_softmax before picking",
                )

    def _twice(self, node: LiveNode, name: str, event: Pass) -> None:
        first = through_views(before(node))
        kind = _SOFT.get(node_name(first)) if first is not None else None
        if kind is None or first is None:
            return
        inside = "log-softmax" if name.startswith("Log") else "sigmoid"
        loss = "the cross-entropy" if name.startswith("Log") else "binary_cross_entropy_with_logits"
        spot = self._where(first, kind) or self.recorder.lines.of(number_of(node)) or event.spot
        self._count(
            f"{kind}-twice",
            spot,
            f"{loss} gets the result of a {kind}, and has a {inside} inside",
            "It expects scores. What comes out of this line lies between 0 and 1, so the second function is nearly "
            "flat on it: confident mistakes hardly get a gradient, and the loss cannot come near 0.",
            f"leave out the {kind} in training: the loss takes the scores as they are",
        )

    def _where(self, node: LiveNode, kind: str) -> Spot | None:
        """Return the line that calls the function; for a module inside another the line that makes it."""
        spot: Spot | None = self.recorder.lines.of(number_of(node))
        if spot is None or kind in text_at(spot).lower():
            return spot
        made = calls(spot.file, rf"\b{kind.capitalize()}$")
        return made[-1] if made else spot

    def _logarithm(self, value: torch.Tensor | None, loss: str, spot: Spot | None) -> None:
        if value is None or not bool((value.detach() > 1e-4).any()):
            return
        self._count(
            "log-missing",
            spot,
            f"{loss} gets numbers above 0: these are no log-probabilities",
            f"{loss} takes no logarithm. Given probabilities or scores it only pushes one number up: the loss falls "
            "below 0 or stalls, and is no likelihood.",
            "F.cross_entropy(scores, target)" if loss == "nll_loss" else "F.kl_div(scores.log_softmax(dim=1), ...)",
        )

    def _tail(self, event: Pass) -> None:
        """Find differences of unlike shapes between which and the loss only elementwise functions and sums stand."""
        queue = [node for node in map(node_behind, event.outputs) if node is not None]
        for node in queue:
            if len(queue) > _TAIL_NODES:
                break
            number = number_of(node)
            for made, spot, one, other in list(self._differences):
                if number in made and node_name(node).startswith(("Sub", "Rsub", "Mul")):
                    both = torch.broadcast_shapes(one, other)
                    self._broadcast(spot, one, other, both, node_name(node).startswith("Mul"))
            if node_name(node).startswith(_TAIL):
                queue += [to for to, _ in node.next_functions if to is not None and to not in queue]
        self._differences.clear()

    def _count(self, code: str, spot: Spot | None, *words: str) -> None:
        tally = self._tallies.setdefault((code, spot), _Tally(code, spot, words))  # type: ignore[arg-type]
        tally.times += 1

    def found(self) -> Iterator[Found]:
        for tally in self._tallies.values():
            if tally.times >= 2:
                yield self.say(tally.code, tally.spot, *tally.words, times=tally.times)
