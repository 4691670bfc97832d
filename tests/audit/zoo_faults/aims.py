"""Losses that go the wrong way, returns that are none, and choices of the worst."""

import copy

import torch
from torch import nn
from torch.distributions import Categorical, Normal, kl_divergence
from torch.nn import functional as F

from tests.audit.parts import blobs, lines, mlp, play
from tests.audit.registry import fault


def descend(model, loss_of, steps=5):
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(steps):
        loss = loss_of(torch.randn(16, 4))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


@fault("wrong-way")
def entropy_of_a_policy_by_hand_and_punished():
    def loss_of(scores):
        logs = F.log_softmax(scores, dim=-1)
        action = torch.multinomial(scores.detach().softmax(1), 1)
        gain = (action == 1).float() - 0.3
        entropy = -(logs.exp() * logs).sum(-1).mean()
        policy_loss = -(logs.gather(1, action) * gain).mean()
        return policy_loss + 0.01 * entropy  # <- here

    play(mlp(), loss_of)


@fault("wrong-way")
def entropy_of_a_continuous_policy_punished():
    def loss_of(scores):
        policy = Normal(scores[:, :1], scores[:, 1:].exp())
        action = policy.sample()
        advantage = 0.5 - (action - 1).abs()
        return -(policy.log_prob(action) * advantage).mean() + 0.01 * policy.entropy().mean()  # <- here

    play(mlp(out=2), loss_of)


@fault("wrong-way")
def divergence_taken_away():
    encoder, decoder = nn.Linear(4, 4), nn.Linear(2, 4)

    def loss_of(x):
        mean, spread = encoder(x).chunk(2, 1)
        posterior = Normal(mean, spread.exp())
        prior = Normal(torch.zeros_like(mean), torch.ones_like(mean))
        error = F.mse_loss(decoder(posterior.rsample()), x)
        return error - 0.1 * kl_divergence(posterior, prior).mean()  # <- here

    descend(nn.ModuleList([encoder, decoder]), loss_of)


@fault("wrong-way")
def lower_bound_made_smaller():
    encoder, decoder = nn.Linear(4, 4), nn.Linear(2, 4)

    def loss_of(x):
        mean, logvar = encoder(x).chunk(2, 1)
        z = mean + torch.randn_like(mean) * (0.5 * logvar).exp()
        kl = -0.5 * (1 + logvar - mean.pow(2) - logvar.exp()).sum(1)
        likelihood = -(decoder(z) - x).pow(2).sum(1)
        return (likelihood - kl).mean()  # <- here

    descend(nn.ModuleList([encoder, decoder]), loss_of)


@fault("wrong-way")
def weights_that_are_paid_for():
    model = mlp(out=1)

    def loss_of(x):
        loss = F.mse_loss(model(x), x.sum(1, keepdim=True))
        for weight in model.parameters():
            loss = loss - 1e-3 * weight.abs().sum()  # <- here
        return loss

    descend(model, loss_of)


@fault("wrong-way")
def two_views_driven_apart():
    body, head = mlp(out=6), nn.Linear(6, 6)

    def loss_of(x):
        one, other = head(body(x)), body(x + 0.1 * torch.randn_like(x)).detach()
        return (F.normalize(one, dim=1) * F.normalize(other, dim=1)).sum(1).mean()  # <- here

    descend(nn.ModuleList([body, head]), loss_of)


@fault("wrong-way")
def likelihood_made_small():
    model = mlp(out=2)

    def loss_of(x):
        mean, spread = model(x).unbind(1)
        return Normal(mean, F.softplus(spread) + 0.1).log_prob(x.sum(1)).mean()  # <- here

    descend(model, loss_of)


def limited(score):
    """Train a policy for a few rounds by what `score` makes of ratios and advantages."""
    policy = mlp()
    optimizer = torch.optim.Adam(policy.parameters(), lr=0.01)
    for _ in range(2):
        x = torch.randn(16, 4)
        with torch.no_grad():
            before = Categorical(logits=policy(x))
            action = before.sample()
        advantage = (action == 1).float() - 0.4
        for _ in range(3):
            now = Categorical(logits=policy(x)).log_prob(action)
            loss = score((now - before.log_prob(action)).exp(), advantage)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()


