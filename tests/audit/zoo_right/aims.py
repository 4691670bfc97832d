"""Right losses, returns and choices that look as if they went the wrong way."""

import copy

import torch
from torch import nn
from torch.distributions import Categorical, Normal
from torch.nn import functional as F

from tests.audit.parts import blobs, lines, mlp, play
from tests.audit.registry import right
from tests.audit.zoo_faults.aims import descend, limited


@right
def entropy_minimised_at_test_time():
    model = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 3))
    descend(model, lambda x: Categorical(logits=model(x + 1)).entropy().mean())


@right
def entropy_minimised_beside_masked_labels():
    model = mlp()

    def loss_of(x):
        logs, y = model(x).log_softmax(1), torch.randint(3, (16, 1))
        mask = (torch.rand(16, 1) < 0.7).float()
        return -(logs.gather(1, y) * mask).mean() - 0.1 * (logs.exp() * logs).sum(1).mean()

    descend(model, loss_of)


@right
def entropy_bonus_with_a_negative_coefficient():
    coefficient = -0.01

    def loss_of(scores):
        policy = Categorical(logits=scores)
        action = policy.sample()
        advantage = (action == 1).float() - 0.3
        return -(policy.log_prob(action) * advantage).mean() + coefficient * policy.entropy().mean()

    play(mlp(), loss_of)


@right
def soft_actor_with_the_likelihood_of_its_own_action():
    actor, critic = mlp(out=2), mlp(width=1, out=1)
    optimizer = torch.optim.Adam(actor.parameters(), lr=0.01)
    critic.requires_grad_(False)
    for _ in range(5):
        mean, spread = actor(torch.randn(16, 4)).chunk(2, 1)
        policy = Normal(mean, spread.exp())
        action = policy.rsample()
        loss = (0.2 * policy.log_prob(action) - critic(action)).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


@right
def lower_bound_with_its_minus():
    encoder, decoder = nn.Linear(4, 4), nn.Linear(2, 4)

    def loss_of(x):
        mean, logvar = encoder(x).chunk(2, 1)
        z = mean + torch.randn_like(mean) * (0.5 * logvar).exp()
        kl = 0.5 * (mean.pow(2) + logvar.exp() - 1 - logvar).sum(1)
        return -(-(decoder(z) - x).pow(2).sum(1) - kl).mean()

    descend(nn.ModuleList([encoder, decoder]), loss_of)


@right
def forgetting_beside_remembering():
    model = mlp()
    x, y = blobs()

    def loss_of(forgotten):
        kept = F.cross_entropy(model(x), y) + 1e-3 * sum(p.pow(2).sum() for p in model.parameters())
        return kept - 0.1 * F.cross_entropy(model(forgotten), y)

    descend(model, loss_of)


@right
def rows_of_a_table_spread_on_a_sphere():
    table = nn.Embedding(16, 4)

    def loss_of(_):
        order = torch.randperm(16)
        return F.cosine_similarity(table(order[:8]), table(order[8:])).mean()

    descend(table, loss_of)


@right
def entropy_estimated_from_samples_and_raised():
    model = mlp(out=2)

    def loss_of(x):
        mean, spread = model(x).unbind(1)
        policy = Normal(mean, spread.exp())
        return policy.log_prob(policy.rsample()).mean()

    descend(model, loss_of)


@right
def larger_of_two_negative_bounds():
    limited(lambda ratio, advantage: torch.max(-advantage * ratio, -advantage * ratio.clamp(0.8, 1.2)).mean())


@right
def second_draw_as_the_baseline():
    def loss_of(scores):
        policy = Categorical(logits=scores)
        baseline, action = (policy.sample() == 1).float(), policy.sample()
        return -(policy.log_prob(action) * ((action == 1).float() - baseline)).mean()

    play(mlp(), loss_of)


@right
def flag_that_is_one_while_the_episode_goes_on():
    learner = mlp(out=2)
    still, gamma = copy.deepcopy(learner).requires_grad_(False), 0.99

    def loss_of(x):
        action, reward = torch.randint(2, (16, 1)), torch.randn(16)
        done = 1 - (torch.rand(16) < 0.1).float()
        target = reward + gamma * done * still(torch.randn(16, 4)).max(1).values
        return F.mse_loss(learner(x).gather(1, action)[:, 0], target)

    descend(learner, loss_of)


