"""Six runs of one training loop, five of them with one fault each, and the repairs to try on them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import torch
from torch import nn
from torch.nn.functional import mse_loss
from torch.optim.lr_scheduler import LambdaLR

EPOCHS, BATCHES = 20, 4


@dataclass(frozen=True)
class Loop:
    """A training loop with its switches: as they stand here, nothing is wrong with it."""

    rate: float = 0.2
    clears: bool = True
    steps_a_batch: bool = False
    holds_a_copy: bool = False
    made_each_epoch: bool = False


def _model() -> nn.Linear:
    model = nn.Linear(6, 1, dtype=torch.float64)
    with torch.no_grad():
        model.weight.fill_(1.0)
        model.bias.fill_(-1.0)
    return model


def _data() -> tuple[torch.Tensor, torch.Tensor]:
    """Return 64 rows of six numbers that differ in spread, and a target for each, shapes (64, 6) and (64, 1)."""
    random = torch.Generator().manual_seed(4)
    x = torch.randn(64, 6, dtype=torch.float64, generator=random) * torch.linspace(0.5, 1.2, 6, dtype=torch.float64)
    weights = torch.tensor([[-1.0], [2.0], [0.5], [-2.0], [1.5], [-0.5]], dtype=torch.float64)
    return x, x @ weights + 0.1 * torch.randn(64, 1, dtype=torch.float64, generator=random)


def curve(loop: Loop) -> list[float]:
    """Train, and return the loss over all rows, before the first step and after each."""
    x, y = _data()
    model = _model()

    @torch.no_grad()
    def loss() -> float:
        return float(mse_loss(model(x), y))

    losses = [loss()]
    optimizer, scheduler = _made(model, loop)
    for _ in range(EPOCHS):
        if loop.made_each_epoch:
            model = _model()
            optimizer.param_groups[0]["params"] = list(model.parameters())
        for rows in torch.arange(64).chunk(BATCHES):
            if loop.clears:
                optimizer.zero_grad()
            mse_loss(model(x[rows]), y[rows]).backward()
            optimizer.step()
            losses.append(loss())
            if loop.steps_a_batch:
                scheduler.step()
        if not loop.steps_a_batch:
            scheduler.step()
    return losses


def _made(model: nn.Linear, loop: Loop) -> tuple[torch.optim.Optimizer, LambdaLR]:
    """Return an optimizer, and a scheduler that takes the rate to 0 in as many steps as there are epochs."""
    held = _model() if loop.holds_a_copy else model
    optimizer = torch.optim.SGD(held.parameters(), lr=loop.rate)
    return optimizer, LambdaLR(optimizer, lambda count: max(0.0, 1 - count / EPOCHS))


RUNS: Mapping[str, Loop] = {
    "run_1": Loop(steps_a_batch=True),
    "run_2": Loop(clears=False),
    "run_3": Loop(holds_a_copy=True),
    "run_4": Loop(),
    "run_5": Loop(made_each_epoch=True),
    "run_6": Loop(rate=0.002),
}

REPAIRS: Mapping[str, Callable[[Loop], Loop]] = {
    "A": lambda loop: loop,
    "B": lambda loop: replace(loop, clears=True),
    "C": lambda loop: replace(loop, rate=loop.rate / 100),
    "D": lambda loop: replace(loop, rate=loop.rate * 100),
    "E": lambda loop: replace(loop, holds_a_copy=False),
    "F": lambda loop: replace(loop, steps_a_batch=False),
    "G": lambda loop: replace(loop, made_each_epoch=False),
}
