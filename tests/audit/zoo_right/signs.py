"""Right policies, whose signs are written in other ways."""

import torch
from torch import nn
from torch.distributions import Bernoulli, Categorical
from torch.nn import functional as F

from tests.audit.parts import mlp, play
from tests.audit.registry import right


def tried(scores):
    policy = Categorical(logits=scores)
    action = policy.sample()
    return policy.log_prob(action), (action == 1).float()


@right
def policy_with_its_minus_in_front():
    def loss_of(scores):
        log_prob, reward = tried(scores)
        return -(log_prob * reward).mean()

    play(mlp(), loss_of)


@right
def policy_with_the_minus_at_a_bernoulli():
    def loss_of(scores):
        policy = Bernoulli(logits=scores)
        action = policy.sample()
        returns = action.flip(0).cumsum(0).flip(0)
        return (-policy.log_prob(action) * returns).mean()

    play(nn.Linear(4, 1), loss_of)


@right
def policy_with_the_minus_at_the_reward():
    def loss_of(scores):
        log_prob, reward = tried(scores)
        return (log_prob * -reward).mean()

    play(mlp(), loss_of)


@right
def policy_with_what_is_missing_of_the_best_reward():
    def loss_of(scores):
        log_prob, reward = tried(scores)
        return (log_prob * (1 - reward)).mean()

    play(mlp(), loss_of)


@right
def policy_with_costs():
    def loss_of(scores):
        log_prob, cost = tried(scores)
        return (log_prob * cost).mean()

    play(mlp(), loss_of)


@right
def policy_by_a_weighted_cross_entropy():
    def loss_of(scores):
        action = torch.multinomial(scores.detach().softmax(1), 1)[:, 0]
        rewards = (action == 2).float()
        return (F.cross_entropy(scores, action, reduction="none") * rewards).mean()

    play(mlp(), loss_of)
