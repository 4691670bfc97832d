"""A generator of one's own that is seeded at each step: it draws the same numbers every time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import torch

from course_utils.audit.check import Check, Found
from course_utils.audit.events import Op
from course_utils.audit.lines import Spot
from course_utils.audit.looking import for_looking

_DRAWS = frozenset(
    (
        *("rand", "randn", "randint", "randperm", "normal", "bernoulli", "multinomial", "rand_like", "randn_like"),
        *("normal_", "uniform_", "random_", "bernoulli_", "exponential_"),
    )
)
_NUMBERS = 8  # so many of a draw are compared
_TIMES = 4  # draws in a row that are the same, with steps in between
_MOST = 100  # lines that are looked at


@dataclass
class _Line:
    """A line that draws from a generator: its last numbers, in which step, and how often a later step got the same."""

    numbers: torch.Tensor
    step: int
    seed: int
    again: int = 0
    differs: bool = False


class OwnGenerators:
    """Draws from a generator that is given, compared from step to step, for the check that tells of seeds."""

    functions: ClassVar = _DRAWS

    def __init__(self, check: Check) -> None:
        self.check = check
        self._lines: dict[Spot, _Line] = {}

    def function(self, event: Op) -> None:
        generator, out = event.kwargs.get("generator"), event.out
        if not isinstance(generator, torch.Generator) or not isinstance(out, torch.Tensor):
            return
        if out.numel() < _NUMBERS or not torch.is_grad_enabled():
            return
        spot = event.spot
        if spot is None or (spot not in self._lines and len(self._lines) >= _MOST):
            return
        numbers, step = out.detach().reshape(-1)[:_NUMBERS].clone(), self.check.clock.steps
        line = self._lines.setdefault(spot, _Line(numbers, step, generator.initial_seed()))
        if line.differs or step == line.step:
            return
        line.step = step
        line.differs = not torch.equal(line.numbers, numbers)
        line.again += not line.differs

    def found(self) -> Iterator[Found]:
        for spot, line in self._lines.items():
            if line.differs or line.again < _TIMES - 1 or for_looking(spot):
                continue
            yield self.check.say(
                "seed-repeats",
                spot,
                f"the same random numbers are drawn in {line.again + 1} steps: their generator is seeded with "
                f"{line.seed} each time",
                "A generator that is made, or seeded, where it is used begins anew. What is to differ from step to "
                "step, as noise, masks or the order of data do, is the same in each.",
                f"generator = torch.Generator().manual_seed({line.seed})  # once, before the loop",
                times=line.again + 1,
            )
