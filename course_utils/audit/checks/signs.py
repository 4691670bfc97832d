"""A policy that is trained away from its rewards: log-probabilities or ratios times rewards, minimised."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from course_utils.audit.check import Check, Found
from course_utils.audit.events import Pass, before, node_behind, number_of, through_views
from course_utils.audit.lines import Spot
from course_utils.audit.mentions import key_lines
from course_utils.audit.policies import bounds_in, likelihood_in
from course_utils.audit.rewards import reward_at
from course_utils.audit.summands import Summand, is_weighted, summands
from course_utils.graph.trace import LiveNode, node_name

_PASSES = 4  # passes that are looked at
_TIMES = 2


class Signs(Check):
    """The way from a loss to a product of a log-probability and a reward, and the signs along it."""

    codes: ClassVar = ("reward-minimised",)

    def __init__(self, *args: object) -> None:
        super().__init__(*args)  # type: ignore[arg-type]
        self._passes = 0
        self._signs: dict[Spot, list[int]] = {}
        self._bounds: dict[Spot, list[tuple[int, int]]] = {}

    def pass_begins(self, event: Pass) -> None:
        if self.recorder.operations is None or not event.accumulate or self._passes >= _PASSES:
            return
        self._passes += 1
        for part in summands(node_behind(event.outputs[0]) if len(event.outputs) == 1 else None):
            if is_weighted(part.node) or _is_inner(part.node):
                spot = self.recorder.lines.of(number_of(part.node))
                kept = reward_at(spot) if spot is not None else 0
                likely = likelihood_in(part.node, self.recorder.lines) if kept else 0
                if spot is not None and likely:
                    self._signs.setdefault(spot, []).append(part.sign * kept * likely)
            elif node_name(part.node).startswith(("Minimum", "Maximum")):
                self._bound(part)

    def _bound(self, part: Summand) -> None:
        """Note with what sign the loss grows with PPO's bound, and with that of the larger or of the smaller one."""
        first = bounds_in(part.node)
        spot = self.recorder.lines.of(number_of(part.node)) if first is not None else None
        weighed = self.recorder.lines.of(number_of(first)) if first is not None else None
        kept = reward_at(weighed) if weighed is not None else 0
        if spot is not None and kept:
            inner = through_views(before(part.node))
            kept = -kept if inner is not None and node_name(inner) == "NegBackward0" else kept
            larger = node_name(part.node).startswith("Maximum")
            self._bounds.setdefault(spot, []).append((part.sign * kept, kept if larger else -kept))

    def found(self) -> Iterator[Found]:
        for spot, signs in self._signs.items():
            if len(signs) >= _TIMES and set(signs) == {1} and self._climbs_not(spot):
                yield self._minimised(spot, "log-probability", len(signs))
        for spot, bounds in self._bounds.items():
            if len(bounds) < _TIMES or len(set(bounds)) != 1 or not self._climbs_not(spot):
                continue
            grows, optimistic = bounds[0]
            if grows == 1:
                yield self._minimised(spot, "ratio", len(bounds))
            elif optimistic == 1:
                yield self._optimistic(spot, len(bounds))

    def _climbs_not(self, spot: Spot) -> bool:
        by_hand = 0 in self.book.trainers  # an update by hand may climb
        return bool(self.clock.steps) and not by_hand and not key_lines(spot.file, "maximize")

    def _minimised(self, spot: Spot, what: str, times: int) -> Found:
        return self.say(
            "reward-minimised",
            spot,
            f"the loss grows with {what} times reward: each step makes what was rewarded less likely",
            f"An optimizer goes downhill. The gradient of expected reward is that of {what} times reward, and to climb "
            "it the loss has to be its negative.",
            "loss = -(log_prob * reward).mean()"
            if what == "log-probability"
            else "loss = -torch.min(ratio * advantage, limited * advantage).mean()",
            certain=False,
            times=times,
        )

    def _optimistic(self, spot: Spot, times: int) -> Found:
        return self.say(
            "wrong-way",
            spot,
            "of the two bounds of the policy's gain the larger one is taken: the limit on the ratio holds nothing back",
            "PPO takes the smaller of both gains. With the larger one, a ratio beyond its limit counts in full where "
            "it promises more, and its gradient goes on pushing it away.",
            "loss = -torch.min(ratio * advantage, limited * advantage).mean()  # or torch.max of both negatives",
            certain=False,
            times=times,
        )


def _is_inner(node: LiveNode) -> bool:
    """Say whether a node is the inner product of something and a constant."""
    makers = sum(to is not None for to, _ in node.next_functions)
    return node_name(node) in ("DotBackward0", "MvBackward0") and makers == 1
