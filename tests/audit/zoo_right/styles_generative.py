"""Right loops of generative, self-supervised and reinforcement learning."""

import copy
import itertools

import torch
from torch import nn
from torch.nn import functional as F

from tests.audit.parts import Dropping, blobs, mlp
from tests.audit.registry import right


def _set_requires_grad(nets, value):
    for net in nets:
        for p in net.parameters():
            p.requires_grad = value


@right
def cycle_of_two_generators():
    ab, ba, da, db = mlp(4, 4), mlp(4, 4), mlp(4, 1), mlp(4, 1)
    g = torch.optim.Adam(itertools.chain(ab.parameters(), ba.parameters()), lr=0.01)
    d = torch.optim.Adam(itertools.chain(da.parameters(), db.parameters()), lr=0.01)
    for _ in range(5):
        a, b = torch.randn(8, 4), torch.randn(8, 4) + 1
        fake_b, fake_a = ab(a), ba(b)
        _set_requires_grad([da, db], False)
        g.zero_grad()
        adversarial = (da(fake_a) - 1).pow(2).mean() + (db(fake_b) - 1).pow(2).mean()
        cycle = F.l1_loss(ba(fake_b), a) + F.l1_loss(ab(fake_a), b)
        (adversarial + 10 * cycle).backward()
        g.step()
        _set_requires_grad([da, db], True)
        d.zero_grad()
        for critic, real, fake in ((da, a, fake_a), (db, b, fake_b)):
            loss = ((critic(real) - 1).pow(2).mean() + critic(fake.detach()).pow(2).mean()) * 0.5
            loss.backward()
        d.step()


@right
def variational_autoencoder():
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.encode, self.decode = nn.Linear(6, 8), nn.Sequential(nn.Linear(2, 8), nn.ReLU(), nn.Linear(8, 6))
            self.mu, self.logvar = nn.Linear(8, 2), nn.Linear(8, 2)

        def forward(self, x):
            h = F.relu(self.encode(x))
            mu, logvar = self.mu(h), self.logvar(h)
            z = mu + torch.randn_like(mu) * torch.exp(0.5 * logvar)
            return torch.sigmoid(self.decode(z)), mu, logvar

    model = Model()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    train_loss = 0
    for _ in range(6):
        x = torch.rand(8, 6)
        optimizer.zero_grad()
        out, mu, logvar = model(x)
        loss = F.binary_cross_entropy(out, x, reduction="sum")
        loss += -0.5 * torch.sum(1 + logvar - mu.pow(2) - logvar.exp())
        loss.backward()
        train_loss += loss.item()
        optimizer.step()
    with torch.no_grad():
        model.decode(torch.randn(4, 2))


@right
def quantized_autoencoder():
    encoder, decoder, codes = nn.Linear(4, 2), nn.Linear(2, 4), nn.Embedding(5, 2)
    parameters = [*encoder.parameters(), *decoder.parameters(), *codes.parameters()]
    optimizer = torch.optim.Adam(parameters, lr=0.01)
    for _ in range(6):
        x = torch.randn(8, 4)
        z = encoder(x)
        nearest = torch.cdist(z, codes.weight).argmin(1)
        q = codes(nearest)
        loss = F.mse_loss(q, z.detach()) + 0.25 * F.mse_loss(z, q.detach())
        straight = z + (q - z).detach()
        loss = loss + F.mse_loss(decoder(straight), x)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


