"""Flags that are taken out of a batch and left alone, and returns that stay in the order from last to first."""

import random
from itertools import accumulate

import numpy as np
import torch
from torch import nn
from torch.distributions import Categorical, Normal
from torch.nn import functional as F

from tests.audit.parts import mlp
from tests.audit.registry import fault
from tests.audit.ways import Way, filled, learned


@fault("wrong-return")
def flags_stacked_from_the_last_entry_of_each_move():
    def loss_of(learner, still, moves):
        seen = torch.tensor([move[0] for move in moves])
        acted = torch.tensor([move[1] for move in moves]).unsqueeze(1)
        reward = torch.tensor([move[2] for move in moves])
        then = torch.tensor([move[3] for move in moves])
        last = torch.tensor([move[-1] for move in moves], dtype=torch.float32)
        with torch.no_grad():
            goal = reward + 0.9 * still(then).max(1)[0]  # <- here
        print(len(last))
        return F.mse_loss(learner(seen).gather(1, acted).squeeze(1), goal)

    learned(loss_of)


@fault("wrong-return")
def columns_of_a_batch_that_was_turned():
    def loss_of(learner, still, moves):
        columns = list(zip(*moves, strict=True))
        obs, acts = torch.tensor(columns[0]), torch.tensor(columns[1])
        rews, nxt = torch.tensor(columns[2]), torch.tensor(columns[3])
        dones = torch.tensor(columns[4]).float()  # noqa: F841
        return F.smooth_l1_loss(
            learner(obs)[torch.arange(len(acts)), acts],
            rews + 0.95 * still(nxt).amax(dim=-1),  # <- here
        )

    learned(loss_of)


@fault("wrong-return")
def flags_unpacked_in_a_comprehension_of_their_own():
    class Learner:
        gamma = 0.9

        def target(self, still, moves):
            rewards = torch.tensor([r for _, _, r, _, _ in moves])
            following = torch.tensor([n for _, _, _, n, _ in moves])
            actions = torch.tensor([a for _, a, _, _, _ in moves])
            done = torch.tensor([float(d) for _, _, _, _, d in moves])
            del done
            return actions, rewards + self.gamma * still(following).max(dim=1).values  # <- here

    def loss_of(learner, still, moves):
        actions, wanted = Learner().target(still, moves)
        own = learner(torch.tensor([move[0] for move in moves]))
        return F.mse_loss(own.gather(1, actions[:, None])[:, 0], wanted.detach())

    learned(loss_of)


@fault("wrong-return")
def arrays_of_a_memory_by_one_index():
    class Memory:
        def __init__(self, moves):
            states, self.acts, self.gains, then, self.dones = map(np.array, zip(*moves, strict=True))
            self.now, self.then = states.astype(np.float32), then.astype(np.float32)

    learner, memory = mlp(5, 2), Memory(filled())
    optimizer = torch.optim.Adam(learner.parameters(), lr=0.01)
    for _ in range(6):
        rows = np.random.randint(0, len(memory.acts), 32)
        now, then = torch.from_numpy(memory.now[rows]), torch.from_numpy(memory.then[rows])
        acts = torch.from_numpy(memory.acts[rows])
        reward, done = torch.from_numpy(memory.gains[rows]).float(), torch.from_numpy(memory.dones[rows])  # noqa: F841
        with torch.no_grad():
            bootstrap = reward + 0.99 * learner(then).max(1).values  # <- here
        loss = F.mse_loss(learner(now).gather(1, acts[:, None])[:, 0], bootstrap)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def played(policy, episodes_of, steps=5, rounds=6):
    """Train a policy by what `episodes_of` makes of log-probabilities and rewards of each walk."""
    optimizer = torch.optim.Adam(policy.parameters(), lr=0.01)
    for _ in range(steps):
        losses = []
        for _ in range(3):
            way, lps, earned = Way(), [], []
            state = way.reset()
            for _ in range(rounds):
                choice = Categorical(logits=policy(torch.tensor(state)))
                action = choice.sample()
                lps.append(choice.log_prob(action))
                state, gain, over = way.step(action.item())
                earned.append(gain)
                if over:
                    break
            losses.append(episodes_of(torch.stack(lps), earned))
        optimizer.zero_grad()
        torch.stack(losses).sum().backward()
        optimizer.step()


@fault("wrong-return")
def discounted_by_a_function_that_appends():
    def worth(rews, discount=0.9):
        values, running = [], 0.0
        for rew in rews[::-1]:
            running = rew + discount * running
            values.append(running)  # <- here
        return values

    def loss_of(lps, earned):
        weights = torch.tensor(worth(earned))
        return -(lps * (weights - weights.mean())).sum()

    played(mlp(5, 2), loss_of)


@fault("wrong-return")
def summed_by_an_index_that_counts_down():
    gamma = 0.95

    def loss_of(lps, earned):
        total, kept = 0.0, []
        for t in range(len(earned) - 1, -1, -1):
            reward = earned[t]
            total = reward + gamma * total
            kept.append(total)  # <- here
        scores = torch.as_tensor(kept)
        return torch.sum(-lps * scores)

    played(mlp(5, 2), loss_of)


@fault("wrong-return")
def popped_off_the_end_of_the_rewards():
    class Reinforce:
        def __init__(self, gamma):
            self.gamma, self.togo = gamma, []

        def collect(self, rewards):
            self.togo = []
            G = 0
            while rewards:
                r = rewards.pop()
                G = r + self.gamma * G
                self.togo.append(G)  # <- here
            return torch.tensor(self.togo)

    def loss_of(lps, earned):
        advantage = Reinforce(0.9).collect(list(earned))
        return (-lps * advantage).mean()

    played(mlp(5, 2), loss_of)


@fault("wrong-return")
def accumulated_from_the_end():
    def loss_of(lps, earned):
        ret = torch.tensor(list(accumulate(reversed(earned), lambda total, r: r + 0.9 * total)))  # <- here
        return -(ret * lps).sum()

    played(mlp(5, 2), loss_of)


@fault("wrong-return")
def a_sum_in_two_lines_put_into_a_list():
    policy = nn.Linear(2, 1)
    optimizer = torch.optim.SGD(policy.parameters(), lr=0.01)
    for _ in range(5):
        logs, rewards, returns, g = [], [], [], 0.0
        for _ in range(random.randint(4, 8)):
            choice = Normal(policy(torch.randn(2)), 1.0)
            moved = choice.sample()
            logs.append(choice.log_prob(moved))
            rewards.append(-float(moved.abs()))
        for i in range(1, len(rewards) + 1):
            g *= 0.9
            g += rewards[-i]
            returns += [g]  # <- here
        loss = -torch.stack([log * ret for log, ret in zip(logs, returns, strict=True)]).sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
