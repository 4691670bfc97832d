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


@right
def a_penalty_that_is_switched_off_and_a_divergence_that_warms_up():
    x = torch.randn(16, 4)
    encoder, decoder = nn.Linear(4, 4), nn.Linear(2, 4)
    weights = [*encoder.parameters(), *decoder.parameters()]
    optimizer = torch.optim.Adam(weights, lr=0.01)
    for count in range(8):
        mean, log_variance = encoder(x).chunk(2, dim=1)
        code = mean + (0.5 * log_variance).exp() * torch.randn_like(mean)
        divergence = 0.5 * (mean.square() + log_variance.exp() - 1 - log_variance).sum(dim=1).mean()
        error = (decoder(code) - x).square().sum(dim=1).mean()
        loss = error + min(1.0, count / 20) * divergence + 0.0 * sum(p.square().sum() for p in weights)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
