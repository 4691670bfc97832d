"""Settings of optimizers and layers that undo the training: moments swapped, all dropped, averages that stand still."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from typing import Any, ClassVar

import torch
from torch.nn.modules.batchnorm import _BatchNorm

from course_utils.audit.book import Trainer
from course_utils.audit.check import Check, Found
from course_utils.audit.events import Call, Clip, Op, Pass, Step
from course_utils.audit.held_still import HeldStill
from course_utils.audit.lines import Spot, in_module
from course_utils.audit.mentions import key_lines
from course_utils.audit.source import assignments_to, nearest, statement, tree_of
from course_utils.explain.source import called

_SLOW, _APART = 0.95, 0.03  # the first moment's factor, and how far it lies above the second one's
_EPS = 10.0
_DROPS = 0.9
_STAYS, _LAST_BATCH = 0.0, 0.97
_STEPS, _TIMES = 8, 3
_DROPOUTS = frozenset(
    f"{kind}{dims}" for kind in ("dropout", "feature_dropout", "alpha_dropout") for dims in ("", "1d", "2d", "3d")
)
_KEEPS = re.compile(r"(^|[._])keep|keep_?(p|prob|rate)?$", re.I)


class FarOff(Check):
    """Values that have another meaning than they are given with, beside what came of them."""

    codes: ClassVar = ("setting-far-off",)
    functions: ClassVar = _DROPOUTS

    def __init__(self, *args: object) -> None:
        super().__init__(*args)  # type: ignore[arg-type]
        self._still = HeldStill()
        self._drops: Counter[tuple[Spot, float, bool]] = Counter()
        self._norms: dict[tuple[str, float], tuple[str, list[Spot]]] = {}

    def pass_begins(self, event: Pass) -> None:
        self._still.passing(event)

    def clipped(self, event: Clip) -> None:
        self._still.clipped(event)

    def step_begins(self, event: Step) -> None:
        self._still.stepping(event)

    def function(self, event: Op) -> None:
        given = event.argument(0, "input")
        if event.spot is None or not isinstance(given, torch.Tensor) or not given.requires_grad:
            return
        share, training = event.argument(1, "p", 0.5), event.argument(2, "training", True)
        # What drops parts of a model's inputs makes them noisy on purpose; these have no graph.
        if training and 0.5 <= share < 1 and given.grad_fn is not None:
            self._drops[event.spot, share, in_module()] += 1

    def called(self, event: Call) -> None:
        if event.training or not event.asleep or len(self._norms) >= _STEPS:
            return
        for name, part in event.module.named_modules():
            if isinstance(part, _BatchNorm) and part.momentum is not None and part.running_mean is not None:
                counted = int(part.num_batches_tracked) if part.num_batches_tracked is not None else 0
                stays = part.momentum == _STAYS and not bool(part.running_mean.any())
                if counted >= _TIMES and (stays or _LAST_BATCH <= part.momentum < 1):
                    self._norms.setdefault((type(part).__name__, part.momentum), (name, list(event.spots)))

    def found(self) -> Iterator[Found]:
        for trainer in self.book.trainers.values():
            optimizer = trainer.ref()
            if optimizer is not None and trainer.steps >= _STEPS:
                yield from self._of_optimizer(trainer, optimizer)
        for held in self._still.crushed():
            yield self._say(
                _key_line(held.trainer, "weight_decay"),
                f"a weight decay of {held.decay:g} takes all weights to nearly 0, and the loss does not fall",
                f"In {held.steps} steps the weights came to less than a tenth of their size. The decay pulls harder "
                "than the gradient of the loss, and what is left gives the same output for each input.",
                "weight_decay=1e-4",
                held.steps,
            )
        for held in self._still.cut():
            yield self._say(
                held.clip,
                f"every gradient is cut to less than a thousandth: {held.steps} steps hardly move the weights",
                f"The shortest of the gradients was {held.least:.2g} times the bound. All steps together are shorter "
                "than a hundredth of the weights, and the loss did not fall.",
                "torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)",
                held.steps,
            )
        yield from self._of_layers()

    def _of_optimizer(self, trainer: Trainer, optimizer: torch.optim.Optimizer) -> Iterator[Found]:
        for group in optimizer.param_groups[:1]:
            betas: Any = group.get("betas")
            momentum, eps = group.get("momentum"), group.get("eps")
            pair = isinstance(betas, tuple | list) and len(betas) == 2 and all(isinstance(it, float) for it in betas)
            if pair and betas[0] >= _SLOW and betas[0] - betas[1] >= _APART:
                yield self._say(
                    _key_line(trainer, "betas"),
                    f"betas of {betas[0]:g} and {betas[1]:g}: the two stand in each other's place",
                    "The first is that of the mean of gradients, which is to follow them, and the second that of "
                    "the mean of their squares, which is to be steady. Swapped, a step goes on along gradients of "
                    "long ago, divided by the size of the last few.",
                    f"betas=({betas[1]:g}, {betas[0]:g})",
                    trainer.steps,
                )
            if isinstance(momentum, float | int) and momentum >= 1 and type(optimizer).__name__ in ("SGD", "RMSprop"):
                yield self._say(
                    _key_line(trainer, "momentum"),
                    f"a momentum of {momentum:g}: no gradient is ever forgotten",
                    "Each step multiplies the sum of all gradients before by the momentum. At 1 or more, the sum "
                    "grows without a bound.",
                    "momentum=0.9",
                    trainer.steps,
                )
            if isinstance(eps, float | int) and eps >= _EPS and "betas" in group:
                yield self._say(
                    _key_line(trainer, "eps"),
                    f"eps of {eps:g} is added to what each gradient is divided by",
                    "It is to keep a quotient from becoming infinite where gradients are 0. As large as this, it "
                    "divides every step by about itself.",
                    "eps=1e-8",
                    trainer.steps,
                )

    def _of_layers(self) -> Iterator[Found]:
        for (spot, share, inside), times in self._drops.items():
            lines = _calls(spot, "Dropout") if inside else [(spot, _named(spot))]
            kept = [line for line, text in lines if _KEEPS.search(text)]
            if times >= _TIMES and (share >= _DROPS or (kept and share > 0.5)):
                yield self._say(
                    nearest(kept or [line for line, _ in lines], spot) or spot,
                    f"a dropout of {share:g} drops {share:.0%} of the numbers, and keeps {1 - share:.0%}",
                    "The argument is the share that is dropped. Other libraries ask for the share that is kept.",
                    f"p={1 - share:.2g}",
                    times,
                )
        for (kind, momentum), (name, spots) in self._norms.items():
            made = [it for spot in spots for it in _calls(spot, kind) if "momentum" in it[1]]
            same = [line for line, text in made if f"momentum={momentum}" in text]
            written = [*same, *(line for line, _ in made)]
            set_at = [line for it in spots for line, _ in assignments_to(it.file, ("momentum",))]
            where = next(iter([*written, *set_at, *spots]), None)
            stays = momentum == _STAYS
            yield self._say(
                where,
                f"{name or kind} has a momentum of {momentum:g}: its running statistics "
                + ("never move" if stays else "are those of the last batch"),
                "In PyTorch the momentum is the share of the new batch. "
                + (
                    "With 0 the mean stays 0 and the variance 1, and the evaluation shifts and scales by them."
                    if stays
                    else "Other libraries ask for the share of what was before, and this number is usual there."
                ),
                f"momentum={0.1 if stays else 1 - momentum:.2g}",
                _TIMES,
            )

    def _say(self, spot: Spot | None, headline: str, why: str, fix: str, times: int) -> Found:
        return self.say("setting-far-off", spot, headline, why, fix, certain=False, times=times)


def _key_line(trainer: Trainer, key: str) -> Spot | None:
    """Return the line of an optimizer's making that gives a setting, or its first line."""
    made = trainer.made
    found = statement(made) if made is not None else None
    if made is None or found is None:
        return made or trainer.spot
    inside = [it for it in key_lines(made.file, key) if found.lineno <= it.line <= (found.end_lineno or 0)]
    return next(iter(inside), made)


def _calls(spot: Spot, kind: str) -> list[tuple[Spot, str]]:
    """Return the calls in a file that make a layer of a kind, each with what it is given."""
    tree: Any = tree_of(spot.file)
    return [
        (Spot(spot.file, node.lineno), _given(node))
        for node in (ast.walk(tree) if tree is not None else ())
        if isinstance(node, ast.Call) and kind in called(node)
    ]


def _named(spot: Spot) -> str:
    """Return what the dropout at a line is given."""
    found = statement(spot)
    calls = [it for it in ast.walk(found) if isinstance(it, ast.Call)] if found is not None else []
    return next((_given(it) for it in calls if "dropout" in called(it)), "")


def _given(call: ast.Call) -> str:
    """Return the last plain argument of a call, or its keywords."""
    parts = [f"{it.arg}={ast.unparse(it.value)}" for it in call.keywords if it.arg not in ("training", "inplace")]
    plain = [ast.unparse(it) for it in call.args if isinstance(it, ast.Name | ast.Attribute)]
    return " ".join([*plain[-1:], *(part.partition("=")[2] if part.startswith("p=") else part for part in parts)])
