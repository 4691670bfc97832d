"""Settings that are unusual, and right where they stand."""

import torch
from torch import nn
from torch.nn import functional as F

from tests.audit.parts import blobs, epoch_of, lines, mlp, trained
from tests.audit.registry import right
from tests.audit.zoo_faults.far_off import descent


@right
def moments_as_for_two_players():
    net = mlp(out=1)
    descent(net, torch.optim.Adam(net.parameters(), lr=0.01, betas=(0.5, 0.9)), *lines())


@right
def moments_with_one_factor():
    net = mlp(out=1)
    descent(net, torch.optim.Adam(net.parameters(), lr=0.01, betas=(0.95, 0.95)), *lines())


@right
def eps_as_large_as_some_recipes_have_it():
    net = mlp(out=1)
    descent(net, torch.optim.Adam(net.parameters(), lr=0.05, eps=0.1), *lines())


@right
def strong_decay_that_leaves_room_to_learn():
    net = mlp(out=1)
    descent(net, torch.optim.AdamW(net.parameters(), lr=0.01, weight_decay=1.0), *lines(64), steps=40)


@right
def bound_that_holds_each_step_of_an_adaptive_optimizer():
    net = mlp(out=1)
    optimizer, params = torch.optim.Adam(net.parameters(), lr=0.02), list(net.parameters())
    descent(net, optimizer, *lines(64), between=lambda: nn.utils.clip_grad_norm_(params, 1e-4))


@right
def bound_that_makes_all_steps_of_one_length():
    net = mlp(out=1)
    optimizer, params = torch.optim.SGD(net.parameters(), lr=100.0), list(net.parameters())
    descent(net, optimizer, *lines(64), between=lambda: nn.utils.clip_grad_norm_(params, 1e-3))


@right
def statistics_that_were_loaded_and_stay():
    net = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8, momentum=0.0), nn.ReLU(), nn.Linear(8, 3))
    net[1].running_mean += 0.3
    trained(net, evaluate=True)


@right
def statistics_averaged_over_all_batches():
    net = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8, momentum=None), nn.ReLU(), nn.Linear(8, 3))
    trained(net, evaluate=True)


@right
def statistics_that_follow_quickly():
    net = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8, momentum=0.5), nn.ReLU(), nn.Linear(8, 3))
    trained(net, evaluate=True)


@right
def inputs_of_which_next_to_nothing_is_left():
    net, (x, _) = mlp(out=4, hidden=32), blobs(64)
    optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
    for _ in range(10):
        optimizer.zero_grad()
        F.mse_loss(net(F.dropout(x, 0.9)), x).backward()
        optimizer.step()


@right
def dropout_given_the_rest_of_what_is_kept():
    class Net(nn.Module):
        def __init__(self, keep_prob=0.4):
            super().__init__()
            self.first, self.second = nn.Linear(4, 64), nn.Linear(64, 3)
            self.drop = nn.Dropout(1 - keep_prob)

        def forward(self, x):
            return self.second(self.drop(torch.tanh(self.first(x))))

    epoch_of(Net(), F.cross_entropy, *blobs(64))


@right
def labels_smoothed_by_a_tenth():
    epoch_of(mlp(), nn.CrossEntropyLoss(label_smoothing=0.1), *blobs(64))


@right
def warm_up_whose_first_step_has_no_rate():
    net, (x, y) = mlp(out=1), lines()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05)
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: min(1.0, step / 5))
    for _ in range(40):
        optimizer.zero_grad()
        F.mse_loss(net(x), y).backward()
        optimizer.step()
        scheduler.step()
