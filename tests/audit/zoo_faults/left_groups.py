"""Groups that a schedule by hand leaves out, data that a generator hands out, and a head that is put in too late."""

import math

import torch
from torch import nn
from torch.nn import functional as F

from tests.audit.parts import batches, blobs, mlp
from tests.audit.registry import fault
from tests.audit.zoo_faults.replaced import Classifier


def fit(model, optimizer, rounds=6, before=lambda at: None):
    """Train for some rounds, each of which something comes before."""
    x, y = blobs(32)
    for at in range(rounds):
        before(at)
        for inputs, targets in batches(x, y):
            optimizer.zero_grad()
            F.cross_entropy(model(inputs), targets).backward()
            optimizer.step()


@fault("schedule-of-other")
def a_cosine_for_the_first_group():
    model = Classifier(3)
    groups = [{"params": model.body.parameters()}, {"params": model.head.parameters(), "lr": 0.5}]
    optimizer = torch.optim.SGD(groups, lr=0.1)

    def adjust(at):
        optimizer.param_groups[0]["lr"] = 0.05 * (1 + math.cos(math.pi * at / 6))  # <- here

    fit(model, optimizer, before=adjust)


@fault("schedule-of-other")
def a_decay_that_vectors_do_not_see():
    model = mlp()
    matrices = [it for it in model.parameters() if it.dim() > 1]
    vectors = [it for it in model.parameters() if it.dim() < 2]
    opt = torch.optim.AdamW([{"params": matrices}, {"params": vectors, "weight_decay": 0.0}], lr=0.02)

    def halve(at):
        if at:
            opt.param_groups[0]["lr"] *= 0.5  # <- here

    fit(model, opt, before=halve)


@fault("data-drifts")
def noise_on_what_a_generator_yields():
    x, y = blobs(32)

    def parts():
        for start in torch.arange(0, 32, 8)[torch.randperm(4)].tolist():
            yield x[start : start + 8], y[start : start + 8]

    model = mlp()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(5):
        for inputs, targets in parts():
            inputs += 0.1 * torch.randn_like(inputs)  # <- here
            optimizer.zero_grad()
            F.cross_entropy(model(inputs), targets).backward()
            optimizer.step()


@fault("data-drifts")
def a_shift_of_what_a_generator_was_given():
    def sliced(rows, targets, size=8):
        for start in range(0, len(rows), size):
            yield rows[start : start + size], targets[start : start + size]

    def shifted(batch):
        batch.mul_(1 + 0.2 * torch.rand(len(batch), 1))  # <- here
        return batch

    points, kinds = blobs(32)
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for _ in range(5):
        for _, (some, theirs) in enumerate(sliced(points, kinds)):
            optimizer.zero_grad()
            loss = F.cross_entropy(model(shifted(some)), theirs)
            loss.backward()
            optimizer.step()
        print(loss.item())


@fault("not-in-optimizer")
def a_head_for_tuning_when_all_was_trained_before():
    net = Classifier(5)
    x, y = blobs(32, classes=5)
    first = torch.optim.Adam(net.parameters(), lr=0.01)
    for inputs, targets in batches(x, y):
        first.zero_grad()
        F.cross_entropy(net(inputs), targets).backward()
        first.step()
    net.body.weight.requires_grad = False
    tuned = torch.optim.Adam([it for it in net.parameters() if it.requires_grad], lr=0.01)
    net.head = nn.Linear(8, 3)  # <- here
    fit(net, tuned)
