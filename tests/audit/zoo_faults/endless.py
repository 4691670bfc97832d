"""Targets that go on where an episode ended: the flag is there, and nobody reads it."""

import random

import torch
from torch.nn import functional as F

from tests.audit.parts import mlp
from tests.audit.registry import fault
from tests.audit.ways import Way, filled, learned


@fault("wrong-return")
def flags_cast_and_never_read():
    gamma, memory = 0.95, filled()
    learner = mlp(5, 2)
    optimizer = torch.optim.Adam(learner.parameters(), lr=0.01)

    def update():
        s, a, r, s2, d = zip(*random.sample(memory, 32), strict=True)
        s, s2 = torch.tensor(s), torch.tensor(s2)
        a, r, d = torch.tensor(a), torch.tensor(r), torch.tensor(d, dtype=torch.float32)
        own = learner(s).gather(1, a[:, None]).squeeze(1)
        with torch.no_grad():
            expected = r + gamma * learner(s2).max(1).values  # <- here
        loss = F.smooth_l1_loss(own, expected)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    for _ in range(6):
        update()


@fault("wrong-return")
def flags_given_to_a_function_that_leaves_them_out():
    def target_of(still, rewards, following, dones):
        best = still(following).max(dim=1).values
        return rewards + 0.9 * best  # <- here

    def loss_of(learner, still, moves):
        states, actions, rewards, following, ends = (torch.tensor(it) for it in zip(*moves, strict=True))
        wanted = target_of(still, rewards, following, ends)
        return F.mse_loss(learner(states).gather(1, actions[:, None])[:, 0], wanted)

    learned(loss_of)


@fault("wrong-return")
def one_move_at_a_time_whose_end_only_ends_the_loop():
    learner, way, gamma = mlp(5, 2), Way(), 0.9
    optimizer = torch.optim.Adam(learner.parameters(), lr=0.01)
    for _ in range(4):
        state, done = way.reset(), False
        while not done:
            action = random.randrange(2)
            following, reward, done = way.step(action)
            with torch.no_grad():
                target = reward + gamma * learner(torch.tensor(following)).max()  # <- here
            loss = (learner(torch.tensor(state))[action] - target) ** 2
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            state = following
