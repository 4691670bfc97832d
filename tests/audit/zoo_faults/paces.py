"""Schedules that go on at another pace than they are made for."""

import math
from types import SimpleNamespace

import torch
from torch.nn import functional as F
from torch.optim import lr_scheduler

from tests.audit.parts import batches, blobs, mlp
from tests.audit.registry import fault


@fault("schedule-too-fast")
def cosine_of_epochs_once_a_batch():
    x, y = blobs(32)
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    epochs = 5
    schedule = lr_scheduler.CosineAnnealingLR(optimizer, T_max=epochs)
    for _ in range(epochs):
        for inputs, targets in batches(x, y):
            optimizer.zero_grad()
            F.cross_entropy(model(inputs), targets).backward()
            optimizer.step()
            schedule.step()  # <- here


@fault("schedule-too-fast")
def milestones_passed_in_the_first_epoch():
    x, y = blobs(40)
    model = mlp()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    schedule = lr_scheduler.MultiStepLR(optimizer, [4, 6], gamma=0.5)

    def one_epoch():
        for inputs, targets in batches(x, y):
            optimizer.zero_grad()
            F.cross_entropy(model(inputs), targets).backward()
            optimizer.step()
            schedule.step()  # <- here

    config = SimpleNamespace(epochs=8)
    for _ in range(1, config.epochs + 1):
        one_epoch()


@fault("schedule-too-fast")
def stairs_down_to_nothing():
    x, y = blobs(32)
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    schedule = lr_scheduler.StepLR(optimizer, step_size=2, gamma=0.3)
    epoch = 0
    while epoch < 6:
        for inputs, targets in batches(x, y):
            optimizer.zero_grad()
            F.cross_entropy(model(inputs), targets).backward()
            optimizer.step()
            schedule.step()  # <- here
        epoch += 1


@fault("schedule-too-fast")
def exponential_once_a_batch():
    x, y = blobs(40)
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    schedule = lr_scheduler.ExponentialLR(optimizer, 0.9)
    for _ in range(8):
        for inputs, targets in batches(x, y):
            optimizer.zero_grad()
            F.cross_entropy(model(inputs), targets).backward()
            optimizer.step()
            schedule.step()  # <- here


@fault("schedule-too-fast")
def linear_decay_below_zero():
    x, y = blobs(32)
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    epochs = 4
    schedule = lr_scheduler.LambdaLR(optimizer, lambda epoch: 1 - epoch / epochs)
    for _ in range(epochs):
        for inputs, targets in batches(x, y):
            optimizer.zero_grad()
            F.cross_entropy(model(inputs), targets).backward()
            optimizer.step()
            schedule.step()  # <- here


@fault("schedule-too-fast")
def plateau_asked_for_each_batch():
    x, y = blobs(32)
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    schedule = lr_scheduler.ReduceLROnPlateau(optimizer, factor=0.1, patience=2)
    for _ in range(10):
        for inputs, targets in batches(x, y):
            optimizer.zero_grad()
            loss = F.cross_entropy(model(inputs), targets)
            loss.backward()
            optimizer.step()
            schedule.step(loss.item())  # <- here


@fault("schedule-too-slow")
def one_cycle_of_batches_once_an_epoch():
    x, y = blobs(32)
    model, data = mlp(), batches(x, y)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    schedule = lr_scheduler.OneCycleLR(optimizer, max_lr=0.5, epochs=4, steps_per_epoch=len(data))
    for _ in range(4):
        for inputs, targets in data:
            optimizer.zero_grad()
            F.cross_entropy(model(inputs), targets).backward()
            optimizer.step()
        schedule.step()  # <- here


@fault("schedule-too-slow")
def cosine_of_all_steps_once_an_epoch():
    x, y = blobs(32)
    model, data = mlp(), batches(x, y)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    schedule = lr_scheduler.CosineAnnealingLR(optimizer, 4 * len(data))
    for _ in range(4):
        for inputs, targets in data:
            optimizer.zero_grad()
            F.cross_entropy(model(inputs), targets).backward()
            optimizer.step()
        schedule.step()  # <- here


@fault("schedule-too-slow")
def warm_up_in_steps_once_an_epoch():
    x, y = blobs(32)
    model, data = mlp(), batches(x, y)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    total = 5 * len(data)

    def rate(step):
        if step < 10:
            return step / 10
        return 0.5 * (1 + math.cos(math.pi * (step - 10) / (total - 10)))

    schedule = lr_scheduler.LambdaLR(optimizer, rate)
    for _ in range(5):
        for inputs, targets in data:
            optimizer.zero_grad()
            F.cross_entropy(model(inputs), targets).backward()
            optimizer.step()
        schedule.step()  # <- here
