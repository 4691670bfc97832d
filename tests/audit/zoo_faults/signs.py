"""Policies that learn to avoid what is rewarded."""

import torch
from torch import nn
from torch.distributions import Bernoulli, Categorical, Normal
from torch.nn import functional as F

from tests.audit.parts import mlp, play
from tests.audit.registry import fault


@fault("reward-minimised")
def likelihood_times_advantage_without_its_minus():
    def loss_of(scores):
        policy = Categorical(logits=scores)
        action = policy.sample()
        reward = (action == 1).double()
        advantage = reward - 0.3
        return (policy.log_prob(action) * advantage).mean()  # <- here

    play(mlp(), loss_of)


@fault("reward-minimised")
def steps_of_an_episode_added_up_with_their_returns():
    def loss_of(scores):
        steps, loss = [Bernoulli(logits=row[0]) for row in scores], torch.zeros(())
        actions = [step.sample() for step in steps]
        log_probs = [step.log_prob(action) for step, action in zip(steps, actions, strict=True)]
        returns = [float(sum(actions[at:])) for at in range(len(actions))]
        for log_prob, R in zip(log_probs, returns, strict=True):
            loss = loss + log_prob * R  # <- here
        return loss / len(returns)

    play(nn.Linear(4, 1), loss_of)


@fault("reward-minimised")
def picked_from_log_softmax_and_turned_twice():
    def loss_of(scores):
        action = torch.multinomial(scores.detach().softmax(1), 1)
        log_prob = -F.log_softmax(scores, 1).gather(1, action)
        rewards = torch.where(action == 2, 1.0, 0.1)
        return -(log_prob * rewards).sum()  # <- here

    play(mlp(), loss_of)


@fault("reward-minimised")
def a_continuous_action_with_an_entropy_bonus():
    def loss_of(scores):
        policy = Normal(scores[:, :1], scores[:, 1:].exp())
        action = policy.sample()
        reward = -((action - 1) ** 2)
        gain = (policy.log_prob(action) * (reward - reward.mean())).mean()  # <- here
        return gain - 0.01 * policy.entropy().mean()

    play(mlp(out=2), loss_of)


class Walk:
    """A walk on a line, whose right end is rewarded."""

    def play(self, policy):
        log_probs, rewards, at = [], [], 2
        for _ in range(5):
            steps = Categorical(logits=policy(F.one_hot(torch.tensor(at), 5).float()))
            action = steps.sample()
            log_probs.append(steps.log_prob(action))
            at = min(max(at + 2 * int(action) - 1, 0), 4)
            rewards.append(1.0 if at == 4 else -0.05)
        return log_probs, rewards


def learned(episode_loss, episodes=3):
    """Train a policy on the walk by the mean of what `episode_loss` makes of each episode."""
    policy, walk = mlp(5, 2), Walk()
    optimizer = torch.optim.Adam(policy.parameters(), lr=0.01)
    for _ in range(5):
        terms = []
        for _ in range(episodes):
            log_probs, rews = walk.play(policy)
            terms.append(episode_loss(log_probs, rews))
        loss = torch.stack(terms).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def to_go(earned, gamma=0.9):
    """Return what follows each step, discounted."""
    out, g = [], 0.0
    for r in reversed(earned):
        g = r + gamma * g
        out.insert(0, g)
    return torch.tensor(out)


@fault("reward-minimised")
def sums_of_episodes_with_what_a_function_makes_of_their_rewards():
    def episode_loss(log_probs, rews):
        return (torch.stack(log_probs) * (to_go(rews) - 0.3)).sum()  # <- here

    learned(episode_loss)


@fault("reward-minimised")
def inner_product_with_weights_that_are_advantages():
    def scaled(values):
        return (values - values.mean()) / (values.std() + 1e-6)

    def episode_loss(log_probs, rews):
        weights = scaled(to_go(rews))
        return torch.stack(log_probs) @ weights  # <- here

    learned(episode_loss)


@fault("reward-minimised")
def steps_of_an_episode_and_what_follows_them_gone_through_in_pairs():
    def episode_loss(log_probs, rews):
        total = torch.zeros(())
        for log_prob, g in zip(log_probs, to_go(rews), strict=True):
            total = total + log_prob * g  # <- here
        return total

    learned(episode_loss)


@fault("reward-minimised")
def weights_of_all_episodes_kept_in_one_list():
    policy, walk = mlp(5, 2), Walk()
    optimizer = torch.optim.Adam(policy.parameters(), lr=0.01)

    def compute_loss(log_probs, weights):
        return (log_probs * weights).mean()  # <- here

    for _ in range(5):
        kept, batch_weights = [], []
        for _ in range(3):
            log_probs, rewards = walk.play(policy)
            kept += log_probs
            batch_weights += [sum(rewards)] * len(rewards)
        loss = compute_loss(torch.stack(kept), torch.as_tensor(batch_weights))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
