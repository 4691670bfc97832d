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
