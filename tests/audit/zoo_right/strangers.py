"""Right loops that look like the faults which other people's loops showed."""

import copy

import torch
from torch import nn
from torch.nn import functional as F

from tests.audit.parts import blobs, lines, mlp
from tests.audit.registry import right


def train(model, x, y, steps=6):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for _ in range(steps):
        optimizer.zero_grad()
        F.mse_loss(model(x), y).backward()
        optimizer.step()


@right
def best_state_copied():
    x, y = lines()
    model = mlp(out=1)
    best = copy.deepcopy(model.state_dict())
    by_hand = {name: value.clone() for name, value in model.state_dict().items()}
    train(model, x, y)
    model.load_state_dict(best)
    model.load_state_dict(by_hand)


@right
def state_loaded_where_it_came_from_at_once():
    x, y = lines()
    model = mlp(out=1)
    train(model, x, y, 3)
    model.load_state_dict(model.state_dict())
    state = model.state_dict()
    for value in state.values():
        value.mul_(0.5)
    model.load_state_dict(state)
    train(model, x, y, 3)


@right
def state_filled_up_with_what_fits():
    x, y = lines()
    pretrained = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 5)).state_dict()
    model = mlp(out=1)
    own = model.state_dict()
    train(model, x, y, 3)
    own.update({name: value for name, value in pretrained.items() if own[name].shape == value.shape})
    model.load_state_dict(own)
    train(model, x, y, 3)


@right
def teacher_that_stays():
    x, y = lines()
    teacher, model = mlp(out=1), mlp(out=1)
    state = teacher.state_dict()
    train(model, x, y)
    teacher.load_state_dict(state)
    with torch.no_grad():
        F.mse_loss(model(x), teacher(x))


@right
def target_that_follows():
    x, y = lines()
    online, target = mlp(out=1), mlp(out=1).requires_grad_(False)
    optimizer = torch.optim.SGD(online.parameters(), lr=0.05)
    state = online.state_dict()
    for _ in range(6):
        optimizer.zero_grad()
        F.mse_loss(online(x), y + 0.1 * target(x)).backward()
        optimizer.step()
        target.load_state_dict(state)


@right
def backbone_under_a_new_head():
    x, y = lines()
    old = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 1)).state_dict()
    model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 8), nn.Tanh())
    model.add_module("head", nn.Linear(8, 1))
    model.load_state_dict(old, strict=False)
    train(model, x, y)


@right
def adapters_only():
    x, y = lines()
    model = nn.ModuleDict({"body": mlp(out=8), "adapter": nn.Linear(8, 1)})
    model.load_state_dict({"adapter.weight": torch.zeros(1, 8), "adapter.bias": torch.zeros(1)}, strict=False)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for _ in range(6):
        optimizer.zero_grad()
        F.mse_loss(model["adapter"](model["body"](x)), y).backward()
        optimizer.step()


@right
def second_try_without_the_prefix():
    x, y = blobs()
    state = nn.DataParallel(mlp()).state_dict()
    model = mlp()
    if model.load_state_dict(state, strict=False).unexpected_keys:
        model.load_state_dict({name.removeprefix("module."): value for name, value in state.items()})
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for _ in range(6):
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()