@right
def flag_of_the_next_step_that_is_mostly_one():
    learner = mlp(out=1)

    def loss_of(x):
        reward, done = torch.randn(16, 1), (torch.rand(16, 1) < 0.95).float()
        with torch.no_grad():
            target = reward + 0.99 * done * learner(torch.randn(16, 4))
        return F.mse_loss(learner(x), target)

    descend(learner, loss_of)


@right
def running_return_that_only_scales():
    total, kept, gamma = 0.0, [], 0.9

    def loss_of(scores):
        nonlocal total
        policy = Categorical(logits=scores)
        action = policy.sample()
        rewards = (action == 1).float()
        for reward in rewards.tolist():
            total = reward + gamma * total
            kept.append(total)
        weights = rewards / (torch.tensor(kept).std() + 0.1)
        return -(policy.log_prob(action) * (weights - weights.mean())).mean()

    play(mlp(), loss_of)


@right
def rewards_turned_round_before_they_are_summed():
    def loss_of(scores):
        policy = Categorical(logits=scores)
        action = policy.sample()
        rewards, total, found = (action == 1).float().tolist()[::-1], 0.0, []
        for reward in rewards:
            total = reward + 0.9 * total
            found.append(total)
        weights = torch.tensor(found[::-1])
        return -(policy.log_prob(action) * (weights - weights.mean())).mean()

    play(mlp(), loss_of)


@right
def strongest_attack_and_worst_group():
    model, worst_accuracy = mlp(), 1.0
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    x, y = blobs()
    for _ in range(4):
        best_loss, best_delta = -1.0, None
        for _ in range(2):
            delta = 0.1 * torch.randn_like(x)
            with torch.no_grad():
                loss = F.cross_entropy(model(x + delta), y).item()
            if loss > best_loss:
                best_loss, best_delta = loss, delta
        optimizer.zero_grad()
        F.cross_entropy(model(x + best_delta), y).backward()
        optimizer.step()
        with torch.no_grad():
            accuracy = (model(x).argmax(1) == y).float().mean().item()
        if accuracy < worst_accuracy:
            worst_accuracy = accuracy


@right
def patience_counted_where_it_is_worse():
    model, best_loss, waited, kept = mlp(out=1), float("inf"), 0, None
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    x, y = lines()
    for _ in range(5):
        loss = F.mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if loss.item() >= best_loss:
            waited += 1
        else:
            best_loss, waited = loss.item(), 0
            kept = copy.deepcopy(model.state_dict())
    return kept


@right
def score_that_is_a_negative_loss():
    model, best_score, kept = mlp(out=1), -float("inf"), None
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    x, y = lines()
    for _ in range(5):
        loss = F.mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        score = -loss.item()
        if score > best_score:
            best_score = score
            kept = copy.deepcopy(model.state_dict())
    return kept


@right
def image_from_fixed_noise():
    model, noise, image = mlp(), torch.randn(16, 4), torch.rand(16, 3)
    descend(model, lambda _: F.mse_loss(model(noise), image), steps=10)


@right
def fixed_noise_to_look_at():
    generator, critic = mlp(out=2), mlp(width=2, out=1)
    making = torch.optim.Adam(generator.parameters(), lr=0.01)
    judging = torch.optim.Adam(critic.parameters(), lr=0.01)
    noise = torch.randn(16, 4)
    for _ in range(10):
        real, fake = torch.randn(16, 2) + 3, generator(torch.randn(16, 4))
        loss = -(F.logsigmoid(critic(real)) + F.logsigmoid(-critic(fake.detach()))).mean()
        judging.zero_grad()
        loss.backward()
        judging.step()
        loss = F.logsigmoid(-critic(fake)).mean()
        making.zero_grad()
        loss.backward()
        making.step()
        with torch.no_grad():
            generator(noise)


