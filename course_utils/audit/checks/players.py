"""Several networks: gradients that go to the wrong one, or do not go to the right one."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import torch

from course_utils.audit.attacks import Attacks, Left, is_for_input
from course_utils.audit.book import Model, Trainer, listed
from course_utils.audit.check import Check, Found
from course_utils.audit.checks.targets import FUNCTIONS, Targets
from course_utils.audit.events import Call, Load, Op, Pass, Step
from course_utils.audit.lines import Spot, asked_directly

_COPY = re.compile(r"target|teacher|(^|_)ema|momentum|slow|_old|old_|average", re.IGNORECASE)
_MOST = 64


@dataclass
class _Ran:
    """One pass, and to whom it gave gradients."""

    spot: Spot | None
    received: frozenset[int]
    order: dict[int, int]  # by a leaf's key: how near it is to the loss
    for_input: bool  # it reached inputs that were made for it
    owner: int | None = None  # the first optimizer that made a step with it
    steps_after: int = 0


class Players(Check):
    """Which pass's gradients each optimizer uses, where there are several."""

    codes: ClassVar = ("gan-detach", "wrong-loss")
    functions: ClassVar = FUNCTIONS | {"detach"}

    def __init__(self, *args: object) -> None:
        super().__init__(*args)  # type: ignore[arg-type]
        self._ran: dict[int, _Ran] = {}
        self._order: dict[int, int] = {}
        self._steps = 0
        self._stepped_at: dict[int, int] = {}
        self._mixed: dict[tuple[str, int, Spot | None], int] = {}
        self._own: dict[tuple[str, int, Spot | None], Spot | None] = {}  # the optimizer's own pass
        self._last: int | None = None  # the optimizer that stepped last
        self._detached: dict[int | None, Counter[Spot]] = {}  # lines with detach(), by who had stepped last
        self._starved: dict[int, Counter[int | None]] = {}  # optimizers that found nothing, by who had stepped before
        self._starved_spot: dict[int, Spot | None] = {}
        self._twins: dict[int, bool] = {}  # those whose passes reached tensors of the same shapes in their place
        self._aims = Targets(self)
        self._attacks = Attacks()
        self._copied: defaultdict[int, set[int]] = defaultdict(set)  # the steps made when a model was loaded

    def pass_begins(self, event: Pass) -> None:
        self._order = {}
        self._aims.pass_begins(event)
        if event.accumulate and self.recorder.operations is not None:
            # The book meets each leaf here, also where one optimizer is: an input that asks for its gradient is known.
            slots = [self.book.slot(leaf) for _, leaf in event.graph.leaves]
            if len(self.book.trainers) > 1:
                self._order = {slot.key: at for at, slot in enumerate(slots)}

    def pass_ended(self, event: Pass) -> None:
        if event.accumulate:
            received = frozenset(slot.key for slot in event.received)
            self._ran[event.number] = _Ran(event.spot, received, self._order, is_for_input(event))
            while len(self._ran) > _MOST:
                del self._ran[next(iter(self._ran))]

    def step_begins(self, event: Step) -> None:
        if event.in_pass or event.closure:
            return
        key = event.trainer.key
        self._steps += 1
        latest = self._ran[max(self._ran)] if self._ran else None
        mine = {slot.key for slot in event.trainer.slots}
        others = {slot.key for it in self.book.trainers.values() if it is not event.trainer for slot in it.slots}
        if not event.fresh and latest is not None and latest.received & others and not latest.received & mine:
            self._starved.setdefault(key, Counter())[self._last] += 1
            self._starved_spot[key] = latest.spot
            self._twins[key] = self._twins.get(key, True) and self._is_copy(event.trainer, latest.received)
        numbers = sorted({number for slot in event.fresh for number in slot.content} & self._ran.keys())
        behind = [self._ran[number] for number in numbers]
        wanted = [ran.spot for ran in behind if ran.for_input]
        self._attacks.stepped(key, wanted, [ran.spot for ran in behind if not ran.for_input])
        for number in numbers:
            ran = self._ran[number]
            if ran.owner is None:
                ran.owner, ran.steps_after = key, self._steps
            elif ran.owner != key:
                self._count_mixed(event, number, ran)
        self._last = key

    def _count_mixed(self, event: Step, number: int, ran: _Ran) -> None:
        """A pass that another optimizer stepped with is in this one's gradients, together with a later pass."""
        later = [
            self._ran[other]
            for slot in event.fresh
            if number in slot.content
            for other in slot.content
            if other > number and other in self._ran and self._ran[other].owner is None
        ]
        later = [other for other in later if other.spot != ran.spot]
        if not later:
            return
        mine = {slot.key for slot in event.trainer.slots}
        other = self.book.trainer_of(ran.owner)
        theirs = {slot.key for slot in other.slots} if other is not None else set()
        if later[-1].received & theirs:
            code = "gan-detach"
        elif ran.order and mine & ran.received == mine and _nearer(ran.order, mine, theirs):
            code = "wrong-loss"
        else:
            return
        at = (code, event.trainer.key, ran.spot)
        self._mixed[at] = self._mixed.get(at, 0) + 1
        self._own[at] = later[-1].spot

    def loaded(self, event: Load) -> None:
        if self.clock.steps:
            self._copied[id(event.module)].add(self.clock.steps)

    def function(self, event: Op) -> None:
        if event.name == "detach":
            spot = event.spot if asked_directly() else None
            if spot is not None and event.args[0].requires_grad:
                self._detached.setdefault(self._last, Counter())[spot] += 1
            return
        self._aims.function(event)

    def called(self, event: Call) -> None:
        self._aims.called(event)

    def found(self) -> Iterator[Found]:
        trainers = {trainer.key: trainer for trainer in self.book.trainers.values()}
        for (code, key, spot), times in self._mixed.items():
            if times >= 2:
                yield self._mixture(code, trainers[key], spot, times, self._own[code, key, spot])
        for key, before in self._starved.items():
            trainer = trainers[key]
            times = sum(before.values())
            if times >= 2 and times * 2 >= trainer.steps and not any(slot.received for slot in trainer.slots):
                if self._twins.get(key) and not self._detached.get(before.most_common(1)[0][0]):
                    yield self._reaches_copy(trainer, times)
                else:
                    yield self._starving(trainer, before.most_common(1)[0][0], times)
        yield from self._aims.found()
        watched = self.recorder.full_steps
        steps = {key: min(it.steps, watched) for key, it in trainers.items()}
        for left in self._attacks.left(steps):
            yield self._left_by_helper(left, trainers[left.trainer])
        for left in self._attacks.judged(steps):
            yield self._left_by_judge(left, trainers[left.trainer])
        yield from self._learning_copies(trainers.values())

    def _mixture(self, code: str, trainer: Trainer, spot: Spot | None, times: int, own: Spot | None) -> Found:
        name = trainer.name or "an optimizer"
        gan = code == "gan-detach"
        other = f"the pass on line {spot.line}" if spot is not None else "another pass"
        return self.say(
            code,
            spot if gan else own or spot,
            f"{name} also uses the gradients of this pass, which belong to another network's loss"
            if gan
            else f"this pass adds onto gradients that {other}, of another network's loss, left for {name}",
            f"That pass left gradients in {listed(trainer.slots)}. They were not cleared before {name}'s own pass, "
            f"which added to them: {times} steps moved along both.",
            "critic(fake.detach())  # in the critic's loss; the generator gets no gradient from it"
            if gan
            else f"{name}.zero_grad()  # right before its own backward(), or freeze the network in the other's loss",
            times=times,
            about={slot.key for slot in trainer.slots} | {trainer.key},
            names=(name,),
        )

    def _left_by_helper(self, left: Left, trainer: Trainer) -> Found:
        name = trainer.name or "the optimizer"
        return self.say(
            "wrong-loss",
            left.spot,
            f"backward() wants the gradient of an input here, and leaves others in the weights: {name} moves along "
            "both",
            f"A pass fills .grad of every leaf behind its loss. What this one left in {listed(trainer.slots)} was not "
            f"cleared before the pass of the training, which added to it: {left.times} steps.",
            "(g,) = torch.autograd.grad(loss, x)  # writes into no .grad; or zero_grad() before the training's pass",
            level="likely",
            certain=False,
            times=left.times,
            about={slot.key for slot in trainer.slots} | {trainer.key},
            names=(name,),
        )

    def _left_by_judge(self, left: Left, trainer: Trainer) -> Found:
        name = trainer.name or "the optimizer"
        return self.say(
            "wrong-loss",
            left.spot,
            f"{name} moves along this pass, too, which is over rows that are held out",
            f"backward() adds onto .grad. What this pass left in {listed(trainer.slots)} was not cleared before the "
            f"pass of the training, and went into {left.times} steps: the model is trained on what it is measured by.",
            f"{name}.zero_grad()  # before the training's backward(); or torch.autograd.grad, which fills no .grad",
            level="likely",
            certain=False,
            times=left.times,
            about={slot.key for slot in trainer.slots} | {trainer.key},
            names=(name,),
        )

    def _is_copy(self, trainer: Trainer, received: frozenset[int]) -> bool:
        """Say whether a pass reached others of the shapes that an optimizer holds, and nothing else."""
        shapes = sorted(slot.shape for slot in self.book.live() if slot.key in received)
        mine = sorted(slot.shape for slot in trainer.slots)
        return bool(mine) and len(shapes) % len(mine) == 0 and sorted(mine * (len(shapes) // len(mine))) == shapes

    def _reaches_copy(self, trainer: Trainer, times: int) -> Found:
        name = trainer.name or "an optimizer"
        return self.say(
            "other-tensors",
            self._starved_spot.get(trainer.key),
            f"this pass reaches a copy of what {name} holds, and not that: {name} found no gradient in {times} steps",
            f"The loss was computed with other tensors of the same shapes as {listed(trainer.slots)}. A copy has "
            "gradients of its own; those of the first are None.",
            "for p, q in zip(model.parameters(), copy.parameters()):\n    p.grad = q.grad  # or torch.func."
            "functional_call, with the graph",
            times=times,
            about={slot.key for slot in trainer.slots} | {trainer.key},
            names=(name,),
        )

    def _starving(self, trainer: Trainer, before: int | None, times: int) -> Found:
        name = trainer.name or "an optimizer"
        lines = self._detached.get(before) or Counter()
        cut = self.recorder.cuts.before(frozenset(slot.key for slot in trainer.slots))
        spot = lines.most_common(1)[0][0] if lines else cut.spot if cut else self._starved_spot.get(trainer.key)
        return self.say(
            "gan-detach",
            spot,
            f"the pass for {name} reaches another network only: {name} found no gradient in {times} steps",
            f"The loss that {listed(trainer.slots)} should learn from was computed from a detached tensor. detach() "
            "belongs in the other network's loss, not in this one.",
            "critic(fake)  # without detach() in the generator's loss",
            certain=bool(lines),
            times=times,
            about={slot.key for slot in trainer.slots} | {trainer.key},
            names=(name,),
        )

    def _learning_copies(self, trainers: Any) -> Iterator[Found]:
        """A network that is a copy of a trained one, is named or refreshed as such, and is trained itself."""
        for trainer in trainers:
            owners = {slot.owner for slot in trainer.slots if slot.received >= 2}
            models = [model for model in self.book.models.values() if model.key in owners]
            for model in models:
                # What is loaded after the last step is the best of a training, and no refreshed target.
                copied = len(self._copied[id(model.ref())] - {self.clock.steps}) >= 2
                twin = next(
                    (it for it in self.book.models.values() if it is not model and _shapes(it) == _shapes(model)), None
                )
                if twin is None or not any(slot.received for slot in twin.slots):
                    continue
                if (copied or (_COPY.search(model.name) and _began_alike(model, twin))) and not _COPY.search(twin.name):
                    yield self.say(
                        "wrong-loss",
                        trainer.made or trainer.spot,
                        f"{trainer.name or 'an optimizer'} trains {model.name or 'a copy'}, which is a copy of "
                        f"{twin.name or 'another network'}",
                        "A target or an average follows the network that learns. Given to an optimizer, and reached by "
                        "the loss, it learns by itself and both drift together.",
                        f"{model.name or 'target'}.requires_grad_(False)  # and leave it out of the optimizer",
                        times=trainer.steps,
                        about={slot.key for slot in model.slots},
                        names=(model.name,),
                    )


def _nearer(order: dict[int, int], mine: set[int], theirs: set[int]) -> bool:
    """Say whether the leaves in `mine` stand nearer to the loss than those in `theirs`."""
    ours = [at for key, at in order.items() if key in mine]
    others = [at for key, at in order.items() if key in theirs]
    return bool(ours) and bool(others) and min(ours) < min(others)


def _began_alike(model: Model, twin: Model) -> bool:
    """Say whether two models had the same values when they were first looked at."""
    for one, other in zip(model.slots, twin.slots, strict=True):
        if one.first is None or other.first is None or not torch.equal(one.first, other.first):
            return False
    return True


def _shapes(model: Model) -> tuple[Any, ...]:
    return tuple(slot.shape for slot in model.slots)
