"""Right loops that look like faulty ones: each does on purpose what a fault does by mistake, or nearly."""

import copy

import torch
from torch import nn
from torch.nn import functional as F

from tests.audit.parts import batches, blobs, lines, mlp
from tests.audit.registry import right


@right
def frozen_on_a_schedule():
    x, y = blobs()
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for step in range(10):
        if step == 4:
            model[0].requires_grad_(False)
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()


@right
def encoder_rests_in_the_second_phase():
    x, y = blobs()
    encoder, head = nn.Linear(4, 8), nn.Linear(8, 3)
    slow = torch.optim.SGD(encoder.parameters(), lr=0.01)
    fast = torch.optim.SGD(head.parameters(), lr=0.1)
    for step in range(10):
        if step == 5:
            encoder.requires_grad_(False)
        slow.zero_grad()
        fast.zero_grad()
        F.cross_entropy(head(encoder(x).relu()), y).backward()
        slow.step()
        fast.step()


@right
def gradients_set_to_zero_without_decay():
    x, y = blobs()
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(8):
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        model[0].weight.grad.zero_()
        optimizer.step()


@right
def a_step_skipped_by_zeros():
    x, y = blobs()
    model = mlp()
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    for step in range(10):
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        if step in (3, 4, 5):
            for p in model.parameters():
                p.grad.zero_()
        optimizer.step()


@right
def attacked_in_evaluation_mode():
    x, y = blobs()
    model = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 3))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(6):
        model.eval()
        noisy = x.clone().requires_grad_()
        F.cross_entropy(model(noisy), y).backward()
        noisy = (noisy + 0.1 * noisy.grad.sign()).detach()
        model.train()
        optimizer.zero_grad()
        F.cross_entropy(model(noisy), y).backward()
        optimizer.step()


@right
def both_modes_in_every_step():
    x, y = blobs()
    model = nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.2), nn.Linear(8, 3))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(6):
        optimizer.zero_grad()
        model.train()
        F.cross_entropy(model(x), y).backward()
        model.eval()
        (0.1 * F.cross_entropy(model(x + 0.1), y)).backward()
        optimizer.step()


@right
def saliency_after_each_epoch():
    x, y = blobs()
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(3):
        model.train()
        for inputs, targets in batches(x, y):
            optimizer.zero_grad()
            F.cross_entropy(model(inputs), targets).backward()
            optimizer.step()
        model.eval()
        image = x[:1].clone().requires_grad_()
        model(image).max().backward()
        print(image.grad.abs().sum().item())


@right
def losses_of_all_depths():
    x, y = lines()
    blocks = nn.ModuleList([nn.Linear(4, 4) for _ in range(6)])
    heads = nn.ModuleList([nn.Linear(4, 1) for _ in range(6)])
    optimizer = torch.optim.SGD([*blocks.parameters(), *heads.parameters()], lr=0.01)
    for _ in range(5):
        optimizer.zero_grad()
        h = x
        for block, head in zip(blocks, heads, strict=True):
            h = torch.tanh(block(h))
            (F.mse_loss(head(h), y) / 6).backward(retain_graph=True)
        optimizer.step()


@right
def refined_again_and_again():
    x, y = lines()
    cell, head = nn.Linear(8, 4), nn.Linear(4, 1)
    optimizer = torch.optim.SGD([*cell.parameters(), *head.parameters()], lr=0.01)
    for _ in range(5):
        optimizer.zero_grad()
        state = torch.zeros(16, 4)
        for _ in range(6):
            state = torch.tanh(cell(torch.cat([x, state], dim=1)))
            (F.mse_loss(head(state), y) / 6).backward(retain_graph=True)
        optimizer.step()


class ActorCritic(nn.Module):
    def __init__(self):
        super().__init__()
        self.pi, self.v = mlp(4, 2), mlp(4, 1)

    def forward(self, x):
        return torch.distributions.Categorical(logits=self.pi(x)), self.v(x).squeeze(-1)


@right
def advantage_cut_off():
    model = ActorCritic()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(6):
        dist, value = model(torch.randn(16, 4))
        action = dist.sample()
        returns = (action == 0).float()
        advantage = returns - value
        policy_loss = -(dist.log_prob(action) * advantage.detach()).mean()
        optimizer.zero_grad()
        (policy_loss + advantage.pow(2).mean()).backward()
        optimizer.step()