@right
def diffusion_with_average():
    net = mlp(5, 4, 16)
    average = copy.deepcopy(net).eval().requires_grad_(False)
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: min(1.0, (step + 1) / 3))
    keep = torch.linspace(0.99, 0.1, 10)
    for _ in range(6):
        x, noise, t = torch.randn(8, 4), torch.randn(8, 4), torch.randint(10, (8,))
        a = keep[t][:, None]
        noisy = a.sqrt() * x + (1 - a).sqrt() * noise
        loss = F.mse_loss(net(torch.cat([noisy, t[:, None] / 10], 1)), noise)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        optimizer.zero_grad()
        with torch.no_grad():
            for slow, fast in zip(average.parameters(), net.parameters(), strict=True):
                slow.copy_(slow * 0.9 + fast * 0.1)
    with torch.no_grad():
        x = torch.randn(2, 4)
        for step in reversed(range(10)):
            x = x - 0.1 * average(torch.cat([x, torch.full((2, 1), step / 10)], 1))


@right
def momentum_encoder():
    query = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 4))
    key = copy.deepcopy(query)
    for p in key.parameters():
        p.requires_grad = False
    queue = F.normalize(torch.randn(16, 4), dim=1)
    optimizer = torch.optim.SGD(query.parameters(), lr=0.05, momentum=0.9)
    for _ in range(6):
        x = torch.randn(4, 4)
        q = F.normalize(query(x + 0.1 * torch.randn_like(x)), dim=1)
        with torch.no_grad():
            for slow, fast in zip(key.parameters(), query.parameters(), strict=True):
                slow.data = slow.data * 0.99 + fast.data * 0.01
            k = F.normalize(key(x), dim=1)
        logits = torch.cat([(q * k).sum(1, keepdim=True), q @ queue.T], dim=1) / 0.2
        loss = F.cross_entropy(logits, torch.zeros(4, dtype=torch.long))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        queue = torch.cat([k, queue])[:16]


@right
def bootstrapped_representation():
    online, predictor = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Linear(8, 4)), mlp(4, 4)
    target = copy.deepcopy(online)
    optimizer = torch.optim.Adam([*online.parameters(), *predictor.parameters()], lr=0.01)
    for _ in range(6):
        x = torch.randn(8, 4)
        one, two = x + 0.1 * torch.randn_like(x), x + 0.1 * torch.randn_like(x)
        p, q = predictor(online(one)), predictor(online(two))
        with torch.no_grad():
            s, t = target(one), target(two)
        loss = -(F.cosine_similarity(p, t.detach()) + F.cosine_similarity(q, s.detach())).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        with torch.no_grad():
            for slow, fast in zip(target.parameters(), online.parameters(), strict=True):
                slow.mul_(0.95).add_(fast, alpha=0.05)


@right
def siamese_with_stop_gradient():
    encoder, predictor = mlp(4, 4), mlp(4, 4)
    optimizer = torch.optim.SGD([*encoder.parameters(), *predictor.parameters()], lr=0.05)
    for _ in range(6):
        x = torch.randn(8, 4)
        z1, z2 = encoder(x + 0.1 * torch.randn_like(x)), encoder(x + 0.1 * torch.randn_like(x))
        p1, p2 = predictor(z1), predictor(z2)
        loss = -0.5 * (F.cosine_similarity(p1, z2.detach()).mean() + F.cosine_similarity(p2, z1.detach()).mean())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


@right
def pseudo_labels():
    x, y = blobs()
    model = Dropping()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for _ in range(6):
        unlabelled = torch.randn(16, 4)
        with torch.no_grad():
            guess = model(unlabelled).softmax(dim=1)
            sure, label = guess.max(1)
            mask = (sure > 0.2).float()
        supervised = F.cross_entropy(model(x), y)
        noisy = model(unlabelled + 0.1 * torch.randn_like(unlabelled))
        consistency = (F.cross_entropy(noisy, label, reduction="none") * mask).mean()
        optimizer.zero_grad()
        (supervised + consistency).backward()
        optimizer.step()


@right
def virtual_adversary():
    x, y = blobs()
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Dropout(0.1), nn.Linear(8, 3))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(5):
        with torch.no_grad():
            p = F.softmax(model(x), dim=1)
        d = F.normalize(torch.randn_like(x), dim=1).requires_grad_()
        F.kl_div(F.log_softmax(model(x + 0.1 * d), dim=1), p, reduction="batchmean").backward()
        r = F.normalize(d.grad, dim=1)
        model.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss = loss + F.kl_div(F.log_softmax(model(x + 0.5 * r), dim=1), p, reduction="batchmean")
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()


