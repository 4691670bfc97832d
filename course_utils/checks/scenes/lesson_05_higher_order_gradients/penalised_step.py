"""What an answer to `penalised_step` is tried on."""

from __future__ import annotations

import torch
from torch import nn

from course_utils.checks.data import Case
from course_utils.checks.scenes.lesson_05_higher_order_gradients.maps import doubles
from course_utils.checks.scenes.numbers import seeded
from course_utils.checks.scenes.zoo import deep, in_groups, leave_gradients, lived_in


def regularised(case: Case) -> tuple[nn.Module, torch.optim.Optimizer, list[tuple[torch.Tensor, torch.Tensor]]]:
    """Return a model with gradients from before, an optimizer with momentum, and some batches of different sizes."""
    seed = case.given["seed"]
    # One part evaluates: who puts the whole model into training sees other numbers.
    first, last = nn.Linear(3, 4), nn.Linear(4, 4)
    last.bias = first.bias  # who goes through the layers meets it twice
    layers = nn.Sequential(first, nn.Tanh(), nn.Dropout(0.5), deep(last))
    model = seeded(layers.double(), seed)
    leave_gradients(model, seed)
    lived_in(model, layers[2])
    optimizer = torch.optim.SGD(in_groups(model.parameters()), lr=0.05, momentum=case.given["momentum"])
    batches = [
        (doubles(seed + size, size, 3), case.given["far"] * doubles(seed + size + 1, size, 4))
        for size in case.given["sizes"]
    ]
    return model, optimizer, batches
