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


def to_go(earned, gamma=0.9):
    """Return what follows each step, discounted."""
    out, g = [], 0.0
    for r in reversed(earned):
        g = r + gamma * g
        out.insert(0, g)
    return torch.tensor(out)


def missed(earned):
    """Return what each step earned less than the best one."""
    return torch.tensor([max(earned) - r for r in earned])


def episodes_by(term, sign=1):
    """Train a policy by the sum of what `term` makes of the likelihoods and rewards of each of three episodes."""

    def loss_of(scores):
        terms = []
        for rows in scores.split(5)[:3]:
            steps = Categorical(logits=rows)
            actions = steps.sample()
            rews = (actions == 1).float().tolist()
            terms.append(term(steps.log_prob(actions), rews))
        return sign * torch.stack(terms).mean()

    play(mlp(), loss_of)


@right
def policy_with_the_minus_at_the_mean_of_its_episodes():
    episodes_by(lambda log_probs, rews: (log_probs * (to_go(rews) - 0.3)).sum(), sign=-1)


@right
def policy_with_a_function_of_what_its_rewards_lack():
    def term(log_probs, rews):
        return (log_probs * missed(rews)).sum()

    episodes_by(term)


@right
def policy_with_a_baseline_less_what_follows():
    def term(log_probs, rews):
        gap = 0.3 - to_go(rews)
        return log_probs @ gap

    episodes_by(term)


@right
def policy_with_negative_weights_in_pairs():
    def term(log_probs, rews):
        weights = -to_go(rews)
        return sum(log_prob * weight for log_prob, weight in zip(log_probs, weights, strict=True))

    episodes_by(term)


@right
def policy_that_climbs_by_hand():
    policy = nn.Linear(4, 2)
    for _ in range(5):
        steps = Categorical(logits=policy(torch.randn(16, 4)))
        action = steps.sample()
        rewards = (action == 1).float()
        gain = (steps.log_prob(action) * rewards).mean()
        slopes = torch.autograd.grad(gain, list(policy.parameters()))
        with torch.no_grad():
            for parameter, slope in zip(policy.parameters(), slopes, strict=True):
                parameter.add_(slope, alpha=0.1)
