"""What loss functions are given that they do not take: rates for their logarithms, 0 and 1 for -1 and 1."""

from __future__ import annotations

import weakref
from collections import Counter
from collections.abc import Iterator
from typing import Any, ClassVar

import torch

from course_utils.audit.amiss import JUDGED, Amiss, amiss
from course_utils.audit.check import Check, Found
from course_utils.audit.events import Op, Pass, through_views
from course_utils.audit.hinges import HINGES, Hinges
from course_utils.audit.lines import Spot, in_module
from course_utils.audit.source import calls, function_around, loop_around, nearest
from course_utils.graph.trace import node_name

_SIGNED = {"cosine_embedding_loss": 2, "margin_ranking_loss": 2, "hinge_embedding_loss": 1, "soft_margin_loss": 1}
_POSITIVE = {"SoftplusBackward0": "softplus", "ExpBackward0": "exp", "SigmoidBackward0": "sigmoid"}
_MAKING = frozenset({"float", "to", "double", "type", "where", "eq", "ne", "gt", "lt", "ge", "le"})
_TIMES = 2
_LOOKS = 6
_ABOVE = 1e-4  # what rounding may leave of a logarithm of 1
_MOST = 200


class Arguments(Check):
    """The values that reach a loss, where its definition has no use for them."""

    codes: ClassVar = ("loss-argument",)
    functions: ClassVar = JUDGED | {"poisson_nll_loss", "kl_div", *_SIGNED, *_MAKING} | HINGES

    def __init__(self, *args: object) -> None:
        super().__init__(*args)  # type: ignore[arg-type]
        self._made: dict[int, tuple[weakref.ref[torch.Tensor], Spot]] = {}  # where what may be targets was made
        self._rates: Counter[tuple[Spot, str]] = Counter()
        self._coded: Counter[tuple[Spot, str]] = Counter()
        self._soft: Counter[tuple[Spot, str, str]] = Counter()
        self._looks: Counter[tuple[Spot, str]] = Counter()
        self._amiss: Counter[tuple[Spot, Amiss]] = Counter()
        self._hinges = Hinges()

    def pass_begins(self, event: Pass) -> None:
        self._hinges.passed()

    def function(self, event: Op) -> None:
        if event.name in HINGES:
            self._hinges.function(event)
            return
        spot = event.spot
        if spot is None:
            return
        if event.name in _MAKING:
            if isinstance(event.out, torch.Tensor) and not event.out.requires_grad:
                if len(self._made) > _MOST:
                    self._made.clear()
                self._made[id(event.out)] = weakref.ref(event.out), spot
        elif event.name == "poisson_nll_loss":
            self._rate(event.argument(0, "input"), event.argument(2, "log_input", True), spot)
        elif event.name in ("kl_div", "cross_entropy"):
            self._distribution(event, spot)
        elif event.name in _SIGNED:
            self._target(event.name, event.argument(_SIGNED[event.name], "target"), spot)

        self._judge(event, spot)

    def _judge(self, event: Op, spot: Spot) -> None:
        given = event.args[0] if event.args else None
        if event.name in JUDGED and isinstance(given, torch.Tensor) and given.requires_grad:
            self._looks[spot, event.name] += 1
            if self._looks[spot, event.name] <= _LOOKS:
                self._amiss.update((spot, it) for it in amiss(event, spot))

    def _rate(self, given: Any, logarithm: bool, spot: Spot) -> None:
        made = through_views(given.grad_fn) if isinstance(given, torch.Tensor) else None
        if logarithm and made is not None and node_name(made) in _POSITIVE:
            lines = calls(spot.file, r"\bPoissonNLLLoss$") if in_module() else []
            self._rates[nearest(lines, spot) or spot, _POSITIVE[node_name(made)]] += 1

    def _distribution(self, event: Op, spot: Spot) -> None:
        """Note targets that shall be probabilities, or their logarithms, and are something else."""
        target = event.argument(1, "target")
        if not isinstance(target, torch.Tensor) or not target.is_floating_point() or not target.dim():
            return
        target = target.detach()
        if event.name == "kl_div" and event.argument(5, "log_target", False):
            if bool((target > _ABOVE).any()):
                self._soft[spot, event.name, "above 0, and log_target=True says that they are logarithms"] += 1
        elif bool((target < 0).any()) and bool(((target != 0).sum(1 if target.dim() > 1 else 0) > 1).any()):
            # A row with one number alone is that of a class, weighted, as by an advantage.
            self._soft[spot, event.name, "below 0: these are scores or logarithms, and no probabilities"] += 1

    def _target(self, loss: str, target: Any, spot: Spot) -> None:
        if not isinstance(target, torch.Tensor) or not bool((target == 0).any()) or bool((target < 0).any()):
            return
        known = self._made.get(id(target))
        made = known[1] if known is not None and known[0]() is target else spot
        # Made once, they may be right for all else: then the line is that of the loss.
        apart = loop_around(spot) is not None and loop_around(made) is None
        self._coded[spot if apart and function_around(made) is function_around(spot) else made, loss] += 1

    def found(self) -> Iterator[Found]:
        told: set[tuple[Spot, str]] = set()
        for (spot, it), times in self._amiss.items():
            looks = max(often for (at, _), often in self._looks.items() if at == spot)
            every = sum(often for (at, other), often in self._amiss.items() if at == spot and other.why == it.why)
            if every >= _TIMES and (not it.always or every == min(looks, _LOOKS)) and (spot, it.why) not in told:
                told.add((spot, it.why))
                yield self.say("loss-argument", it.made or spot, *it[:3], level=it.level, times=times)
        for (spot, function), times in self._rates.items():
            if times >= _TIMES:
                yield self.say(
                    "loss-argument",
                    spot,
                    f"poisson_nll_loss takes the logarithm of a rate, and gets the result of {function}",
                    f"What comes out of {function} is a rate already. The loss takes its exponential once more, and "
                    "the rate that fits the counts is never what the model gives.",
                    "log_input=False  # or leave out the last function of the model",
                    level="likely",
                    times=times,
                )
        for (spot, loss, words), times in self._soft.items():
            if times >= _TIMES:
                yield self.say(
                    "loss-argument",
                    spot,
                    f"{loss} gets targets {words}",
                    f"{loss} weighs the logarithm of each prediction by its target, which has to be a share of 1. With "
                    "other numbers it has no lower bound, or is NaN, and is no distance between the two.",
                    "target = scores.softmax(dim=1)  # of the teacher, before the loss; or log_softmax with "
                    "log_target=True",
                    times=times,
                )
        for spot, times in self._hinges.found():
            yield self.say(
                "loss-argument",
                spot,
                "a loss of the label times the score gets labels of 0 and 1, and is made for -1 and 1",
                "Where the label is 0 the product is 0, whatever the score: these rows add a constant, and have no "
                "gradient. The other class alone is learnt, and the scores of all rise.",
                "y = 2 * y - 1  # -1 for one class, 1 for the other",
                level="likely",
                times=times,
            )
        for (spot, loss), times in self._coded.items():
            if times >= _TIMES:
                yield self.say(
                    "loss-argument",
                    spot,
                    f"{loss} gets targets of 0, and knows 1 and -1",
                    "Where the target is neither 1 nor -1, the loss has no case for it: what should be told apart "
                    "adds nothing, or a constant.",
                    "target = 2 * target - 1",
                    times=times,
                )
