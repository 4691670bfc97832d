"""Right targets where an episode ends, or where none does."""

import random

import torch
from torch.nn import functional as F

from tests.audit.parts import mlp
from tests.audit.registry import right
from tests.audit.ways import Way, learned


def moved(moves):
    return tuple(torch.tensor(it) for it in zip(*moves, strict=True))


@right
def ends_in_a_factor_of_the_next_values():
    def loss_of(learner, still, moves):
        s, a, r, s2, d = moved(moves)
        d = d.float()
        following = still(s2).max(1).values * (1 - d)
        return F.mse_loss(learner(s).gather(1, a[:, None])[:, 0], r + 0.9 * following)

    learned(loss_of)


@right
def ends_written_into_the_next_values():
    def loss_of(learner, still, moves):
        states, actions, rewards, following, dones = moved(moves)
        best = still(following).max(1).values
        best[dones] = 0.0
        return F.mse_loss(learner(states).gather(1, actions[:, None])[:, 0], rewards + 0.9 * best)

    learned(loss_of)


@right
def ends_that_choose_the_target():
    def loss_of(learner, still, moves):
        losses = []
        for state, action, reward, following, done in moves[:8]:
            best = still(torch.tensor(following)).max()
            target = torch.tensor(reward) if done else reward + 0.9 * best
            losses.append((learner(torch.tensor(state))[action] - target) ** 2)
        return torch.stack(losses).mean()

    learned(loss_of)


@right
def flags_that_are_never_set():
    def loss_of(learner, still, moves):
        s, a, r, s2, done = moved([(*move[:4], False) for move in moves])
        done = done.float()
        following = still(s2).max(1).values
        return F.mse_loss(learner(s).gather(1, a[:, None])[:, 0], r + 0.9 * following)

    learned(loss_of)


@right
def end_of_an_episode_left_before_its_target():
    learner, way = mlp(5, 2), Way()
    optimizer = torch.optim.Adam(learner.parameters(), lr=0.01)
    for _ in range(4):
        state = torch.tensor(way.reset())
        while True:
            action = random.randrange(2)
            following, reward, done = way.step(action)
            own = learner(state)[action]
            if done:
                loss = (own - reward) ** 2
            else:
                state = torch.tensor(following)
                with torch.no_grad():
                    loss_target = reward + 0.9 * learner(state).max()
                loss = (own - loss_target) ** 2
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if done:
                break
