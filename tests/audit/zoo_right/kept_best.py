"""Right loops that write a value after they compared it, or a best one in more than one place."""

import copy

import torch
from torch.nn import functional as F

from tests.audit.parts import lines, mlp
from tests.audit.registry import right
from tests.audit.zoo_faults.kept_best import VALUES


def _epoch(model, optimizer, x, y):
    optimizer.zero_grad()
    F.mse_loss(model(x), y).backward()
    optimizer.step()


@right
def best_kept_past_a_guard():
    x, y = lines()
    model, best, kept = mlp(out=1), float("inf"), None
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for val in VALUES:
        _epoch(model, optimizer, x, y)
        if val >= best:
            continue
        best = val
        kept = copy.deepcopy(model.state_dict())
    model.load_state_dict(kept)


@right
def a_rate_by_the_last_loss():
    x, y = lines()
    model, last, rate = mlp(out=1), float("inf"), 0.01
    for val in VALUES:
        _epoch(model, torch.optim.SGD(model.parameters(), lr=rate), x, y)
        rate *= 1.05 if val < last else 0.5
        last = val


@right
def a_best_value_for_each_fold():
    for _fold in range(3):
        x, y = lines()
        model, best = mlp(out=1), 0.0
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        for val in VALUES:
            _epoch(model, optimizer, x, y)
            improved = val > best
            best = max(val, best)
            print(improved, best)


@right
def a_step_that_is_taken_back():
    x, y = lines()
    model, best, kept = mlp(out=1), float("inf"), None
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for val in VALUES:
        _epoch(model, optimizer, x, y)
        if val > best:
            model.load_state_dict(kept)
            val = best
        best, kept = val, copy.deepcopy(model.state_dict())


@right
def worse_ones_are_taken_at_times():
    x, y = lines()
    model, best, waited = mlp(out=1), float("inf"), 0
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for val in VALUES:
        _epoch(model, optimizer, x, y)
        if val < best:
            best, waited = val, 0
        else:
            waited += 1
            if waited >= 2:
                best, waited = val, 0