@right
def advantages_of_a_dueling_network():
    class Dueling(nn.Module):
        def __init__(self):
            super().__init__()
            self.value, self.advantage = mlp(4, 1), mlp(4, 3)

        def forward(self, x):
            advantage = self.advantage(x)
            return self.value(x) + advantage - advantage.mean(dim=1, keepdim=True)

    q = Dueling()
    optimizer = torch.optim.Adam(q.parameters(), lr=0.01)
    for _ in range(6):
        x, a, r = torch.randn(16, 4), torch.randint(3, (16, 1)), torch.randn(16)
        loss = F.mse_loss(q(x).gather(1, a).squeeze(1), r)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


@right
def actor_and_critic_with_their_own_optimizers():
    actor, critic = mlp(3, 1), mlp(4, 1)
    actor_optimizer = torch.optim.Adam(actor.parameters(), lr=1e-3)
    critic_optimizer = torch.optim.Adam(critic.parameters(), lr=1e-3)
    for _ in range(6):
        s, a = torch.randn(16, 3), torch.rand(16, 1)
        critic_optimizer.zero_grad()
        F.mse_loss(critic(torch.cat([s, a], 1)), -a).backward()
        critic_optimizer.step()
        actor_optimizer.zero_grad()
        (-critic(torch.cat([s, actor(s)], 1)).mean()).backward()
        actor_optimizer.step()


@right
def policy_and_its_old_self():
    policy = mlp(4, 3)
    optimizer = torch.optim.SGD(policy.parameters(), lr=0.01)
    for _ in range(3):
        x = torch.randn(16, 4)
        with torch.no_grad():
            dist = torch.distributions.Categorical(logits=policy(x))
            action = dist.sample()
            old_log_prob = dist.log_prob(action)
        for _ in range(3):
            new = torch.distributions.Categorical(logits=policy(x)).log_prob(action)
            ratio = (new - old_log_prob).exp()
            loss = -(ratio * (action == 0).float()).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()


