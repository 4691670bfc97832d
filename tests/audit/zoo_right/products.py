"""Right loops with products of unlike shapes, all of which are meant."""

import torch
from torch import nn
from torch.nn import functional as F

from tests.audit.parts import blobs, lines, mlp
from tests.audit.registry import right


def played(policy, steps=7):
    """Return log-probabilities and rewards of one episode, in rows."""
    chosen, rewards = [], []
    for _ in range(steps):
        choice = torch.distributions.Categorical(logits=policy(torch.randn(4)))
        action = choice.sample()
        chosen.append(choice.log_prob(action))
        rewards.append(float(action) - 0.3)
    return torch.stack(chosen), torch.tensor(rewards)


@right
def each_step_with_its_return():
    policy = mlp(out=2)
    optimizer = torch.optim.Adam(policy.parameters(), lr=0.01)
    for _ in range(5):
        chosen, rewards = played(policy)
        returns = rewards.flip(0).cumsum(0).flip(0)
        objective = -(chosen * (returns - returns.mean())).sum()
        optimizer.zero_grad()
        objective.backward()
        optimizer.step()


@right
def each_step_with_all_later_rewards():
    policy = mlp(out=2)
    optimizer = torch.optim.Adam(policy.parameters(), lr=0.01)
    for _ in range(5):
        chosen, rewards = played(policy)
        later = torch.ones(7, 7).triu()
        objective = -(chosen[:, None] * rewards * later).sum() / 7
        optimizer.zero_grad()
        objective.backward()
        optimizer.step()


@right
def weights_of_samples_in_a_column():
    x, y = blobs(16, classes=4)
    weight = torch.rand(16, 1)
    model = mlp(out=4)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for _ in range(5):
        loss = (weight * (model(x) - F.one_hot(y, 4)).square()).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


@right
def product_of_two_directions():
    x, y = lines(16, 8)
    left, right_ = nn.Parameter(torch.randn(8, 1)), torch.randn(8)
    optimizer = torch.optim.SGD([left], lr=0.01)
    for _ in range(5):
        matrix = left * right_
        loss = F.mse_loss((x @ matrix).sum(1, keepdim=True), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


@right
def frequencies_of_a_learned_scale():
    x, y = blobs()
    times = torch.linspace(0, 1, 8).view(8, 1)
    scale = nn.Parameter(torch.rand(8))
    head = nn.Linear(8, 3)
    optimizer = torch.optim.SGD([scale, *head.parameters()], lr=0.05)
    for _ in range(5):
        table = (times * scale).sin()
        loss = F.cross_entropy(head(x.repeat(1, 2) @ table), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


@right
def pairs_ranked_by_signs():
    x, y = lines()
    sign = (y - y.T).sign()
    model = mlp(out=1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for _ in range(5):
        score = model(x)
        loss = F.softplus(-sign * (score - score.T)).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
