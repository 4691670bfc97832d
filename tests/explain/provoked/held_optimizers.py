"""Schedulers of another optimizer than the one that steps."""

import torch
from torch import nn
from torch.optim import SGD, Adam
from torch.optim.lr_scheduler import StepLR

from tests.explain.provoked import case


@case("scheduler-first", "`optimizer` is another one now", "again, after line", warns=True)
def optimizer_replaced_after_the_scheduler():
    net = nn.Linear(2, 1)
    optimizer = SGD(net.parameters(), lr=0.1)
    schedule = StepLR(optimizer, 1)  # holds the optimizer of this moment
    optimizer = Adam(net.parameters())  # replaced here
    for _ in range(2):
        net(torch.ones(1, 2)).sum().backward()
        optimizer.step()
        schedule.step()  # raised here


@case("scheduler-first", "it is `quick` that steps", "slow.step()", warns=True)
def two_optimizers_and_one_that_steps():
    body, head = nn.Linear(2, 2), nn.Linear(2, 1)
    slow = SGD(body.parameters(), lr=0.1)
    quick = SGD(head.parameters(), lr=0.1)
    schedule = StepLR(slow, 1)  # built here
    slow.zero_grad()
    quick.step()
    schedule.step()  # raised here


@case("scheduler-first", "came before the first step", certain=False, warns=True)
def two_optimizers_that_both_step():
    body, head = nn.Linear(2, 2), nn.Linear(2, 1)
    slow, quick = SGD(body.parameters(), lr=0.1), SGD(head.parameters(), lr=0.1)
    schedule = StepLR(slow, 1)
    schedule.step()  # raised here
    for it in (slow, quick):
        it.step()