@right
def adversarial_training():
    x, y = blobs()
    model = Dropping()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for _ in range(4):
        model.eval()
        attacked = x.clone()
        for _ in range(2):
            attacked.requires_grad_()
            (grad,) = torch.autograd.grad(F.cross_entropy(model(attacked), y), attacked)
            attacked = (attacked.detach() + 0.05 * grad.sign()).clamp(x - 0.1, x + 0.1)
        model.train()
        optimizer.zero_grad()
        F.cross_entropy(model(attacked), y).backward()
        optimizer.step()


@right
def image_by_optimization():
    features = nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.Conv2d(4, 4, 3)).eval()
    content, style = torch.rand(1, 1, 8, 8), torch.rand(1, 1, 8, 8)

    def gram(f):
        f = f.flatten(1)
        return f @ f.T

    wanted, pattern = features(content).detach(), gram(features(style)[0]).detach()
    image = content.clone().requires_grad_(True)
    optimizer = torch.optim.Adam([image], lr=0.05)
    for _ in range(8):
        optimizer.zero_grad()
        f = features(image)
        (F.mse_loss(f, wanted) + F.mse_loss(gram(f[0]), pattern)).backward()
        optimizer.step()
        with torch.no_grad():
            image.clamp_(0, 1)


@right
def differential_equation():
    net = mlp(1, 1, 16)
    t = torch.linspace(0, 1, 20)[:, None].requires_grad_(True)
    optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
    for _ in range(6):
        optimizer.zero_grad()
        u = 1 + t * net(t)
        du = torch.autograd.grad(u, t, torch.ones_like(u), create_graph=True)[0]
        loss = (du + u).pow(2).mean()
        loss.backward()
        optimizer.step()


@right
def domain_adversary():
    class Reverse(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, strength):
            ctx.strength = strength
            return x.view_as(x)

        @staticmethod
        def backward(ctx, grad):
            return -ctx.strength * grad, None

    body, label, domain = nn.Linear(4, 8), nn.Linear(8, 3), nn.Linear(8, 2)
    optimizer = torch.optim.SGD([*body.parameters(), *label.parameters(), *domain.parameters()], lr=0.05)
    for step in range(6):
        x, y = blobs()
        h = body(x).relu()
        loss = F.cross_entropy(label(h), y) + F.cross_entropy(domain(Reverse.apply(h, step / 6)), (x[:, 0] > 0).long())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


class _Agent(nn.Module):
    def __init__(self):
        super().__init__()
        self.critic, self.actor = mlp(4, 1, 8), mlp(4, 2, 8)

    def get_value(self, x):
        return self.critic(x)

    def act(self, x, action=None):
        picked = torch.distributions.Categorical(logits=self.actor(x))
        action = picked.sample() if action is None else action
        return action, picked.log_prob(action), picked.entropy(), self.critic(x)


@right
def proximal_policy():
    agent = _Agent()
    optimizer = torch.optim.Adam(agent.parameters(), lr=2.5e-3, eps=1e-5)
    obs, actions, logprobs, rewards, values = (
        torch.zeros(8, 4),
        torch.zeros(8),
        torch.zeros(8),
        torch.zeros(8),
        torch.zeros(8),
    )
    now = torch.randn(4)
    for _ in range(3):
        for step in range(8):
            obs[step] = now
            with torch.no_grad():
                action, logprob, _, value = agent.act(now)
                values[step] = value.flatten()
            actions[step], logprobs[step] = action, logprob
            rewards[step], now = now.sum(), torch.randn(4)
        with torch.no_grad():
            returns = rewards + 0.9 * agent.get_value(now).flatten()
            advantages = returns - values
        for _ in range(2):
            for index in torch.randperm(8).split(4):
                _, new, entropy, value = agent.act(obs[index], actions.long()[index])
                logratio = new - logprobs[index]
                ratio = logratio.exp()
                with torch.no_grad():
                    ((ratio - 1) - logratio).mean()
                mine = advantages[index]
                mine = (mine - mine.mean()) / (mine.std() + 1e-8)
                policy = torch.max(-mine * ratio, -mine * ratio.clamp(0.8, 1.2)).mean()
                loss = policy - 0.01 * entropy.mean() + 0.5 * 0.5 * (value.view(-1) - returns[index]).pow(2).mean()
                optimizer.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(agent.parameters(), 0.5)
                optimizer.step()


