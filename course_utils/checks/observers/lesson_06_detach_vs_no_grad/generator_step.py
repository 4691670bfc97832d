"""Running an answer to `generator_step`."""

from __future__ import annotations

import torch

from course_utils.checks.data import Answer, Case, Observation
from course_utils.checks.observers.lesson_06_detach_vs_no_grad.games import played
from course_utils.checks.scenes.lesson_06_detach_vs_no_grad.players import players
from course_utils.checks.scenes.zoo import in_groups


def observe(answer: Answer, case: Case) -> Observation:
    generator, discriminator = players(case)
    optimizer = torch.optim.SGD(in_groups(generator.parameters()), lr=case.given["rate"])
    return played(answer, (case.given["noise"].tensor(),), generator, discriminator, optimizer)