@right
def target_network_without_no_grad():
    q = mlp(4, 2)
    target_net = copy.deepcopy(q)
    optimizer = torch.optim.Adam(q.parameters(), lr=0.01)
    for _ in range(8):
        x, r = torch.randn(16, 4), torch.randn(16)
        target = r + 0.9 * target_net(x + 0.1).max(dim=1).values
        loss = F.mse_loss(q(x).max(dim=1).values, target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


@right
def two_peers_that_teach_each_other():
    x, y = blobs()
    first, second = mlp(), mlp()
    optimizer = torch.optim.SGD([*first.parameters(), *second.parameters()], lr=0.1)
    for _ in range(6):
        one, two = first(x), second(x)
        own = F.cross_entropy(one, y) + F.cross_entropy(two, y)
        shared = F.kl_div(one.log_softmax(1), two.softmax(1), reduction="batchmean") + F.kl_div(
            two.log_softmax(1), one.softmax(1), reduction="batchmean"
        )
        optimizer.zero_grad()
        (own + shared).backward()
        optimizer.step()


@right
def a_value_shown_in_place_of_the_surrogates():
    x, y = blobs()
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(6):
        scores = model(x)
        surrogate = F.cross_entropy(scores, y)
        errors = (scores.argmax(1) != y).float().mean()
        loss = surrogate + (errors - surrogate).detach()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(loss.item())


@right
def parts_of_the_loss_kept_for_the_log():
    x, y = lines()
    model = mlp(out=1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    shown = torch.zeros(())
    for _ in range(6):
        out = model(x)
        fit, size = (out - y).pow(2).mean(), model[0].weight.pow(2).mean()
        shown = shown + fit.detach() + 0.1 * out.detach().abs().mean()
        optimizer.zero_grad()
        (fit + 0.1 * size).backward()
        optimizer.step()
    print(shown)


@right
def adversarial_weights_add_to_the_gradient():
    x, y = blobs()
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(6):
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        kept = [p.detach().clone() for p in model.parameters()]
        with torch.no_grad():
            for p in model.parameters():
                p.add_(0.05 * p.grad / (p.grad.norm() + 1e-8))
        F.cross_entropy(model(x), y).backward()
        with torch.no_grad():
            for p, value in zip(model.parameters(), kept, strict=True):
                p.copy_(value)
        optimizer.step()


@right
def a_switch_that_belongs_to_no_parameter():
    class Penalized(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = nn.Linear(4, 1)
            self.scale = torch.ones((), requires_grad=True)

        def forward(self, x):
            return self.inner(x) * self.scale

    x, y = lines()
    model = Penalized()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for _ in range(6):
        loss = F.mse_loss(model(x), y)
        slope = torch.autograd.grad(loss, model.scale, create_graph=True)[0]
        optimizer.zero_grad()
        (loss + slope.pow(2)).backward()
        optimizer.step()


@right
def expected_accuracy():
    x, y = blobs()
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(6):
        chances = model(x).softmax(-1)
        loss = -chances.gather(-1, y[:, None]).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


@right
def an_average_that_is_a_copy():
    x, y = lines()
    model = mlp(out=1)
    average = copy.deepcopy(model).requires_grad_(False)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(6):
        loss = F.mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        with torch.no_grad():
            for mean, p in zip(average.parameters(), model.parameters(), strict=True):
                mean.mul_(0.9).add_(p, alpha=0.1)


@right
def decay_by_hand():
    x, y = lines()
    model = mlp(out=1)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(6):
        optimizer.zero_grad()
        F.mse_loss(model(x), y).backward()
        optimizer.step()
        with torch.no_grad():
            for p in model.parameters():
                p.add_(p, alpha=-0.001)


@right
def first_order_meta_learning():
    model = mlp(1, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for _ in range(6):
        x = torch.rand(8, 1)
        fast = copy.deepcopy(model)
        inner = torch.optim.SGD(fast.parameters(), lr=0.1)
        for _ in range(2):
            inner.zero_grad()
            F.mse_loss(fast(x), x.sin()).backward()
            inner.step()
        slopes = torch.autograd.grad(F.mse_loss(fast(x + 0.1), (x + 0.1).sin()), list(fast.parameters()))
        optimizer.zero_grad()
        for p, slope in zip(model.parameters(), slopes, strict=True):
            p.grad = slope
        optimizer.step()


@right
def first_order_with_leaves_of_its_own():
    model = nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for _ in range(6):
        x, y = lines(8, 2)
        weight = model.weight.detach().clone().requires_grad_()
        bias = model.bias.detach().clone().requires_grad_()
        F.mse_loss(F.linear(x, weight, bias), y).backward()
        optimizer.zero_grad()
        model.weight.grad, model.bias.grad = weight.grad, bias.grad
        optimizer.step()


@right
def slow_and_fast_pathways():
    x, y = blobs()
    slow, fast = mlp(4, 8), mlp(4, 8)
    head = nn.Linear(16, 3)
    optimizer = torch.optim.Adam([*slow.parameters(), *fast.parameters(), *head.parameters()], lr=0.01)
    for _ in range(6):
        loss = F.cross_entropy(head(torch.cat([slow(x), fast(x[:, [1, 0, 3, 2]])], 1)), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


class Stop(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, grad):
        return torch.zeros_like(grad)


@right
def a_head_that_does_not_teach_the_body():
    x, y = blobs()
    body, head, probe = nn.Linear(4, 8), nn.Linear(8, 3), nn.Linear(8, 3)
    optimizer = torch.optim.SGD([*body.parameters(), *head.parameters(), *probe.parameters()], lr=0.1)
    for _ in range(6):
        h = body(x).tanh()
        loss = F.cross_entropy(head(h), y) + F.cross_entropy(probe(Stop.apply(h)), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


@right
def target_with_a_norm_in_training_mode():
    online = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 4))
    target = copy.deepcopy(online).requires_grad_(False)
    predictor = nn.Linear(4, 4)
    optimizer = torch.optim.SGD([*online.parameters(), *predictor.parameters()], lr=0.1)
    for _ in range(6):
        x = torch.randn(16, 4)
        loss = -F.cosine_similarity(predictor(online(x)), target(x + 0.1)).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        for old, new in zip(target.parameters(), online.parameters(), strict=True):
            old.data = 0.9 * old.data + 0.1 * new.data
