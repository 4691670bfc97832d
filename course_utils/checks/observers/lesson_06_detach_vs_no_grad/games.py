"""Running a step of one of two players."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from course_utils.checks.data import Answer, Observation, plain
from course_utils.checks.observers.accumulated import Accumulated
from course_utils.checks.observers.lesson_06_detach_vs_no_grad.watching import (
    Runs,
    flags,
    gradients_in,
    hooks_in,
    modes_of,
    numbers_in,
)
from course_utils.checks.observers.passes import every_pass


def played(
    answer: Answer,
    data: tuple[torch.Tensor, ...],
    generator: nn.Sequential,
    discriminator: nn.Sequential,
    optimizer: Any,
) -> Observation:
    fakes, opinions = Runs(generator, "fakes"), Runs(discriminator, "opinions")
    before = flags(generator), flags(discriminator)
    starts = numbers_in(generator), numbers_in(discriminator)
    gradients = gradients_in(generator), gradients_in(discriminator)
    accumulated = Accumulated(discriminator.parameters())
    modes, hooks = modes_of(generator, discriminator), hooks_in(generator, discriminator)
    steps: list[None] = []
    optimizer.register_step_post_hook(lambda *given: steps.append(None))
    with every_pass() as passes:
        returned = answer(generator, discriminator, optimizer, *data)
    return {
        "returned": plain(returned),
        "generator": numbers_in(generator),
        "discriminator": numbers_in(discriminator),
        "generator moved": numbers_in(generator) != starts[0],
        "discriminator moved": numbers_in(discriminator) != starts[1],
        "generator gradients": gradients_in(generator) == gradients[0],
        "discriminator gradients": gradients_in(discriminator) == gradients[1],
        "discriminator accumulated": accumulated.there_again(passes),
        "flags": [flags(generator), flags(discriminator)] == list(before),
        "discriminator flags": flags(discriminator) == before[1],
        "modes": modes_of(generator, discriminator) == modes,
        "hooks": hooks_in(generator, discriminator) == hooks,
        "fakes recorded": any(fakes.live),
        "fakes": len(fakes.live),
        "opinions": len(opinions.live),
        "passes": len(passes),
        "kept": sum(it.kept for it in passes),
        "generator cleared": not any(it.grad is not None and it.grad.any() for it in generator.parameters()),
        "steps": len(steps),
    }
