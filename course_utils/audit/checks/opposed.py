"""Terms of a loss that go the wrong way: a bonus that is punished, a penalty that pays, a likelihood made small."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import torch

from course_utils.audit.check import Check, Found
from course_utils.audit.events import Pass, constant_of, node_behind, number_of
from course_utils.audit.expressions import assigned_value, given_to
from course_utils.audit.lines import Spot
from course_utils.audit.mentions import key_lines
from course_utils.audit.natures import divergence, entropy_sign, fit_sign, penalized, similar
from course_utils.audit.operations import Lines
from course_utils.audit.policies import bounds_in, likelihood_in
from course_utils.audit.rewards import reward_at
from course_utils.audit.source import text_at
from course_utils.audit.summands import MOST, Summand, is_weighted, joint_of, summands
from course_utils.graph.trace import LiveNode, node_name, walk

_PASSES, _OF_ONE = 40, 6  # passes that are looked at, and those of one line
_TIMES = 3
_LAYERS = ("Addmm", "Mm", "Bmm", "Convolution")


# What is said of each kind: headline, reason and repair.
_WORDS = {
    "entropy": (
        "the loss grows with the policy's entropy: each step makes the policy more certain, whatever it earned",
        "An entropy bonus keeps a policy trying. An optimizer makes the loss smaller, so the bonus has to be taken "
        "away from it; added, it is a penalty on trying.",
        "loss = policy_loss - coefficient * entropy",
    ),
    "penalty": (
        "the loss falls as the parameters grow: their penalty is taken away from it",
        "An optimizer makes the loss smaller. A penalty holds the parameters small where it is added; taken away, it "
        "pays for larger ones, and has no bound.",
        "loss = loss + coefficient * penalty",
    ),
    "divergence": (
        "the loss falls as the divergence from the prior grows: its sign is the wrong one",
        "A bound on a likelihood (ELBO) is what the data's likelihood gives, less the divergence, and it is maximised. "
        "In a loss, which is minimised, the divergence is added: with a minus it grows without bound.",
        "loss = reconstruction_loss + kl  # that is, -elbo",
    ),
    "similarity": (
        "the whole loss is a cosine similarity: each step makes the two sides less alike",
        "An optimizer makes the loss smaller, down to -1: the two sides then point in opposite directions. To bring "
        "them together, the loss has to fall as they become alike.",
        "loss = 1 - F.cosine_similarity(a, b, dim=1).mean()",
    ),
    "likelihood": (
        "the whole loss is a log-likelihood, and it is minimised: each step makes the data less likely",
        "An optimizer makes the loss smaller, and a log-likelihood has no lower bound: the model moves away from the "
        "values that it was given.",
        "loss = -distribution.log_prob(y).mean()",
    ),
    "log-sigmoid": (
        "the whole loss is a logsigmoid, and it is minimised: each step lowers what it is taken of",
        "logsigmoid(x) is the logarithm of a probability, and has no lower bound. To make that probability large, the "
        "loss has to be its negative.",
        "loss = -F.logsigmoid(scores).mean()",
    ),
}


@dataclass
class _Seen:
    """A term at a line, and the leaves that it, or the pass, moves."""

    times: int = 0
    leaves: set[int] = field(default_factory=set)


class Opposed(Check):
    """The terms of each loss, their natures and their signs."""

    codes: ClassVar = ("wrong-way",)

    def __init__(self, *args: object) -> None:
        super().__init__(*args)  # type: ignore[arg-type]
        self._passes: Counter[Spot] = Counter()
        self._seen: dict[tuple[str, Spot], _Seen] = {}

    def pass_begins(self, event: Pass) -> None:
        if self.recorder.operations is None or not event.accumulate or event.spot is None:
            return
        if event.seeded or len(event.outputs) != 1:
            return
        self._passes[event.spot] += 1
        if self._passes[event.spot] > _OF_ONE or len(self._passes) > _PASSES:
            return
        parts = summands(node_behind(event.outputs[0]))
        if not parts or len(parts) >= MOST:
            return
        ends = [part for part in parts if part.ends]
        self._entropy(parts, ends)
        self._penalty(parts, ends)
        self._note("divergence", divergence(ends + [it for it in parts if not it.ends], -1), parts)
        self._whole(event, parts, ends)

    def _entropy(self, parts: Sequence[Summand], ends: Sequence[Summand]) -> None:
        """An entropy that a policy's loss grows with. Elsewhere it is minimised by right programs as well."""
        found = [it for it in ends if it.sign * entropy_sign(it.node, self._text(it.node)) == 1]
        if found and any(self._is_policys(it) for it in parts):
            self._note("entropy", found[:1], parts)

    def _is_policys(self, part: Summand) -> bool:
        """Say whether a term is a log-probability or a ratio, weighed by rewards or by what is below 0 for some."""
        if node_name(part.node).startswith(("Minimum", "Maximum")):
            return bounds_in(part.node) is not None
        if not is_weighted(part.node) or not likelihood_in(part.node, self.recorder.lines):
            return False
        spot, weight = self.recorder.lines.of(number_of(part.node)), constant_of(part.node)
        several = weight is not None and weight.numel() > 1 and bool((weight < 0).any())
        return several or (spot is not None and reward_at(spot) != 0)

    def _penalty(self, parts: Sequence[Summand], ends: Sequence[Summand]) -> None:
        found = [(it, leaf) for it in ends if it.sign < 0 and (leaf := penalized(it.node)) is not None]
        leaves = [leaf for _, leaf in found if isinstance(leaf, torch.nn.Parameter)]
        if len(leaves) > 1 or any(leaf.dim() > 1 for leaf in leaves):
            seen = self._note("penalty", [it for it, _ in found], parts)
            if seen is not None:
                seen.leaves |= {self.book.slot(leaf).key for leaf in leaves}

    def _whole(self, event: Pass, parts: Sequence[Summand], ends: Sequence[Summand]) -> None:
        """Losses that are nothing but a similarity, or nothing but a likelihood."""
        at = self._spot(ends[0].node) if ends else None
        if at is None:
            return
        signs = [it.sign * fit_sign(it.node) for it in ends]
        texts = [self._text(it.node) for it in ends]
        kind = ""
        if all(it.sign > 0 and similar(it.node) for it in ends) and _is_of_one(event, ends):
            kind = "similarity"
        elif all(".log_prob(" in text for text in texts) and -1 in signs and 1 not in signs and not _drawn(at):
            kind = "likelihood"
        elif all(it.sign > 0 and node_name(it.node).startswith("LogSigmoid") for it in ends):
            kind = "log-sigmoid"
        seen = self._note(kind, [], parts, at) if kind else None
        if seen is not None:
            seen.leaves |= {self.book.slot(leaf).key for _, leaf in event.graph.leaves}

    def _note(
        self, kind: str, term: Sequence[Summand], parts: Sequence[Summand], at: Spot | None = None
    ) -> _Seen | None:
        joint = joint_of(term, parts) if term else None
        spot = at or (self._spot(joint) if joint is not None else self._spot(term[0].node) if term else None)
        if spot is None:
            return None
        seen = self._seen.setdefault((kind, spot), _Seen())
        seen.times += 1
        return seen

    def _spot(self, node: LiveNode) -> Spot | None:
        lines: Lines = self.recorder.lines
        return lines.of(number_of(node))

    def _text(self, node: LiveNode) -> str:
        spot = self._spot(node)
        return text_at(spot) if spot is not None else ""

    def found(self) -> Iterator[Found]:
        if 0 in self.book.trainers:
            return  # an update by hand may climb
        for (kind, spot), seen in self._seen.items():
            if seen.times < _TIMES or not self.clock.steps or key_lines(spot.file, "maximize"):
                continue
            if kind in ("penalty", "similarity", "likelihood", "log-sigmoid") and not seen.leaves & self.book.held():
                continue
            if kind == "log-sigmoid" and len(self.book.trainers) > 1:
                continue
            headline, why, fix = _WORDS[kind]
            yield self.say("wrong-way", spot, headline, why, fix, certain=kind == "penalty", times=seen.times)


def _is_of_one(event: Pass, ends: Sequence[Summand]) -> bool:
    """Say whether both sides are computed by the same layers, or one of them stands still."""
    if not any(node_name(node).startswith(_LAYERS) for node in event.graph.inner):
        return False
    for part in ends:
        sides = [_leaves(to) for to, _ in part.node.next_functions if to is not None]
        if len(sides) == 2 and not sides[0] & sides[1]:
            return False
    return True


def _leaves(node: LiveNode) -> set[int]:
    return {id(leaf) for it in walk([node]) if (leaf := getattr(it, "variable", None)) is not None}


def _drawn(spot: Spot) -> bool:
    """Say whether a line gives `log_prob` what was drawn: that estimates an entropy."""
    found = given_to(spot, "log_prob")
    made = assigned_value(spot, ast.unparse(found)) if found is not None else None
    return any("sample(" in ast.unparse(part) for part in (found, made) if part is not None)