@fault("wrong-way")
def larger_of_two_bounds():
    def score(ratio, advantage):
        one, other = ratio * advantage, ratio.clamp(0.8, 1.2) * advantage
        return -torch.max(one, other).mean()  # <- here

    limited(score)


@fault("reward-minimised")
def bound_without_its_minus():
    def score(ratio, advantage):
        one, other = ratio * advantage, ratio.clamp(0.8, 1.2) * advantage
        return torch.min(one, other).mean()  # <- here

    limited(score)


@fault("other-sample")
def action_drawn_again_for_its_likelihood():
    def loss_of(scores):
        policy = Categorical(logits=scores)
        action = policy.sample()
        reward = (action == 1).float()
        return -(policy.log_prob(policy.sample()) * (reward - reward.mean())).mean()  # <- here

    play(mlp(), loss_of)


@fault("wrong-return")
def value_kept_where_the_episode_ended():
    learner = mlp(out=2)
    still, gamma = copy.deepcopy(learner).requires_grad_(False), 0.99

    def loss_of(x):
        action, reward, done = torch.randint(2, (16, 1)), torch.randn(16), (torch.rand(16) < 0.1).float()
        best = still(torch.randn(16, 4)).max(1).values
        target = reward + gamma * best * done  # <- here
        return F.mse_loss(learner(x).gather(1, action)[:, 0], target)

    descend(learner, loss_of)


@fault("wrong-return")
def advantages_summed_from_the_first_step():
    def summed(rewards, gamma=0.9):
        total, found = 0.0, []
        for reward in rewards:  # <- here
            total = reward + gamma * total
            found.append(total)
        return torch.tensor(found)

    def loss_of(scores):
        policy = Categorical(logits=scores)
        action = policy.sample()
        weights = summed((action == 1).float().tolist())
        return -(policy.log_prob(action) * (weights - weights.mean())).mean()

    play(mlp(), loss_of)


@fault("worst-kept")
def largest_loss_is_kept():
    model = mlp(out=1)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    x, y = lines()
    best_loss, kept = 0.0, None
    for _ in range(4):
        loss = F.mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        with torch.no_grad():
            val_loss = F.mse_loss(model(x), y).item()
        if val_loss > best_loss:  # <- here
            best_loss = val_loss
            kept = copy.deepcopy(model.state_dict())
    model.load_state_dict(kept)


@fault("worst-kept")
def nothing_is_below_the_first_best():
    model = mlp(out=1)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    x, y = lines()
    best_loss, kept = 0.0, None
    for _ in range(4):
        loss = F.mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if loss.item() < best_loss:  # <- here
            best_loss = loss.item()
            kept = copy.deepcopy(model.state_dict())
    return kept


@fault("worst-kept")
def model_of_the_lowest_accuracy():
    x, y = blobs()
    models, accuracies = [], []
    for rate in (0.01, 0.1):
        model = mlp()
        optimizer = torch.optim.SGD(model.parameters(), lr=rate)
        for _ in range(4):
            optimizer.zero_grad()
            F.cross_entropy(model(x), y).backward()
            optimizer.step()
        with torch.no_grad():
            accuracies.append((model(x).argmax(1) == y).float().mean().item())
        models.append(model)
    best = models[min(range(2), key=lambda at: accuracies[at])]  # <- here
    return best


@fault("noise-once", "zero-gradient")
def generator_of_one_draw():
    generator, critic = mlp(out=2), mlp(width=2, out=1)
    making = torch.optim.Adam(generator.parameters(), lr=0.01)
    judging = torch.optim.Adam(critic.parameters(), lr=0.01)
    noise = torch.randn(16, 4)  # <- here
    for _ in range(10):
        real = torch.randn(16, 2) + 3
        with torch.no_grad():
            fake = generator(noise)
        loss = critic(fake).mean() - critic(real).mean() + critic(real).pow(2).mean()
        judging.zero_grad()
        loss.backward()
        judging.step()
        loss = -critic(generator(noise)).mean()
        making.zero_grad()
        loss.backward()
        making.step()
