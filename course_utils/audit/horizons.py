"""For how many steps a schedule is made, as its settings tell."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from types import FunctionType
from typing import Any

from torch.optim import lr_scheduler

_NEAR = 0.1  # a schedule for all steps may miss their number by this share
_LONG = 20  # a warm-up of fewer steps may be one of epochs
_STRONG = 0.7  # a factor that tells: so much or less at each fall
_LITTLE = 1e-3  # what is left of a rate that fell too often


@dataclass(frozen=True)
class Horizon:
    """The number of steps, and what happens there.

    `steps` is where the schedule ends, 0 where it does not. `turns` holds the steps at which one in stairs falls, or
    after how many it falls again, and `factor` by how much. `rises` says that it warms up until then; `exact` that its
    definition asks for a call after each batch.
    """

    steps: int
    turns: tuple[int, ...] = ()
    factor: float = 1.0
    rises: bool = False
    exact: bool = False
    others: frozenset[int] = frozenset()  # numbers that a function of the learner's reads

    def is_for_epochs(self, calls: int, epochs: int) -> str:
        """Say what tells that a schedule called so often is made for so many epochs, or nothing."""
        if self.turns and calls >= 4 * self.turns[-1] and self.turns[-1] <= epochs:
            if self.steps:
                return f"all its milestones, up to {self.turns[-1]}, lie in the first {self.turns[-1]} batches"
            falls = calls // self.turns[0]
            if falls > epochs and falls >= 4 and self.factor <= _STRONG:
                return f"it falls every {self.turns[0]} steps, {falls} times in {epochs} epochs"
            if self.turns[0] == 1 and self.factor**calls <= _LITTLE and self.factor**epochs >= 0.05:
                return f"{self.factor:g} to the power of {calls} is left of the rate, and not to that of {epochs}"
        if not self.turns and not self.rises and not self.exact and self.steps == epochs:
            return f"it is made for {epochs} steps, as many as there are epochs"
        return ""

    def is_for_steps(self, calls: int, steps: int) -> bool:
        """Say whether a schedule that was called so often was made for about so many steps."""
        if self.turns or steps < 2 * calls:
            return False
        if steps in self.others and steps >= _LONG:
            return True
        if self.steps < 2 * calls:
            return False
        if self.exact:
            return self.steps >= (1 - _NEAR) * steps or (self.rises and calls < self.steps <= steps)
        if self.rises:
            return self.steps >= max(_LONG, 3 * calls) and self.steps <= steps
        return abs(self.steps - steps) <= max(1, _NEAR * steps)


def horizon(scheduler: Any) -> Horizon | None:
    """Return what is known of a schedule's end; None for one whose settings do not tell."""
    kind: type = type(scheduler)
    if kind is lr_scheduler.CosineAnnealingLR:
        return Horizon(int(scheduler.T_max))
    if kind is lr_scheduler.PolynomialLR:
        return Horizon(int(scheduler.total_iters))
    if kind is lr_scheduler.LinearLR:
        return Horizon(int(scheduler.total_iters), rises=scheduler.end_factor > scheduler.start_factor)
    if kind is lr_scheduler.OneCycleLR:
        return Horizon(int(scheduler.total_steps), exact=True)
    if kind is lr_scheduler.CyclicLR:
        return Horizon(round(scheduler.total_size * scheduler.step_ratio), rises=True, exact=True)
    if kind is lr_scheduler.MultiStepLR and scheduler.milestones:
        turns = tuple(sorted(scheduler.milestones))
        return Horizon(turns[-1], turns, scheduler.gamma)
    if kind is lr_scheduler.StepLR:
        return Horizon(0, (int(scheduler.step_size),), scheduler.gamma)
    if kind is lr_scheduler.ExponentialLR:
        return Horizon(0, (1,), scheduler.gamma)
    if kind is lr_scheduler.SequentialLR:
        last = horizon(scheduler._schedulers[-1])
        before = int(scheduler._milestones[-1])
        if last is None or not last.steps:
            return None
        return Horizon(before + last.steps, tuple(before + turn for turn in last.turns), last.factor)
    if isinstance(scheduler, lr_scheduler.LambdaLR | lr_scheduler.MultiplicativeLR):
        return Horizon(0, others=frozenset(_numbers(scheduler)))
    return None


def _numbers(scheduler: Any) -> Iterator[int]:
    """Yield the integers that the functions of a schedule read by name, from around them or as given before."""
    for function in scheduler.lr_lambdas:
        given = {**getattr(function, "keywords", {})}
        function = getattr(function, "func", function)
        if isinstance(function, FunctionType):
            cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=False)
            given |= {name: cell.cell_contents for name, cell in cells if _is_filled(cell)}
            given |= {name: function.__globals__.get(name) for name in function.__code__.co_names}
        yield from (value for value in given.values() if isinstance(value, int) and not isinstance(value, bool))


def _is_filled(cell: Any) -> bool:
    try:
        cell.cell_contents  # noqa: B018
    except ValueError:
        return False
    return True
