"""Values that should stand still in a loss, and learn from it: targets, teachers, advantages, a critic's answer."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

import torch

from course_utils.audit.book import Model, Trainer
from course_utils.audit.check import Check, Found
from course_utils.audit.events import Call, Op, Pass, node_behind, number_of
from course_utils.audit.expressions import is_used_elsewhere, products
from course_utils.audit.lines import Spot, frames, names_in
from course_utils.audit.source import assigned, compared
from course_utils.graph.trace import LiveNode, node_name

LOSSES = frozenset({"mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss", "kl_div", "cross_entropy"})
FUNCTIONS = LOSSES | {"sub", "mul"}

_TARGET = re.compile(r"target|teacher|expected|bellman|td_", re.IGNORECASE)
_COPY = re.compile(r"target|teacher|(^|_)ema|_old|old_", re.IGNORECASE)
_OLD = re.compile(r"old_?(log|prob|pi\b)|(log|prob|\bpi)\w*_old|behaviou?r_?(log|prob)", re.IGNORECASE)
_ADVANTAGE = re.compile(r"(^|\.|_)(adv|advs|gae)(_|$)|advantage|td_?err", re.IGNORECASE)
_BASELINE = re.compile(
    r"\b(\w*value\w*|\w*baseline\w*|\w*critic\w*)\b.* - |- .*\b(\w*value\w*|\w*baseline\w*|\w*critic\w*)\b"
)
_CRITIC = re.compile(r"critic|(^|[._])q(_?f|_?net)?\d?$|q_?func|qvalue", re.IGNORECASE)
_ACTOR = re.compile(r"actor|policy|(^|[._])pi$", re.IGNORECASE)

# A line is looked at closely so often; the graph behind a value is walked for that.
_CLOSELY = 2
_TIMES = 2

# From a loss to a critic's answer: what adds, scales or averages.
_LINEAR = ("Neg", "Mean", "Sum", "Add", "Sub", "Mul", "Div", "Squeeze", "View", "Minimum", "Select")
_TAIL_NODES = 30


@dataclass
class _Side:
    """Something that a line puts against a prediction, and the leaves behind both."""

    kind: Literal["target", "teacher", "old", "advantage"]
    name: str
    spot: Spot
    behind: frozenset[int] = frozenset()
    others: frozenset[int] = frozenset()
    times: int = 0


class Targets:
    """Part of a check: hears of losses, differences and products, and says which side should not learn."""

    def __init__(self, check: Check) -> None:
        self._check = check
        self._sides: dict[tuple[str, Spot, str], _Side] = {}
        self._answers: dict[int, tuple[Model, frozenset[int]]] = {}  # by a node's number: critics given an action
        self._raised: dict[int, tuple[Model, frozenset[int], int]] = {}  # critics whose answer a pass made larger

    def function(self, event: Op) -> None:
        one, other = event.argument(0, "input"), event.argument(1, "target")
        if not isinstance(one, torch.Tensor) or not isinstance(other, torch.Tensor):
            return
        if not one.requires_grad or not other.requires_grad or other.grad_fn is None:
            return
        spot = event.spot
        if spot is None:
            return
        if event.name == "mul":
            self._product(one, other, spot)
            return
        loss = event.name in LOSSES
        names = compared(spot)
        for name in names[1:2] if loss else _meant(names, one, other):
            if _TARGET.search(name) and not name.startswith("target_n"):
                self._count("target", name, spot, [other] if loss else [one, other], [])
            elif not loss and _OLD.search(name):
                self._count("old", name, spot, [other], [one])
        if loss:
            self._count("teacher", "", spot, [other], [one])

    def _product(self, one: torch.Tensor, other: torch.Tensor, spot: Spot) -> None:
        for text, difference in products(spot):
            named = not difference and _ADVANTAGE.search(text)
            if not named and not (difference and _BASELINE.search(text)):
                continue
            for mine, theirs in ((one, other), (other, one)):
                if (_is_named(text, mine)) if named else node_name(mine.grad_fn) == "SubBackward0":
                    self._count("advantage", text, spot, [mine], [theirs])
                    break

    def _count(self, kind: Any, name: str, spot: Spot, mine: list[torch.Tensor], theirs: list[torch.Tensor]) -> None:
        side = self._sides.setdefault((kind, spot, name), _Side(kind, name, spot))
        side.times += 1
        if side.times <= _CLOSELY:
            side.behind |= self._check.recorder.cuts.behind(mine)
            side.others |= self._check.recorder.cuts.behind(theirs)

    def called(self, event: Call) -> None:
        given = event.given
        if event.recorded is None or given is None or not given.requires_grad or not _CRITIC.search(event.model.name):
            return
        if len(self._answers) < _TAIL_NODES:
            self._answers[event.recorded] = event.model, self._check.recorder.cuts.behind([given])

    def pass_begins(self, event: Pass) -> None:
        answers, self._answers = self._answers, {}
        if not answers or not event.accumulate:
            return
        for number in _maximized(node for node in map(node_behind, event.outputs) if node is not None):
            if number in answers:
                model, behind = answers[number]
                _, before, times = self._raised.get(model.key, (model, frozenset(), 0))
                self._raised[model.key] = model, before | behind, times + 1

    def found(self) -> Iterator[Found]:
        told: set[Spot] = set()
        for side in sorted(self._sides.values(), key=lambda it: it.kind != "teacher"):
            trainer = self._trainer_of(side.behind)
            if side.times < _TIMES or trainer is None or side.spot in told:
                continue
            found = self._of(side, trainer)
            if found is not None:
                told.add(side.spot)
                yield found
        for model, behind, times in self._raised.values():
            critic = {slot.key for slot in model.slots if slot.received}
            actors = {it.key for it in self._check.book.models.values() if _ACTOR.search(it.name)}
            actor = {slot.key for slot in self._check.book.live() if slot.key in behind and slot.owner in actors}
            for trainer in self._check.book.trainers.values():
                mine = {slot.key for slot in trainer.slots}
                if times >= _TIMES and trainer.steps >= _TIMES and critic & mine and actor & mine:
                    yield self._inflated(model, trainer, times)

    def _of(self, side: _Side, trainer: Trainer) -> Found | None:
        if side.kind == "advantage":
            own = side.behind - side.others
            held = {slot.key for slot in trainer.slots}
            return self._advantage(side) if own & held and side.others & held else None
        if side.kind == "teacher":
            if side.behind & side.others:
                return None
            owners = {slot.owner for slot in self._check.book.live() if slot.key in side.behind}
            models = [it for it in self._check.book.models.values() if it.key in owners and _COPY.search(it.name)]
            return self._teacher(side, models[0], trainer) if models and len(owners) == 1 else None
        return self._target(side)

    def _trainer_of(self, keys: frozenset[int]) -> Trainer | None:
        """Return an optimizer that makes steps and holds one of these leaves."""
        for trainer in self._check.book.trainers.values():
            if trainer.steps >= _TIMES and any(slot.key in keys for slot in trainer.slots):
                return trainer
        return None

    def _target(self, side: _Side) -> Found:
        name = side.name
        return self._check.say(
            "wrong-loss",
            assigned(side.spot, name) or side.spot,
            f"the loss sends a gradient into {name}, too",
            "A target is what a prediction is moved to. With a graph behind it, the target is moved towards the "
            "prediction as well."
            if side.kind == "target"
            else "It stands for the policy as it was. With a graph behind it, what moves the new one moves it the "
            "other way, too: the two gradients cancel.",
            _detached(name, "or compute it under torch.no_grad()"),
            level="likely",
            certain=False,
            times=side.times,
            names=(name,),
        )

    def _advantage(self, side: _Side) -> Found:
        name = side.name
        made = assigned(side.spot, name)
        return self._check.say(
            "wrong-loss",
            side.spot if made is None or is_used_elsewhere(side.spot, name) else made,
            f"{name} carries a gradient: the policy's loss moves what estimates the value, too",
            "An advantage weighs how likely an action becomes. With a graph behind it, the loss also falls when the "
            "estimate is moved away from the returns, and the same optimizer makes that step.",
            _detached(name, "for the policy's loss")
            if made is not None and not is_used_elsewhere(side.spot, name)
            else f"({name}).detach()  # in the policy's loss alone",
            level="likely",
            certain=False,
            times=side.times,
            names=(name,),
        )

    def _teacher(self, side: _Side, model: Model, trainer: Trainer) -> Found:
        return self._check.say(
            "wrong-loss",
            trainer.made or side.spot,
            f"{trainer.name or 'an optimizer'} trains {model.name}, which line {side.spot.line} uses as the target",
            f"What {model.name} answers is what another network is moved to. It carries a gradient there, and the "
            "optimizer holds its parameters: both move towards each other.",
            f"{model.name}.requires_grad_(False)  # and leave it out of the optimizer",
            level="likely",
            certain=False,
            times=side.times,
            about={slot.key for slot in model.slots},
            names=(model.name,),
        )

    def _inflated(self, model: Model, trainer: Trainer, times: int) -> Found:
        name = trainer.name or "an optimizer"
        return self._check.say(
            "wrong-loss",
            trainer.made or trainer.spot,
            f"{name} moves {model.name} along the actor's loss: it learns to answer with larger numbers",
            f"The actor's loss is minus what {model.name} answers. {name} holds both networks, so each step raises the "
            "answer by both: by a better action, and by a critic that promises more.",
            f"one optimizer for each; {model.name}.requires_grad_(False) while the actor's loss is computed",
            level="likely",
            certain=False,
            times=times,
            about={slot.key for slot in model.slots},
            names=(model.name,),
        )


def _detached(name: str, remark: str) -> str:
    """Return the line that cuts a value off; for what has no name the expression."""
    bound = f"{name} = " if name.replace(".", "").isidentifier() else ""
    return f"{bound}{name if bound else f'({name})'}.detach()  # {remark}"


def _meant(names: Iterable[str], one: torch.Tensor, other: torch.Tensor) -> Iterator[str]:
    """Yield the names that may stand for one of two tensors: others on the line stand for what they stand for."""
    frame = next(frames(), None)
    known = names_in(frame) if frame is not None else {}
    for name in names:
        value = known.get(name)
        if not isinstance(value, torch.Tensor) or value is one or value is other:
            yield name


def _is_named(text: str, tensor: torch.Tensor) -> bool:
    frame = next(frames(), None)
    return frame is not None and names_in(frame).get(text) is tensor


def _maximized(roots: Iterable[LiveNode]) -> Iterator[int]:
    """Yield the numbers of nodes whose results a loss falls with: those with a minus on the way, and nothing curved."""
    queue: list[tuple[LiveNode, bool]] = [(root, False) for root in roots]
    for node, minus in queue:
        if minus:
            yield number_of(node)
        name = node_name(node)
        if len(queue) < _TAIL_NODES and name.startswith(_LINEAR):
            for at, (to, _) in enumerate(node.next_functions):
                if to is not None:
                    turned = name.startswith("Neg") or (name.startswith("Sub") and at == 1)
                    queue.append((to, minus != turned))
