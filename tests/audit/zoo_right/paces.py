"""Right loops with schedules of every pace."""

import torch
from torch.nn import functional as F
from torch.optim import lr_scheduler

from tests.audit.parts import batches, blobs, mlp
from tests.audit.registry import right


def _train(make, epochs=6, each_batch=True, lr=0.1):
    x, y = blobs(40)
    model, data = mlp(), batches(x, y)
    optimizer = torch.optim.SGD(model.parameters(), lr=lr, momentum=0.9)
    schedule = make(optimizer, epochs, len(data))
    for _ in range(epochs):
        for inputs, targets in data:
            optimizer.zero_grad()
            F.cross_entropy(model(inputs), targets).backward()
            optimizer.step()
            if each_batch:
                schedule.step()
        if not each_batch:
            schedule.step()


@right
def one_cycle_with_each_batch():
    _train(lambda optimizer, epochs, many: lr_scheduler.OneCycleLR(optimizer, 0.3, epochs * many))


@right
def cosine_over_all_batches():
    _train(lambda optimizer, epochs, many: lr_scheduler.CosineAnnealingLR(optimizer, epochs * many))


@right
def cosine_within_each_epoch():
    _train(lambda optimizer, epochs, many: lr_scheduler.CosineAnnealingLR(optimizer, many))


@right
def cosine_over_epochs():
    _train(lambda optimizer, epochs, many: lr_scheduler.CosineAnnealingLR(optimizer, epochs), each_batch=False)


@right
def cosine_planned_for_longer_than_this_run():
    _train(lambda optimizer, epochs, many: lr_scheduler.CosineAnnealingLR(optimizer, 200), each_batch=False)


@right
def linear_warm_up_over_the_first_batches():
    def make(optimizer, epochs, many):
        warm = lr_scheduler.LinearLR(optimizer, 0.1, total_iters=epochs)
        rest = lr_scheduler.CosineAnnealingLR(optimizer, epochs * many - epochs)
        return lr_scheduler.SequentialLR(optimizer, [warm, rest], [epochs])

    _train(make)


@right
def warm_up_as_long_as_the_epochs_in_batches():
    _train(lambda optimizer, epochs, many: lr_scheduler.LinearLR(optimizer, 0.01, total_iters=epochs))


@right
def stairs_of_epochs():
    _train(lambda optimizer, epochs, many: lr_scheduler.StepLR(optimizer, 1, 0.1), each_batch=False)


@right
def milestones_of_a_longer_plan():
    _train(lambda optimizer, epochs, many: lr_scheduler.MultiStepLR(optimizer, [30, 45]), each_batch=False)


@right
def slow_exponential_with_each_batch():
    _train(lambda optimizer, epochs, many: lr_scheduler.ExponentialLR(optimizer, 0.98))


@right
def stairs_of_batches():
    _train(lambda optimizer, epochs, many: lr_scheduler.StepLR(optimizer, 5, 0.9))


@right
def linear_decay_to_zero_with_each_batch():
    def make(optimizer, epochs, many):
        total = epochs * many
        return lr_scheduler.LambdaLR(optimizer, lambda step: (total - step) / total)

    _train(make)


@right
def warm_restarts_with_each_batch():
    _train(lambda optimizer, epochs, many: lr_scheduler.CosineAnnealingWarmRestarts(optimizer, many))


@right
def cyclic_with_each_batch():
    _train(lambda optimizer, epochs, many: lr_scheduler.CyclicLR(optimizer, 0.01, 0.1, step_size_up=7))


@right
def warm_up_over_epochs():
    _train(lambda optimizer, epochs, many: lr_scheduler.LinearLR(optimizer, 0.1, total_iters=8), each_batch=False)


@right
def plateau_after_each_epoch():
    x, y = blobs(24)
    model, data = mlp(), batches(x, y)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    schedule = lr_scheduler.ReduceLROnPlateau(optimizer, patience=1)
    for _ in range(6):
        total = 0.0
        for inputs, targets in data:
            optimizer.zero_grad()
            loss = F.cross_entropy(model(inputs), targets)
            loss.backward()
            optimizer.step()
            total += loss.item()
        schedule.step(total)


@right
def cosine_in_one_long_loop():
    x, y = blobs()
    model = mlp()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    schedule = lr_scheduler.CosineAnnealingLR(optimizer, T_max=30)
    for _ in range(30):
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()
        schedule.step()


@right
def cosine_over_rounds_of_one_batch():
    x, y = blobs()
    model = mlp()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    schedule = lr_scheduler.CosineAnnealingLR(optimizer, T_max=12)
    for _ in range(12):
        for inputs, targets in [(x, y)]:
            optimizer.zero_grad()
            F.cross_entropy(model(inputs), targets).backward()
            optimizer.step()
            schedule.step()


@right
def parts_whose_gradients_are_read_before_they_go():
    x, y = blobs(48)
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    sums = [torch.zeros_like(p) for p in model.parameters()]
    for at, (inputs, targets) in enumerate(batches(x, y)):
        optimizer.zero_grad()
        F.cross_entropy(model(inputs), targets).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        for total, p in zip(sums, model.parameters(), strict=True):
            total += p.grad / 3
        if (at + 1) % 3 == 0:
            for total, p in zip(sums, model.parameters(), strict=True):
                p.grad.copy_(total)
                total.zero_()
            optimizer.step()


@right
def a_player_that_moves_each_third_time():
    x, _ = blobs(16)
    actor, critic = mlp(out=2), mlp(2, out=1)
    slow = torch.optim.SGD(actor.parameters(), lr=0.01)
    fast = torch.optim.SGD(critic.parameters(), lr=0.05)
    for at in range(12):
        fast.zero_grad()
        F.mse_loss(critic(actor(x).detach()), x[:, :1]).backward()
        fast.step()
        if at % 3 == 2:
            slow.zero_grad()
            (-critic(actor(x)).mean()).backward()
            slow.step()


@right
def gradients_watched_between_steps():
    x, y = blobs(32)
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    norms = []
    for at in range(12):
        optimizer.zero_grad()
        F.cross_entropy(model(x[at % 4 :: 4]), y[at % 4 :: 4]).backward()
        norms.append(float(sum(p.grad.norm() for p in model.parameters())))
        if at % 4 == 0 or norms[-1] > 0:
            optimizer.step()
