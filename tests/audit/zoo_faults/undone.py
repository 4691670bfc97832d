"""Trained models that are loaded from what was to follow them."""

import copy

import torch
from torch import nn
from torch.nn import functional as F

from tests.audit.parts import blobs, mlp
from tests.audit.registry import fault


@fault("training-undone")
def online_network_from_the_target():
    online, target = mlp(out=2), mlp(out=2)
    target.load_state_dict(online.state_dict())
    optimizer = torch.optim.Adam(online.parameters(), lr=0.01)
    for step in range(24):
        state, after, reward = torch.randn(16, 4), torch.randn(16, 4), torch.randn(16)
        with torch.no_grad():
            goal = reward + 0.9 * target(after).max(dim=1).values
        loss = F.smooth_l1_loss(online(state)[:, 0], goal)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 6 == 5:
            online.load_state_dict(target.state_dict())  # <- here


@fault("training-undone")
def student_from_its_teacher_at_each_epoch():
    class Trainer:
        def __init__(self):
            self.student = mlp()
            self.teacher = copy.deepcopy(self.student).requires_grad_(False)
            self.optimizer = torch.optim.SGD(self.student.parameters(), lr=0.05)

        def epoch(self, x, y):
            for rows in torch.randperm(len(x)).split(8):
                self.optimizer.zero_grad()
                given = self.student(x[rows])
                loss = F.cross_entropy(given, y[rows]) + F.mse_loss(given, self.teacher(x[rows]))
                loss.backward()
                self.optimizer.step()
            self.student.load_state_dict(self.teacher.state_dict())  # <- here

    trainer, (x, y) = Trainer(), blobs(32)
    for _ in range(5):
        trainer.epoch(x, y)


@fault("training-undone")
def policy_from_its_snapshot_after_each_update():
    policy = nn.Linear(4, 2)
    old = copy.deepcopy(policy)
    optimizer = torch.optim.Adam(policy.parameters(), lr=0.01)
    for _ in range(5):
        state = torch.randn(32, 4)
        with torch.no_grad():
            before = old(state).log_softmax(1)
        for _ in range(3):
            ratio = (policy(state).log_softmax(1) - before).exp()[:, 0]
            loss = -(ratio * state[:, 0]).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        policy.load_state_dict(old.state_dict())  # <- here


@fault("copy-is-itself")
def target_that_is_the_online_network():
    online = mlp(out=2)
    target = online  # <- here
    optimizer = torch.optim.Adam(online.parameters(), lr=0.01)
    for step in range(12):
        with torch.no_grad():
            goal = torch.randn(16) + 0.9 * target(torch.randn(16, 4)).max(dim=1).values
        loss = F.smooth_l1_loss(online(torch.randn(16, 4))[:, 0], goal)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 4 == 3:
            target.load_state_dict(copy.deepcopy(online.state_dict()))
