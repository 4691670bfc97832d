"""Right loops with several networks, several losses, or several optimizers."""

import copy

import torch
from torch import nn
from torch.nn import functional as F

from tests.audit.parts import blobs, lines, mlp
from tests.audit.registry import right


@right
def gan():
    generator = nn.Sequential(nn.Linear(2, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 4))
    critic = mlp(4, 1)
    g = torch.optim.Adam(generator.parameters(), lr=0.01)
    d = torch.optim.Adam(critic.parameters(), lr=0.01)
    bce = nn.BCEWithLogitsLoss()
    real = torch.randn(8, 4)
    for _ in range(6):
        d.zero_grad()
        bce(critic(real), torch.ones(8, 1)).backward()
        fake = generator(torch.randn(8, 2))
        bce(critic(fake.detach()), torch.zeros(8, 1)).backward()
        d.step()
        g.zero_grad()
        bce(critic(fake), torch.ones(8, 1)).backward()
        g.step()


@right
def wasserstein_with_penalty():
    generator, critic = mlp(2, 4), mlp(4, 1)
    g = torch.optim.Adam(generator.parameters(), lr=0.01)
    d = torch.optim.Adam(critic.parameters(), lr=0.01)
    real = torch.randn(8, 4)
    for step in range(9):
        with torch.no_grad():
            fake = generator(torch.randn(8, 2))
        mix = torch.rand(8, 1)
        between = (mix * real + (1 - mix) * fake).requires_grad_()
        (slope,) = torch.autograd.grad(critic(between).sum(), between, create_graph=True)
        penalty = (slope.norm(dim=1) - 1).pow(2).mean()
        d.zero_grad()
        (critic(fake).mean() - critic(real).mean() + 10 * penalty).backward()
        d.step()
        if step % 3 == 2:
            g.zero_grad()
            (-critic(generator(torch.randn(8, 2))).mean()).backward()
            g.step()


@right
def weight_clipping():
    generator, critic = mlp(2, 4), mlp(4, 1)
    g = torch.optim.RMSprop(generator.parameters(), lr=0.001)
    d = torch.optim.RMSprop(critic.parameters(), lr=0.001)
    real = torch.randn(8, 4)
    for _ in range(4):
        for _ in range(2):
            d.zero_grad()
            fake = generator(torch.randn(8, 2)).detach()
            (critic(fake).mean() - critic(real).mean()).backward()
            d.step()
            for p in critic.parameters():
                p.data.clamp_(-0.1, 0.1)
        g.zero_grad()
        (-critic(generator(torch.randn(8, 2))).mean()).backward()
        g.step()


@right
def q_learning():
    online = mlp(4, 2)
    target = copy.deepcopy(online)
    optimizer = torch.optim.Adam(online.parameters(), lr=0.01)
    for step in range(9):
        state, after, reward = torch.randn(8, 4), torch.randn(8, 4), torch.randn(8)
        with torch.no_grad():
            action = online(state).argmax(1)
            wanted = reward + 0.9 * target(after).max(1).values
        value = online(state).gather(1, action[:, None]).squeeze(1)
        optimizer.zero_grad()
        F.smooth_l1_loss(value, wanted).backward()
        torch.nn.utils.clip_grad_value_(online.parameters(), 1.0)
        optimizer.step()
        if step % 3 == 0:
            target.load_state_dict(online.state_dict())


@right
def actor_and_critic():
    actor, critic = mlp(4, 2), mlp(6, 1)
    slow = copy.deepcopy(critic).requires_grad_(False)
    a = torch.optim.Adam(actor.parameters(), lr=0.01)
    c = torch.optim.Adam(critic.parameters(), lr=0.01)
    for _ in range(6):
        state, action, reward = torch.randn(8, 4), torch.randn(8, 2), torch.randn(8, 1)
        with torch.no_grad():
            wanted = reward + 0.9 * slow(torch.cat([state, actor(state)], 1))
        c.zero_grad()
        F.mse_loss(critic(torch.cat([state, action], 1)), wanted).backward()
        c.step()
        a.zero_grad()
        (-critic(torch.cat([state, actor(state)], 1)).mean()).backward()
        a.step()
        for fast, kept in zip(critic.parameters(), slow.parameters(), strict=True):
            kept.data.mul_(0.9).add_(fast.data, alpha=0.1)


@right
def policy_with_two_losses():
    trunk, policy, value = nn.Linear(4, 8), nn.Linear(8, 2), nn.Linear(8, 1)
    optimizer = torch.optim.Adam([*trunk.parameters(), *policy.parameters(), *value.parameters()], lr=0.01)
    for _ in range(6):
        h = trunk(torch.randn(8, 4)).tanh()
        picked = torch.distributions.Categorical(logits=policy(h))
        action, returns = picked.sample(), torch.randn(8)
        estimate = value(h).squeeze(1)
        optimizer.zero_grad()
        (-(picked.log_prob(action) * (returns - estimate.detach())).mean()).backward(retain_graph=True)
        F.mse_loss(estimate, returns).backward()
        optimizer.step()


@right
def distillation():
    x, y = blobs()
    teacher, student = mlp(hidden=16), mlp()
    teacher.eval()
    optimizer = torch.optim.SGD(student.parameters(), lr=0.1)
    for _ in range(6):
        with torch.no_grad():
            wanted = teacher(x).softmax(1)
        out = student(x)
        loss = F.kl_div(out.log_softmax(1), wanted, reduction="batchmean") + F.cross_entropy(out, y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


@right
def moving_average():
    x, y = lines()
    model = mlp(out=1)
    average = copy.deepcopy(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for _ in range(6):
        optimizer.zero_grad()
        F.mse_loss(model(x), y).backward()
        optimizer.step()
        with torch.no_grad():
            for slow, fast in zip(average.parameters(), model.parameters(), strict=True):
                slow.lerp_(fast, 0.1)
    with torch.no_grad():
        print(float(F.mse_loss(average(x), y)))


@right
def one_pass_two_optimizers():
    x, _ = lines()
    encoder, decoder = nn.Linear(4, 2), nn.Linear(2, 4)
    one = torch.optim.SGD(encoder.parameters(), lr=0.05)
    two = torch.optim.Adam(decoder.parameters(), lr=0.01)
    for _ in range(6):
        one.zero_grad()
        two.zero_grad()
        F.mse_loss(decoder(encoder(x)), x).backward()
        one.step()
        two.step()


@right
def mixture_of_experts():
    class Mixture(nn.Module):
        def __init__(self):
            super().__init__()
            self.gate = nn.Linear(4, 6)
            self.experts = nn.ModuleList(nn.Linear(4, 3) for _ in range(6))

        def forward(self, x):
            weight, picked = self.gate(x).softmax(1).max(1)
            out = torch.zeros(len(x), 3)
            for at, expert in enumerate(self.experts):
                chosen = picked == at
                if chosen.any():
                    out = out.index_put((chosen.nonzero().squeeze(1),), expert(x[chosen]) * weight[chosen, None])
            return out

    x, y = blobs(6)
    model = Mixture()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(6):
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()
