"""What an answer to `fit_scale` is tried on."""

from __future__ import annotations

import torch
from torch import nn

from course_utils.checks.data import Case
from course_utils.checks.scenes.batches import Batch
from course_utils.checks.scenes.numbers import numbers, seeded
from course_utils.checks.scenes.zoo import deep, in_groups, leave_gradients, lived_in


def scaled_classifier(case: Case) -> tuple[nn.Sequential, torch.Tensor, torch.optim.Optimizer, list[Batch]]:
    """Return a small classifier, the logarithm of a scale, an optimizer for both, and batches.

    All parameters hold gradients from before, one that takes no part as well: with zeros for them it would decay.
    """
    seed, sizes = case.given["seed"], case.given["sizes"]
    model = nn.Sequential(nn.Linear(4, 7), nn.Tanh(), deep(nn.Linear(7, 3)))
    model[1].register_parameter("spare", nn.Parameter(torch.ones(2)))
    seeded(model, seed)
    leave_gradients(model, seed)
    lived_in(model, model[1])
    log_scale = torch.tensor(case.given["start"], requires_grad=True)
    log_scale.grad = torch.tensor(0.7)
    optimizer = torch.optim.SGD(in_groups([*model.parameters(), log_scale]), lr=0.4, momentum=0.5, weight_decay=0.1)
    batches = [(numbers(seed + n, size, 4), torch.arange(size) % 3) for n, size in enumerate(sizes, 1)]
    return model, log_scale, optimizer, batches
