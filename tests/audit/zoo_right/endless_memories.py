"""Ends of episodes that are kept under any name, or need not be."""

import random
from collections import deque

import torch
from torch.nn import functional as F

from tests.audit.parts import mlp
from tests.audit.registry import right
from tests.audit.ways import Way


def trained(moves_of, target_of, steps=6):
    """Train a network of values on moves by what `target_of` makes of it and of a sample of them."""
    learner, memory = mlp(5, 2), moves_of(Way())
    optimizer = torch.optim.Adam(learner.parameters(), lr=0.01)
    for _ in range(steps):
        sample = random.sample(list(memory), 16)
        states, actions = (torch.tensor([it[at] for it in sample]) for at in (0, 1))
        own = learner(states).gather(1, actions[:, None]).squeeze(1)
        with torch.no_grad():
            wanted = target_of(learner, sample)
        optimizer.zero_grad()
        F.smooth_l1_loss(own, wanted).backward()
        optimizer.step()


@right
def end_kept_under_another_name():
    def moves(way):
        memory, state = deque(maxlen=100), way.reset()
        while len(memory) < 40:
            action = random.randrange(2)
            after, gain, fell = way.step(action)
            memory.append((state, action, gain, after, fell))
            state = way.reset() if fell else after
        return memory

    def target(learner, sample):
        gains, after = (torch.tensor([it[at] for it in sample]) for at in (2, 3))
        goes_on = 1 - torch.tensor([float(it[4]) for it in sample])
        return gains + 0.9 * learner(after).max(1).values * goes_on

    trained(moves, target)


@right
def end_turned_before_it_is_kept():
    learner, memory, way, gamma = mlp(5, 2), [], Way(), 0.9
    optimizer = torch.optim.Adam(learner.parameters(), lr=0.01)
    for _ in range(12):
        s, over = way.reset(), False
        while not over:
            a = random.randrange(2)
            s2, r, over = way.step(a)
            memory.append((s, a, r, s2, 1.0 - over))
            s = s2
            if len(memory) >= 16:
                bs, ba, br, bs2, bm = map(torch.tensor, zip(*random.sample(memory, 16), strict=True))
                with torch.no_grad():
                    goal = br + gamma * learner(bs2).max(dim=1).values * bm
                loss = F.mse_loss(learner(bs).gather(1, ba[:, None]).squeeze(1), goal)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()


@right
def last_states_that_are_worth_nothing():
    learner, way = mlp(5, 1), Way()
    optimizer = torch.optim.SGD(learner.parameters(), lr=0.05)
    for _ in range(6):
        now, over = way.reset(), False
        while not over:
            after, reward, over = way.step(random.randrange(2))
            if over:
                after = [0.0] * 5
            with torch.no_grad():
                wanted = reward + 0.9 * learner(torch.tensor(after)) * float(sum(after))
            loss = (learner(torch.tensor(now)) - wanted).square().sum()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            now = after


@right
def values_without_an_end():
    class Ring(Way):
        def step(self, action):
            self.x = (self.x + (1 if action else -1)) % 5
            return self.seen(), float(self.x == 4), False

    learner, ring = mlp(5, 1), Ring()
    optimizer = torch.optim.SGD(learner.parameters(), lr=0.05)
    now = ring.reset()
    for _ in range(20):
        after, reward, stop = ring.step(random.randrange(2))
        with torch.no_grad():
            wanted = reward + 0.9 * learner(torch.tensor(after))
        loss = (learner(torch.tensor(now)) - wanted).square().sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        now = after
        if stop:
            break