@right
def soft_actor_critic():
    actor, q1, q2 = mlp(4, 4), mlp(6, 1), mlp(6, 1)
    t1, t2 = copy.deepcopy(q1), copy.deepcopy(q2)
    q_optimizer = torch.optim.Adam([*q1.parameters(), *q2.parameters()], lr=0.01)
    actor_optimizer = torch.optim.Adam(list(actor.parameters()), lr=0.01)
    log_alpha = torch.zeros(1, requires_grad=True)
    a_optimizer = torch.optim.Adam([log_alpha], lr=0.01)

    def act(state):
        mean, log_std = actor(state).chunk(2, dim=-1)
        normal = torch.distributions.Normal(mean, log_std.clamp(-5, 2).exp())
        raw = normal.rsample()
        action = torch.tanh(raw)
        return action, (normal.log_prob(raw) - torch.log(1 - action.pow(2) + 1e-6)).sum(1, keepdim=True)

    for step in range(6):
        s, a, r, n = torch.randn(8, 4), torch.rand(8, 2), torch.randn(8, 1), torch.randn(8, 4)
        alpha = log_alpha.exp().item()
        with torch.no_grad():
            na, logp = act(n)
            after = torch.cat([n, na], 1)
            wanted = r + 0.9 * (torch.min(t1(after), t2(after)) - alpha * logp)
        both = torch.cat([s, a], 1)
        q_loss = F.mse_loss(q1(both), wanted) + F.mse_loss(q2(both), wanted)
        q_optimizer.zero_grad()
        q_loss.backward()
        q_optimizer.step()
        if step % 2 == 0:
            for _ in range(2):
                pi, logp = act(s)
                now = torch.cat([s, pi], 1)
                actor_loss = (alpha * logp - torch.min(q1(now), q2(now))).mean()
                actor_optimizer.zero_grad()
                actor_loss.backward()
                actor_optimizer.step()
                with torch.no_grad():
                    _, logp = act(s)
                alpha_loss = (-log_alpha.exp() * (logp - 2)).mean()
                a_optimizer.zero_grad()
                alpha_loss.backward()
                a_optimizer.step()
        for slow, fast in ((t1, q1), (t2, q2)):
            for p, q in zip(slow.parameters(), fast.parameters(), strict=True):
                p.data.copy_(0.1 * q.data + 0.9 * p.data)


@right
def policy_gradient_over_episodes():
    policy = nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.2), nn.ReLU(), nn.Linear(8, 2))
    optimizer = torch.optim.Adam(policy.parameters(), lr=0.01)
    for _ in range(5):
        saved, rewards = [], []
        state = torch.randn(1, 4)
        for _ in range(6):
            picked = torch.distributions.Categorical(F.softmax(policy(state), dim=1))
            action = picked.sample()
            saved.append(picked.log_prob(action))
            rewards.append(float(state.sum()) * (1 if action.item() else -1))
            state = torch.randn(1, 4)
        returns = torch.tensor(rewards).flip(0).cumsum(0).flip(0)
        returns = (returns - returns.mean()) / (returns.std() + 1e-6)
        loss = torch.cat([-logp * value for logp, value in zip(saved, returns, strict=True)]).sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
