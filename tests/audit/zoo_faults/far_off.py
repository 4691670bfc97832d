"""Settings that undo the training."""

import torch
from torch import nn
from torch.nn import functional as F

from tests.audit.parts import blobs, epoch_of, lines, mlp, trained
from tests.audit.registry import fault


def descent(net, optimizer, x, y, loss_of=F.mse_loss, steps=20, between=lambda: None):
    """Make some steps on the same points."""
    for _ in range(steps):
        optimizer.zero_grad()
        loss_of(net(x), y).backward()
        between()
        optimizer.step()


@fault("setting-far-off")
def moments_in_each_others_place():
    net = mlp(out=1)
    descent(net, torch.optim.Adam(net.parameters(), lr=0.01, betas=(0.999, 0.9)), *lines())  # <- here


@fault("setting-far-off")
def moments_in_each_others_place_over_several_lines():
    net = mlp()
    optimizer = torch.optim.AdamW(
        net.parameters(),
        lr=0.003,
        betas=(0.98, 0.9),  # <- here
        weight_decay=0.01,
    )
    descent(net, optimizer, *blobs(), loss_of=F.cross_entropy)


@fault("setting-far-off", "rate-far-off", "nan-began", "dead-units")
def momentum_that_forgets_nothing():
    net = mlp(out=1)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.001, momentum=1.0)  # <- here
    descent(net, optimizer, *lines())


@fault("setting-far-off")
def exponent_without_its_minus():
    net = mlp(out=1)
    optimizer = torch.optim.Adam(net.parameters(), lr=0.001, eps=1e8)  # <- here
    descent(net, optimizer, *lines())


@fault("setting-far-off")
def decay_that_crushes_all_weights():
    net, (x, _) = mlp(out=1, hidden=16), lines(64)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1, weight_decay=6.0)  # <- here
    descent(net, optimizer, x, 2 * x[:, :1], steps=60)


@fault("setting-far-off")
def decoupled_decay_that_crushes_all_weights():
    net, (x, y) = mlp(hidden=16), blobs(64)
    optimizer = torch.optim.AdamW(net.parameters(), lr=0.01, weight_decay=30.0)  # <- here
    descent(net, optimizer, x, y, loss_of=F.cross_entropy, steps=30)


@fault("setting-far-off")
def bound_of_a_hundred_thousandth():
    net = mlp(out=1)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05)
    params = list(net.parameters())
    descent(net, optimizer, *lines(64), between=lambda: nn.utils.clip_grad_norm_(params, 1e-5))  # <- here


@fault("setting-far-off")
def bound_of_a_millionth_on_each_number():
    net, (x, y) = mlp(out=1), lines(64)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
    for _ in range(16):
        optimizer.zero_grad()
        F.mse_loss(net(x), y).backward()
        nn.utils.clip_grad_value_(net.parameters(), 1e-6)  # <- here
        optimizer.step()


@fault("setting-far-off")
def running_statistics_that_stand_still():
    net = nn.Sequential(
        nn.Linear(4, 8),
        nn.BatchNorm1d(8, momentum=0.0),  # <- here
        nn.ReLU(),
        nn.Linear(8, 3),
    )
    trained(net, evaluate=True)


@fault("setting-far-off")
def running_statistics_of_the_last_batch():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.stem = nn.Linear(4, 8)
            self.norm = nn.BatchNorm1d(8, eps=1e-3, momentum=0.99)  # <- here
            self.head = nn.Linear(8, 3)

        def forward(self, x):
            return self.head(self.norm(self.stem(x)).relu())

    trained(Net(), evaluate=True)


@fault("setting-far-off", "dead-units")
def dropout_told_what_to_keep():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second = nn.Linear(4, 64), nn.Linear(64, 1)

        def forward(self, x):
            hidden = F.relu(self.first(x))
            return self.second(F.dropout(hidden, 0.95, training=self.training))  # <- here

    epoch_of(Net(), F.mse_loss, *lines(64))


@fault("setting-far-off")
def dropout_given_a_share_called_keep():
    class Net(nn.Module):
        def __init__(self, keep_prob=0.8):
            super().__init__()
            self.first, self.second = nn.Linear(4, 64), nn.Linear(64, 3)
            self.drop = nn.Dropout(keep_prob)  # <- here

        def forward(self, x):
            return self.second(self.drop(torch.tanh(self.first(x))))

    epoch_of(Net(), F.cross_entropy, *blobs(64))


@fault("rate-zero")
def warm_up_in_whole_numbers_that_never_ends():
    net, (x, y) = mlp(out=1), lines()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: min(1, step // 100))  # <- here
    for _ in range(30):
        optimizer.zero_grad()
        F.mse_loss(net(x), y).backward()
        optimizer.step()
        scheduler.step()
