"""A small world to act in, and what the loops of both zoos train on moves in it."""

import copy
import random
from collections import deque

import torch

from tests.audit.parts import mlp


class Way:
    """A way that ends left and right; the right end is rewarded."""

    def reset(self):
        self.x = 2
        return self.seen()

    def seen(self):
        return [float(self.x == at) for at in range(5)]

    def step(self, action):
        self.x += 1 if action else -1
        return self.seen(), float(self.x == 4), self.x in (0, 4)


def filled(count=80):
    """Return a memory of moves by chance."""
    memory, way = deque(maxlen=count), Way()
    state = way.reset()
    while len(memory) < count:
        action = random.randrange(2)
        following, reward, done = way.step(action)
        memory.append((state, action, reward, following, done))
        state = way.reset() if done else following
    return memory


def learned(loss_of, steps=6):
    """Train a network of values by what `loss_of` makes of it, of its target and of moves from the memory."""
    learner = mlp(5, 2)
    still, memory = copy.deepcopy(learner).requires_grad_(False), filled()
    optimizer = torch.optim.Adam(learner.parameters(), lr=0.01)
    for _ in range(steps):
        loss = loss_of(learner, still, random.sample(memory, 32))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
