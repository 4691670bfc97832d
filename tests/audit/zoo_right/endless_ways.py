"""A right target in a world without an end, whose episodes are cut after so many steps."""

import torch
from torch import nn

from tests.audit.registry import right


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
