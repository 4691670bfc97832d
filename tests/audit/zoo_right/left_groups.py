"""Rates of several groups that follow their schedules, and data that generators hand out."""

import math

import torch
from torch.nn import functional as F
from torch.optim import lr_scheduler

from tests.audit.parts import blobs, mlp
from tests.audit.registry import right
from tests.audit.zoo_faults.left_groups import fit
from tests.audit.zoo_faults.replaced import Classifier


def two_groups(model, head=0.5):
    return [{"params": model.body.parameters()}, {"params": model.head.parameters(), "lr": head}]


@right
def both_groups_written_by_their_numbers():
    model = Classifier(3)
    optimizer = torch.optim.SGD(two_groups(model), lr=0.1)

    def adjust(at):
        factor = 0.5 * (1 + math.cos(math.pi * at / 6))
        optimizer.param_groups[0]["lr"] = 0.1 * factor
        optimizer.param_groups[1]["lr"] = 0.5 * factor

    fit(model, optimizer, before=adjust)


@right
def one_group_written_by_its_number():
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def adjust(at):
        optimizer.param_groups[0]["lr"] = 0.1 * 0.8**at

    fit(model, optimizer, before=adjust)


@right
def a_warm_up_of_all_and_the_first_of_two_shown():
    model = Classifier(3)
    optimizer = torch.optim.SGD(two_groups(model, 0.2), lr=0.1)
    schedule = lr_scheduler.LambdaLR(optimizer, [lambda at: 0.8**at, lambda at: 1.0])

    def adjust(at):
        schedule.step()
        print(f"{optimizer.param_groups[0]['lr']:.4f}")

    fit(model, optimizer, before=lambda at: at and adjust(at))


@right
def a_second_group_whose_rate_is_zero():
    model = Classifier(3)
    optimizer = torch.optim.SGD(two_groups(model, 0.0), lr=0.1)

    def adjust(at):
        optimizer.param_groups[0]["lr"] = 0.1 * 0.8**at

    fit(model, optimizer, before=adjust)


@right
def noise_on_copies_of_what_a_generator_yields():
    x, y = blobs(32)

    def parts():
        for start in torch.arange(0, 32, 8)[torch.randperm(4)].tolist():
            yield x[start : start + 8].clone(), y[start : start + 8]

    model = mlp()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(5):
        for inputs, targets in parts():
            inputs += 0.1 * torch.randn_like(inputs)
            optimizer.zero_grad()
            F.cross_entropy(model(inputs), targets).backward()
            optimizer.step()


@right
def noise_on_rows_that_an_index_picks():
    x, y = blobs(32)

    def picked(rows, targets):
        for at in torch.randperm(len(rows)).split(8):
            yield rows[at], targets[at]

    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for _ in range(5):
        for inputs, targets in picked(x, y):
            inputs.add_(0.1 * torch.randn_like(inputs))
            optimizer.zero_grad()
            F.cross_entropy(model(inputs), targets).backward()
            optimizer.step()
