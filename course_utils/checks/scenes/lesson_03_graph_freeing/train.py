"""What an answer to `train` is tried on."""

from __future__ import annotations

import torch
from torch import nn

from course_utils.checks.data import Case
from course_utils.checks.scenes.batches import Batch
from course_utils.checks.scenes.lesson_03_graph_freeing.leaves import numbers
from course_utils.checks.scenes.zoo import deep, in_groups, leave_gradients, lived_in


def trainee(case: Case) -> tuple[nn.Sequential, torch.optim.Optimizer, list[Batch]]:
    """Return a model that draws random numbers and holds gradients from before, its optimizer, and uneven batches.

    One of its parameters takes no part: weight decay would move it if zeros were left for its gradient.

    All in the precision of the case.
    """
    dtype = getattr(torch, case.given["dtype"])
    seed, sizes = case.given["seed"], case.given["sizes"]
    torch.default_generator.manual_seed(seed)
    model = nn.Sequential(nn.Linear(4, 9), nn.Tanh(), nn.Dropout(0.3), deep(nn.Linear(9, 3)))
    model[1].register_parameter("spare", nn.Parameter(torch.ones(2)))
    model.to(dtype)
    leave_gradients(model, seed)
    lived_in(model, model[1])
    seeds = [(seed + n, seed - n, size) for n, size in enumerate(sizes, 1)]
    batches = [(numbers(one, size, 4).to(dtype), numbers(other, size, 3).to(dtype)) for one, other, size in seeds]
    batches[-1][1].mul_(case.given["far"])  # of the last batch, so that no other starts from far off
    return model, torch.optim.SGD(in_groups(model.parameters()), lr=0.2, weight_decay=0.1), batches
