"""Models that are loaded from another one, and lose nothing by it."""

import copy

import torch
from torch.nn import functional as F

from tests.audit.parts import blobs, mlp, trained
from tests.audit.registry import right


@right
def target_from_the_online_network():
    online, target = mlp(out=2), mlp(out=2)
    optimizer = torch.optim.Adam(online.parameters(), lr=0.01)
    for step in range(24):
        if step % 6 == 0:
            target.load_state_dict(online.state_dict())
        with torch.no_grad():
            goal = torch.randn(16) + 0.9 * target(torch.randn(16, 4)).max(dim=1).values
        loss = F.smooth_l1_loss(online(torch.randn(16, 4))[:, 0], goal)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


@right
def each_trial_from_one_start():
    start = mlp()
    start(torch.randn(1, 4))
    model = mlp()
    for rate in (0.1, 0.05, 0.02, 0.01, 0.005):
        model.load_state_dict(start.state_dict())
        optimizer = torch.optim.SGD(model.parameters(), lr=rate)
        x, y = blobs(16)
        for _ in range(4):
            optimizer.zero_grad()
            F.cross_entropy(model(x), y).backward()
            optimizer.step()


@right
def slow_weights_that_look_ahead():
    fast = mlp()
    slow = copy.deepcopy(fast)
    optimizer = torch.optim.SGD(fast.parameters(), lr=0.05)
    for _ in range(5):
        for _ in range(4):
            x, y = blobs(16)
            optimizer.zero_grad()
            F.cross_entropy(fast(x), y).backward()
            optimizer.step()
        with torch.no_grad():
            for behind, ahead in zip(slow.parameters(), fast.parameters(), strict=True):
                behind.lerp_(ahead, 0.5)
            slow(x)
        fast.load_state_dict(slow.state_dict())


@right
def best_weights_come_back():
    model = trained(mlp())
    kept = copy.deepcopy(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    lowest = float("inf")
    for _ in range(8):
        x, y = blobs(16)
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        if float(loss.detach()) < lowest:
            lowest = float(loss.detach())
            kept.load_state_dict(model.state_dict())
        else:
            model.load_state_dict(kept.state_dict())
