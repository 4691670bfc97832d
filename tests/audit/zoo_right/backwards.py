"""Flags that a target reads by another name, and returns that are turned back, or fit as they are."""

import random
from collections import deque

import torch
from torch.nn import functional as F

from tests.audit.parts import mlp
from tests.audit.registry import right
from tests.audit.ways import Way, filled, learned
from tests.audit.zoo_faults.backwards import played


@right
def flags_of_columns_that_the_target_reads():
    def loss_of(learner, still, moves):
        seen = torch.tensor([move[0] for move in moves])
        acted = torch.tensor([move[1] for move in moves]).unsqueeze(1)
        reward = torch.tensor([move[2] for move in moves])
        then = torch.tensor([move[3] for move in moves])
        last = torch.tensor([move[4] for move in moves]).float()
        goes_on = 1 - last
        with torch.no_grad():
            goal = reward + 0.9 * goes_on * still(then).max(1)[0]
        return F.mse_loss(learner(seen).gather(1, acted).squeeze(1), goal)

    learned(loss_of)


@right
def values_that_are_zero_where_a_flag_is_set():
    def loss_of(learner, still, moves):
        columns = list(zip(*moves, strict=True))
        obs, acts, rews, nxt = (torch.tensor(it) for it in columns[:4])
        dones = torch.tensor(columns[4])
        value = still(nxt).amax(dim=-1)
        value[dones] = 0.0
        return F.smooth_l1_loss(learner(obs)[torch.arange(len(acts)), acts], rews + 0.95 * value)

    learned(loss_of)


@right
def one_flag_for_the_loop_and_one_for_the_target():
    learner, way, memory = mlp(5, 2), Way(), filled()
    optimizer = torch.optim.Adam(learner.parameters(), lr=0.01)
    state = way.reset()
    for _ in range(12):
        action = random.randrange(2)
        following, reward, terminal = way.step(action)
        memory.append((state, action, reward, following, bool(terminal)))
        state = way.reset() if terminal else following
        s, a, r, n, d = map(torch.tensor, zip(*random.sample(memory, 16), strict=True))
        with torch.no_grad():
            wanted = r + 0.9 * (1 - d.float()) * learner(n).amax(1)
        loss = F.mse_loss(learner(s).gather(1, a[:, None])[:, 0], wanted)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


@right
def returns_turned_back_where_they_are_made():
    def worth(rews, discount=0.9):
        values, running = [], 0.0
        for rew in reversed(rews):
            running = rew + discount * running
            values.append(running)
        return values[::-1]

    played(mlp(5, 2), lambda lps, earned: -(lps * torch.tensor(worth(earned))).sum())


@right
def returns_turned_back_by_the_caller():
    def from_the_end(rews, discount=0.9):
        found, running = [], 0.0
        for rew in reversed(rews):
            running = rew + discount * running
            found.append(running)
        return torch.tensor(found)

    def loss_of(lps, earned):
        weights = from_the_end(earned)
        weights = weights.flip(0)
        return -(lps * weights).sum()

    played(mlp(5, 2), loss_of)


@right
def likelihoods_that_are_turned_as_well():
    def loss_of(lps, earned):
        g, gains = 0.0, []
        for r in reversed(earned):
            g = r + 0.9 * g
            gains.append(g)
        return -(lps.flip(0) * torch.tensor(gains)).sum()

    played(mlp(5, 2), loss_of)


@right
def terms_collected_together_from_the_end():
    def loss_of(lps, earned):
        g, picked, sums = 0.0, [], []
        for t in range(len(earned) - 1, -1, -1):
            g = earned[t] + 0.9 * g
            sums.append(g)
            picked.append(lps[t])
        return -(torch.stack(picked) * torch.tensor(sums)).sum()

    played(mlp(5, 2), loss_of)


@right
def a_deque_filled_from_the_left():
    def loss_of(lps, earned):
        total, sums = 0.0, deque()
        for reward in reversed(earned):
            total = reward + 0.9 * total
            sums.appendleft(total)
        return -(lps * torch.tensor(list(sums))).sum()

    played(mlp(5, 2), loss_of)


@right
def returns_put_at_their_own_places():
    def loss_of(lps, earned):
        total, sums = 0.0, [0.0] * len(earned)
        for t in reversed(range(len(earned))):
            total = earned[t] + 0.9 * total
            sums[t] = total
        return -(lps * torch.tensor(sums)).sum()

    played(mlp(5, 2), loss_of)


@right
def returns_from_the_end_that_only_give_a_mean():
    def loss_of(lps, earned):
        running, from_last = 0.0, []
        for gain in reversed(earned):
            running = gain + 0.9 * running
            from_last.append(running)
        print(sum(from_last) / len(from_last))
        return -(lps * sum(earned)).sum()

    played(mlp(5, 2), loss_of)
