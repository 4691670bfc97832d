"""Faults in the order of a step: clearing, passes, steps, clipping, schedules, windows."""

import torch
from torch import nn
from torch.nn import functional as F

from tests.audit.parts import batches, blobs, lines, mlp
from tests.audit.registry import fault


@fault("no-zero-grad")
def never_cleared():
    x, y = blobs()
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for _ in range(6):
        loss = F.cross_entropy(model(x), y)
        loss.backward()  # <- here
        optimizer.step()


@fault("no-zero-grad")
def cleared_once_before_the_epochs():
    x, y = blobs()
    model = mlp()
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    optimizer.zero_grad()
    for _ in range(2):
        for inputs, targets in batches(x, y):
            outputs = model(inputs)
            loss = criterion(outputs, targets)
            loss.backward()  # <- here
            optimizer.step()


@fault("no-zero-grad")
def clearing_named_but_not_called():
    x, y = lines()
    model = mlp(out=1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for _ in range(6):
        optimizer.zero_grad  # noqa: B018  # <- here
        loss = F.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()


@fault("zero-before-step")
def cleared_between_pass_and_step():
    x, y = blobs()
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for _ in range(6):
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.zero_grad()  # <- here
        optimizer.step()


@fault("zero-before-step")
def model_cleared_between_pass_and_step():
    x, y = blobs()
    model = mlp()
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.05)
    for inputs, targets in batches(x, y) * 2:
        loss = F.cross_entropy(model(inputs), targets)
        loss.backward()
        model.zero_grad(set_to_none=False)  # <- here
        optimizer.step()


@fault("step-first")
def step_before_the_pass():
    x, y = lines()
    model = mlp(out=1)
    optimizer = torch.optim.Adam(model.parameters())
    for _ in range(6):
        optimizer.zero_grad()
        loss = F.mse_loss(model(x), y)
        optimizer.step()  # <- here
        loss.backward()


@fault("step-without-backward")
def the_pass_is_missing():
    x, y = lines()
    model = mlp(out=1)
    optimizer = torch.optim.Adam(model.parameters())
    for _ in range(6):
        optimizer.zero_grad()
        loss = F.mse_loss(model(x), y)
        print(f"{loss.item():.3f}")
        optimizer.step()  # <- here


@fault("step-without-backward")
def the_pass_is_named_but_not_called():
    x, y = blobs()
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(6):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward  # noqa: B018  # <- here
        optimizer.step()


@fault("step-without-backward")
def two_steps_for_one_pass():
    x, y = blobs()
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(6):
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()
        optimizer.step()  # <- here


@fault("clip-after-step")
def clipped_too_late():
    x, y = blobs()
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(6):
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)  # <- here


@fault("clip-nothing")
def clipped_before_the_pass():
    x, y = blobs()
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(6):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)  # <- here
        loss.backward()
        optimizer.step()


@fault("clip-nothing")
def clipped_from_a_spent_generator():
    x, y = blobs()
    model = mlp()
    parameters = model.parameters()  # <- here
    optimizer = torch.optim.SGD(parameters, lr=0.1)
    for _ in range(6):
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        torch.nn.utils.clip_grad_norm_(parameters, 1.0)
        optimizer.step()


@fault("clip-scaled")
def clipped_before_unscaling():
    x, y = blobs()
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler("cpu")
    for _ in range(6):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        scaler.scale(loss).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)  # <- here
        scaler.step(optimizer)
        scaler.update()


@fault("scheduler-first")
def schedule_before_the_step():
    x, y = blobs()
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 2)
    for _ in range(6):
        scheduler.step()  # <- here
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()


@fault("not-divided")
def accumulated_without_dividing():
    x, y = blobs(32)
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    every = 4
    for at, (inputs, targets) in enumerate(batches(x, y)):
        loss = F.cross_entropy(model(inputs), targets)
        loss.backward()  # <- here
        if (at + 1) % every == 0:
            optimizer.step()
            optimizer.zero_grad()


@fault("leftover-window")
def the_last_window_is_lost():
    x, y = blobs(40)
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for at, (inputs, targets) in enumerate(batches(x, y)):
        loss = F.cross_entropy(model(inputs), targets) / 4
        loss.backward()
        if (at + 1) % 4 == 0:  # <- here
            optimizer.step()
            optimizer.zero_grad()


@fault("same-loss-twice")
def two_passes_over_one_loss():
    x, y = blobs()
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(6):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward(retain_graph=True)
        loss.backward()  # <- here
        optimizer.step()
