"""Running an answer to `discriminator_step`."""

from __future__ import annotations

import torch

from course_utils.checks.data import Answer, Case, Observation
from course_utils.checks.observers.lesson_06_detach_vs_no_grad.games import played
from course_utils.checks.scenes.lesson_06_detach_vs_no_grad.players import players
from course_utils.checks.scenes.zoo import in_groups


def observe(answer: Answer, case: Case) -> Observation:
    generator, discriminator = players(case)
    generator.get_parameter("3.0.0.bias").requires_grad_(not case.given["frozen"])
    groups, given = in_groups(discriminator.parameters()), case.given
    optimizer = torch.optim.SGD(groups, lr=given["rate"], weight_decay=given["decay"])
    real, noise = case.given["real"].tensor(), case.given["noise"].tensor()
    return played(answer, (real, noise), generator, discriminator, optimizer)