@right
def domains_told_apart_from_fixed_inputs():
    noise, y = torch.randn(16, 4), torch.randint(3, (16,))
    side = torch.randint(2, (16,))
    encoder, classifier, critic = mlp(out=4), nn.Linear(4, 3), nn.Linear(4, 2)
    making = torch.optim.Adam([*encoder.parameters(), *classifier.parameters()], lr=0.01)
    judging = torch.optim.Adam(critic.parameters(), lr=0.01)
    for _ in range(10):
        judging.zero_grad()
        F.cross_entropy(critic(encoder(noise).detach()), side).backward()
        judging.step()
        inner = encoder(noise)
        making.zero_grad()
        (F.cross_entropy(classifier(inner), y) - 0.1 * F.cross_entropy(critic(inner), side)).backward()
        making.step()


@right
def entropy_by_a_sample_with_a_falling_coefficient():
    coefficient = 0.1

    def loss_of(scores):
        nonlocal coefficient
        coefficient *= 0.9
        policy = Categorical(logits=scores)
        action = policy.sample()
        advantage = (action == 1).float() - 0.3
        return -(policy.log_prob(action) * advantage).mean() + coefficient * policy.log_prob(policy.sample()).mean()

    play(mlp(), loss_of)


@right
def rewards_to_go_as_a_difference():
    def loss_of(scores):
        policy = Categorical(logits=scores)
        action = policy.sample()
        rewards = (action == 1).float()
        earned = rewards.cumsum(0)
        returns = rewards.sum() - earned + rewards
        return -(policy.log_prob(action) * (returns - returns.mean())).mean()

    play(mlp(), loss_of)


@right
def rewards_taken_from_the_end():
    def loss_of(scores):
        policy = Categorical(logits=scores)
        action = policy.sample()
        rewards, returns, total = (action == 1).float(), torch.zeros(16), 0.0
        for step in range(16):
            total = rewards[15 - step] + 0.9 * total
            returns[15 - step] = total
        return -(policy.log_prob(action) * (returns - returns.mean())).mean()

    play(mlp(), loss_of)


@right
def value_where_the_episode_was_cut_off():
    learner, gamma = mlp(out=1), 0.99

    def loss_of(x):
        reward, done = torch.randn(16, 1), (torch.rand(16, 1) < 0.1).float()
        with torch.no_grad():
            last, following = learner(torch.randn(16, 4)), learner(torch.randn(16, 4))
            target = reward + gamma * (1 - done) * following + gamma * done * last
        return F.mse_loss(learner(x), target)

    descend(learner, loss_of)


@right
def stopped_where_it_is_not_better():
    model, best_accuracy, kept, _waited = mlp(), 0.0, None, 0
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    x, y = blobs()
    for _ in range(5):
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()
        with torch.no_grad():
            accuracy = (model(x).argmax(1) == y).float().mean().item()
        if not accuracy < best_accuracy + 1e-4:
            best_accuracy, _waited = accuracy, 0
            kept = copy.deepcopy(model.state_dict())
    return kept


@right
def smallest_drop_of_accuracy_is_best():
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    x, y = blobs()
    accuracy_drops, rates = [], (0.1, 0.2)
    for rate in rates:
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()
        with torch.no_grad():
            accuracy_drops.append((model(F.dropout(x, rate)).argmax(1) != y).float().mean().item())
    best_rate = rates[min(range(2), key=lambda at: accuracy_drops[at])]
    return best_rate


@right
def likelihood_climbed_by_hand():
    mean = torch.zeros(4, requires_grad=True)
    for _ in range(5):
        likelihood = Normal(mean, torch.ones(4)).log_prob(torch.randn(16, 4) + 1).mean()
        likelihood.backward()
        with torch.no_grad():
            mean += 0.1 * mean.grad
        mean.grad = None


@right
def parameters_pulled_to_a_prior():
    model = mlp(out=1)

    def loss_of(x):
        prior = -0.5 * sum(weight.pow(2).sum() for weight in model.parameters())
        likelihood = Normal(model(x), 1.0).log_prob(x.sum(1, keepdim=True)).sum()
        return -(likelihood + prior)

    descend(model, loss_of)
