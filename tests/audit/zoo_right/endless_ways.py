"""Right targets in worlds without an end, whose episodes are cut after so many steps, and of records that say more."""

import random

import torch
from torch import nn
from torch.nn import functional as F

from tests.audit.parts import mlp
from tests.audit.registry import right
from tests.audit.ways import Way


class Ring:
    """Places in a ring, one of which is rewarded, for as long as anyone likes."""

    def reset(self):
        self.at, self.steps = 0, 0
        return self.seen()

    def seen(self):
        return torch.eye(4)[self.at]

    def step(self, action):
        self.at = (self.at + (1 if action else -1)) % 4
        self.steps += 1
        return self.seen(), float(self.at == 2), self.steps >= 6


@right
def values_of_a_ring_that_has_no_end():
    ring, critic, gamma = Ring(), nn.Linear(4, 1), 0.9
    optimizer = torch.optim.SGD(critic.parameters(), lr=0.1)
    for _ in range(3):
        state, done = ring.reset(), False
        while not done:
            following, reward, done = ring.step(torch.rand(()) < 0.5)
            with torch.no_grad():
                target = reward + gamma * critic(following)
            loss = (critic(state) - target).square().sum()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            state = following


class Cut(Ring):
    """The same, and it says early that the time is over."""

    def step(self, action):
        seen, reward, _ = super().step(action)
        if self.steps >= 6:
            return seen, reward, True
        return seen, reward, False


def walked(learn, world, seen, rounds=20):
    """Keep moves in a world, with their ends, and let values learn from some of them after each walk."""
    critic, kept = mlp(seen, 1), []
    optimizer = torch.optim.Adam(critic.parameters(), lr=0.01)
    for _ in range(rounds):
        state, done = world.reset(), False
        while not done:
            following, reward, done = world.step(random.random() < 0.5)
            kept.append((state, reward, following, done))
            state = following
        loss = learn(critic, random.sample(kept, min(len(kept), 16)))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


@right
def records_of_a_ring_that_has_no_end():
    def learn(critic, moves):
        s, r, n, e = zip(*moves, strict=True)  # noqa: RUF059
        with torch.no_grad():
            target = torch.tensor(r) + 0.9 * critic(torch.stack(n)).squeeze(1)
        return F.mse_loss(critic(torch.stack(s)).squeeze(1), target)

    walked(learn, Cut(), 4)


@right
def short_names_of_which_the_last_one_counts():
    def learn(critic, moves):
        s, r, n, e = map(torch.tensor, zip(*moves, strict=True))
        with torch.no_grad():
            target = r + 0.9 * critic(n).squeeze(1) * (~e)
        return F.mse_loss(critic(s).squeeze(1), target)

    walked(learn, Way(), 5)


@right
def batches_with_numbers_of_their_own_at_that_place():
    def learn(critic, moves):
        rows = [(at, s, r, n, 0.0 if e else 0.9) for at, (s, r, n, e) in enumerate(moves)]
        at, s, r, n, held = zip(*rows, strict=True)  # noqa: RUF059
        with torch.no_grad():
            target = torch.tensor(r) + torch.tensor(held) * critic(torch.tensor(n)).squeeze(1)
        return F.mse_loss(critic(torch.tensor(s)).squeeze(1), target)

    walked(learn, Way(), 5)
