"""Learning rates of exactly 0 for many steps, because of the schedule."""

from __future__ import annotations

import ast
import inspect
import weakref
from collections.abc import Iterator
from dataclasses import dataclass, field
from types import CodeType
from typing import Any, ClassVar

import torch
from torch.optim import lr_scheduler

from course_utils.audit.book import Trainer
from course_utils.audit.check import Check, Found
from course_utils.audit.events import Step
from course_utils.audit.lines import Spot, is_learners
from course_utils.audit.mentions import functions_at, is_rate
from course_utils.audit.source import function_around, nearest, tree_of
from course_utils.audit.whole_numbers import division, says_zero

_STEPS = 3
_SHARE = 0.05  # of all steps: a warm-up from 0 makes its first step for nothing, and is right


@dataclass
class _Still:
    """The steps of an optimizer at a rate of 0."""

    trainer: Trainer
    run: int = 0  # up to now
    others: int = 0  # steps of others with a rate, when it began
    lost: int = 0  # before the first one with a rate
    rose: bool = False
    schedulers: list[weakref.ref[Any]] = field(default_factory=list)
    made: Spot | None = None  # the line that made the first schedule
    meant: bool = False  # the schedule says 0 by itself
    whole: Spot | None = None  # the line of a schedule's function that counts in whole numbers


class Rates(Check):
    """Steps that cannot move anything, before the rate rises."""

    codes: ClassVar = ("rate-zero",)

    def __init__(self, *args: object) -> None:
        super().__init__(*args)  # type: ignore[arg-type]
        self._still: dict[int, _Still] = {}
        self._moving = 0

    def scheduled(self, scheduler: Any, spot: Spot | None) -> None:
        optimizer = getattr(scheduler, "optimizer", None)
        if isinstance(optimizer, torch.optim.Optimizer):
            still = self._of(self.book.trainer(optimizer))
            if not any(it() is scheduler for it in still.schedulers):
                still.schedulers.append(weakref.ref(scheduler))
                still.made = still.made or self.book.made.get(scheduler)
                asked = list(bodies(scheduler))
                still.meant |= any(says_zero(body) for _, body in asked)
                lines = (division(file, body) for file, body in asked)
                still.whole = still.whole or next((line for line in lines if line is not None), None)

    def _of(self, trainer: Trainer) -> _Still:
        return self._still.setdefault(trainer.key, _Still(trainer))

    def step_begins(self, event: Step) -> None:
        optimizer = event.trainer.ref()
        if optimizer is None:
            return
        rates = [group.get("lr") for group in optimizer.param_groups if group["params"]]
        if not rates or not all(isinstance(rate, int | float) for rate in rates):
            return
        if any(rates):
            still = self._of(event.trainer)
            if not still.rose and self._moving == still.others:
                still.lost = still.run
            still.rose, still.run = True, 0
            self._moving += 1
            return
        still = self._of(event.trainer)
        still.others = still.others if still.run else self._moving
        still.run += 1

    def found(self) -> Iterator[Found]:
        for still in self._still.values():
            steps = still.trainer.steps
            lost = still.lost
            if not lost and still.run >= steps > _STEPS and still.schedulers and self._moving == still.others:
                lost = still.run  # it never rose
            if lost >= _STEPS and lost >= _SHARE * steps and not still.meant:
                yield self._lost(still, lost, steps)

    def _lost(self, still: _Still, lost: int, steps: int) -> Found:
        name = still.trainer.name or "the optimizer"
        written = _written(still.trainer.spot) if not still.schedulers else None
        whole = still.whole or (division(written.file, function_around(written)) if written is not None else None)
        why = "With a rate of exactly 0 a step moves no parameter: the batches of these steps were for nothing."
        if whole is not None:
            why += f" Line {whole.line} counts in whole numbers, and gives 0 until the last step of the warm-up."
        return self.say(
            "rate-zero",
            whole or still.made or written or still.trainer.spot,
            f"{lost} of {steps} steps of {name} had a learning rate of exactly 0",
            why,
            "(step + 1) / warmup_steps  # a fraction: / and not //, and from 1 on",
            level="error" if whole is not None else None,
            certain=whole is not None,
            times=lost,
            about={still.trainer.key},
        )


def bodies(scheduler: Any) -> Iterator[tuple[str, ast.AST]]:
    """Yield the functions of the learner's that a schedule asks, each with its file."""
    if isinstance(scheduler, lr_scheduler.LambdaLR | lr_scheduler.MultiplicativeLR):
        for function in scheduler.lr_lambdas:
            function = getattr(function, "func", function)
            plain = inspect.unwrap(function)
            code = getattr(
                plain if hasattr(plain, "__code__") else vars(type(function)).get("__call__"), "__code__", None
            )
            body = None
            if isinstance(code, CodeType) and is_learners(code.co_filename):
                body = next(functions_at(code.co_filename, code.co_firstlineno), None)
            if isinstance(code, CodeType) and body is not None:
                yield code.co_filename, body


def _written(spot: Spot | None) -> Spot | None:
    """Return the line of a file that sets the rate of a group: `group["lr"] = ...`."""
    tree = tree_of(spot.file) if spot is not None else None
    if spot is None or tree is None:
        return None
    found = [
        Spot(spot.file, target.lineno)
        for node in ast.walk(tree)
        for target in (node.targets if isinstance(node, ast.Assign) else ())
        if is_rate(target)
    ]
    return nearest(sorted(found), spot)
