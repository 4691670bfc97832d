"""What an answer to `td_loss` is tried on."""

from __future__ import annotations

import torch
from torch import nn

from course_utils.checks.data import Case
from course_utils.checks.scenes.numbers import seeded
from course_utils.checks.scenes.zoo import deep, leave_gradients, lived_in


def q_networks(case: Case) -> tuple[nn.Sequential, nn.Sequential]:
    """Return a network that values three actions, and its older copy.

    In double precision, an earlier pass has left gradients in the network.
    """
    seed = case.given["seed"]
    # Dropout evaluates in both: who puts a whole network into training changes what it says.
    live, old = _network(), _network()
    lived_in(live, live[2])
    lived_in(old, old[2])
    seeded(live, seed)
    seeded(old, seed + 1)
    if case.given["low"]:  # each action costs, so the best value is below zero
        with torch.no_grad():
            old.get_parameter("3.0.0.bias").sub_(4)
    if case.given["frozen"]:
        old[0].bias.requires_grad_(False)
    if case.given["states"].dtype == "float64":
        live.double()
        old.double()
        leave_gradients(live, seed)
    return live, old


def _network() -> nn.Sequential:
    """Return a network with a bias that two layers share."""
    first, hidden = nn.Linear(4, 6), nn.Linear(6, 6)
    hidden.bias = first.bias
    return nn.Sequential(first, nn.Sequential(nn.Tanh(), hidden), nn.Dropout(0.4), deep(nn.Linear(6, 3)))
