"""Best values that take each new value, better or not."""

import copy

import torch
from torch.nn import functional as F

from tests.audit.parts import lines, mlp
from tests.audit.registry import fault

VALUES = (0.9, 0.5, 0.7, 0.6, 0.8, 0.4, 0.45)


@fault("worst-kept")
def score_written_after_the_comparison():
    x, y = lines()
    model, best_score, kept = mlp(out=1), 0.0, None
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for score in VALUES:
        optimizer.zero_grad()
        F.mse_loss(model(x), y).backward()
        optimizer.step()
        if score > best_score:
            kept = copy.deepcopy(model.state_dict())
        best_score = score  # <- here
    model.load_state_dict(kept)


@fault("worst-kept")
def both_branches_of_a_trainer_s_method():
    class Trainer:
        def __init__(self):
            self.model, self.best_val, self.waited = mlp(out=1), float("inf"), 0
            self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.01)

        def judge(self, val):
            if val < self.best_val:
                self.best_val, self.waited = val, 0
            else:
                self.best_val, self.waited = val, self.waited + 1  # <- here

        def fit(self, x, y):
            for val in VALUES:
                self.optimizer.zero_grad()
                F.mse_loss(self.model(x), y).backward()
                self.optimizer.step()
                self.judge(val)

    Trainer().fit(*lines())


@fault("worst-kept")
def better_or_not_is_noted_first():
    x, y = lines()
    model, best, count = mlp(out=1), torch.tensor(5.0), 0
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for number in VALUES:
        optimizer.zero_grad()
        F.mse_loss(model(x), y).backward()
        optimizer.step()
        val = torch.tensor(number)
        is_better = val < best
        best = val  # <- here
        count = 0 if is_better else count + 1
