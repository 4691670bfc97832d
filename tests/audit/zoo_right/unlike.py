"""Right loops unlike the others: unusual optimizers, functional code, wrappers, parametrizations."""

import copy
from contextlib import nullcontext

import torch
from torch import nn
from torch.func import functional_call, grad, stack_module_state, vmap
from torch.nn import functional as F
from torch.nn.utils import parametrizations
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn
from torch.utils.checkpoint import checkpoint_sequential

from tests.audit.parts import Dropping, batches, blobs, lines, mlp
from tests.audit.registry import right


@right
def unsynchronized_accumulation():
    class Replicated(nn.Module):
        def __init__(self, module):
            super().__init__()
            self.module = module

        def forward(self, x):
            return self.module(x)

        def no_sync(self):
            return nullcontext()

    x, y = blobs(32)
    model = Replicated(mlp())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for i, (inputs, targets) in enumerate(batches(x, y)):
        last = i % 4 == 3
        with nullcontext() if last else model.no_sync():
            loss = F.cross_entropy(model(inputs), targets) / 4
            loss.backward()
        if last:
            optimizer.step()
            optimizer.zero_grad()


@right
def functional_gradients():
    x, y = lines()
    model = mlp(out=1)
    weights = {name: p.detach() for name, p in model.named_parameters()}

    def loss_of(weights):
        return F.mse_loss(functional_call(model, weights, (x,)), y)

    for _ in range(6):
        slopes = grad(loss_of)(weights)
        weights = {name: w - 0.05 * slopes[name] for name, w in weights.items()}


@right
def ensemble_by_vmap():
    x, y = lines()
    models = [mlp(out=1) for _ in range(3)]
    weights, buffers = stack_module_state(models)
    base = copy.deepcopy(models[0]).to("meta")
    optimizer = torch.optim.Adam(weights.values(), lr=0.01)
    for _ in range(5):
        out = vmap(lambda w, b: functional_call(base, (w, b), (x,)))(weights, buffers)
        optimizer.zero_grad()
        (out - y).pow(2).mean(dim=(1, 2)).sum().backward()
        optimizer.step()


@right
def clipped_gradients_of_single_samples():
    x, y = lines(6)
    model = nn.Linear(4, 1)
    weights = dict(model.named_parameters())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)

    def loss_of(weights, x, y):
        return F.mse_loss(functional_call(model, weights, (x[None],)), y[None])

    for _ in range(5):
        detached = {name: p.detach() for name, p in weights.items()}
        each = vmap(grad(loss_of), in_dims=(None, 0, 0))(detached, x, y)
        for name, p in weights.items():
            g = each[name].flatten(1)
            p.grad = (g / g.norm(dim=1, keepdim=True).clamp_min(1)).mean(0).view_as(p)
        optimizer.step()


@right
def curvature_steps():
    x, y = lines()
    model = nn.Linear(4, 1)
    parameters = list(model.parameters())
    for _ in range(4):
        loss = F.mse_loss(model(x), y)
        slopes = torch.autograd.grad(loss, parameters, create_graph=True)
        v = [torch.randn_like(p) for p in parameters]
        dot = sum((s * u).sum() for s, u in zip(slopes, v, strict=True))
        hv = torch.autograd.grad(dot, parameters)
        with torch.no_grad():
            for p, s, h, u in zip(parameters, slopes, hv, v, strict=True):
                p -= 0.05 * s / (1 + (h * u).abs().mean())


@right
def parametrized_weights():
    x, y = blobs()
    model = nn.Sequential(
        parametrizations.weight_norm(nn.Linear(4, 8)), nn.ReLU(), parametrizations.spectral_norm(nn.Linear(8, 3))
    )
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for _ in range(6):
        model.train()
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()
        model.eval()
        with torch.no_grad():
            F.cross_entropy(model(x), y).item()


@right
def optimizer_of_ones_own():
    class Lion(torch.optim.Optimizer):
        def __init__(self, params, lr):
            super().__init__(params, {"lr": lr})

        @torch.no_grad()
        def step(self, closure=None):
            for group in self.param_groups:
                for p in group["params"]:
                    if p.grad is not None:
                        m = self.state[p].setdefault("m", torch.zeros_like(p))
                        p.add_((0.9 * m + 0.1 * p.grad).sign(), alpha=-group["lr"])
                        m.mul_(0.99).add_(p.grad, alpha=0.01)

    class Lookahead(torch.optim.Optimizer):
        def __init__(self, inner):
            self.inner = inner
            super().__init__(inner.param_groups, {})
            self.slow = [p.detach().clone() for group in inner.param_groups for p in group["params"]]
            self.count = 0

        def step(self, closure=None):
            self.inner.step()
            self.count += 1
            if self.count % 3 == 0:
                params = [p for group in self.inner.param_groups for p in group["params"]]
                for slow, p in zip(self.slow, params, strict=True):
                    slow.add_(p.data - slow, alpha=0.5)
                    p.data.copy_(slow)

    x, y = blobs()
    model = mlp()
    optimizer = Lookahead(Lion(model.parameters(), 0.01))
    for _ in range(7):
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()


@right
def closure_for_a_plain_optimizer():
    x, y = lines()
    model = mlp(out=1)
    optimizer = torch.optim.Adam(model.parameters())

    def closure():
        optimizer.zero_grad()
        loss = F.mse_loss(model(x), y)
        loss.backward()
        return loss

    for _ in range(6):
        print(optimizer.step(closure).item())


@right
def sparse_and_dense():
    words, head = nn.Embedding(20, 4, sparse=True), nn.Linear(4, 3)
    sparse = torch.optim.SparseAdam(words.parameters(), lr=0.01)
    dense = torch.optim.Adam(head.parameters(), lr=0.01)
    for _ in range(6):
        tokens, y = torch.randint(20, (8, 3)), torch.randint(3, (8,))
        loss = F.cross_entropy(head(words(tokens).mean(1)), y)
        sparse.zero_grad()
        dense.zero_grad()
        loss.backward()
        sparse.step()
        dense.step()


@right
def averaged_for_evaluation():
    x, y = blobs(24)
    model = Dropping()
    average = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(0.9), use_buffers=True)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    for _ in range(3):
        for inputs, targets in batches(x, y):
            model.train()
            optimizer.zero_grad(set_to_none=True)
            F.cross_entropy(model(inputs), targets).backward()
            optimizer.step()
            average.update_parameters(model)
        average.eval()
        with torch.no_grad():
            (average(x).argmax(1) == y).float().mean().item()


@right
def statistics_renewed_by_hand():
    x, y = blobs()
    model = Dropping()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for inputs, targets in batches(x, y) * 2:
        optimizer.zero_grad()
        F.cross_entropy(model(inputs), targets).backward()
        optimizer.step()
    model.norm.reset_running_stats()
    model.train()
    with torch.no_grad():
        for inputs, _ in batches(x, y):
            model(inputs)
    model.eval()


@right
def checkpointed_in_sequence():
    x, y = blobs()
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Dropout(0.1), nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 3))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(5):
        optimizer.zero_grad()
        F.cross_entropy(checkpoint_sequential(model, 2, x, use_reentrant=False), y).backward()
        optimizer.step()


@right
def straight_through_quantization():
    class Quantized(nn.Linear):
        def forward(self, x):
            step = self.weight.detach().abs().max() / 7
            rounded = torch.round(self.weight / step) * step
            return F.linear(x, self.weight + (rounded - self.weight).detach(), self.bias)

    x, y = blobs()
    model = nn.Sequential(Quantized(4, 8), nn.ReLU(), Quantized(8, 3))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for _ in range(6):
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()


@right
def triplets_and_mining():
    encoder = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
    optimizer = torch.optim.Adam(encoder.parameters(), lr=0.01)
    for _ in range(6):
        x, y = blobs(12)
        encoder.eval()
        with torch.no_grad():
            distance = torch.cdist(encoder(x), encoder(x))
        encoder.train()
        same = y[:, None] == y[None]
        positive = distance.masked_fill(~same, -1).argmax(1)
        negative = distance.masked_fill(same, 1e9).argmin(1)
        out = encoder(x)
        optimizer.zero_grad()
        F.triplet_margin_loss(out, out[positive], out[negative]).backward()
        optimizer.step()


@right
def state_kept_by_a_model():
    class Stateful(nn.Module):
        def __init__(self):
            super().__init__()
            self.cell, self.out = nn.GRUCell(3, 5), nn.Linear(5, 1)
            self.h = None

        def forward(self, x):
            self.h = self.cell(x, self.h)
            return self.out(self.h)

        def cut(self):
            self.h = self.h.detach()

    model = Stateful()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for _ in range(8):
        loss = model(torch.randn(2, 3)).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        model.cut()


@right
def overlapping_windows():
    model = nn.RNNCell(3, 4)
    head = nn.Linear(4, 1)
    optimizer = torch.optim.SGD([*model.parameters(), *head.parameters()], lr=0.01)
    h = torch.zeros(2, 4)
    for _ in range(4):
        states = []
        for _ in range(6):
            h = model(torch.randn(2, 3), h)
            states.append(h)
        optimizer.zero_grad()
        sum(head(s).pow(2).mean() for s in states).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        h = h.detach()


@right
def regression_by_a_parameter():
    data = torch.randn(40, 2) + torch.tensor([1.0, -2.0])
    mean, log_std = nn.Parameter(torch.zeros(2)), nn.Parameter(torch.zeros(2))
    optimizer = torch.optim.Adam([mean, log_std], lr=0.1)
    for _ in range(8):
        optimizer.zero_grad()
        loss = (((data - mean) / log_std.exp()) ** 2 / 2 + log_std).sum(1).mean()
        loss.backward()
        optimizer.step()


@right
def heads_with_their_own_optimizers():
    trunk, one, two = nn.Linear(4, 8), nn.Linear(8, 3), nn.Linear(8, 1)
    optimizers = [torch.optim.SGD(part.parameters(), lr=0.05) for part in (trunk, one, two)]
    for _ in range(6):
        x, y = blobs()
        for optimizer in optimizers:
            optimizer.zero_grad()
        h = trunk(x).tanh()
        F.cross_entropy(one(h), y).backward(retain_graph=True)
        F.mse_loss(two(h).squeeze(1), x.sum(1)).backward()
        for optimizer in optimizers:
            optimizer.step()


@right
def evaluation_of_a_generator_in_between():
    generator, critic = Dropping(out=4), mlp(4, 1)
    g = torch.optim.Adam(generator.parameters(), lr=0.01)
    d = torch.optim.Adam(critic.parameters(), lr=0.01)
    for step in range(6):
        x, real = torch.randn(8, 4), torch.randn(8, 4)
        with torch.no_grad():
            fake = generator(x)
        d.zero_grad()
        (F.softplus(critic(fake)).mean() + F.softplus(-critic(real)).mean()).backward()
        d.step()
        g.zero_grad()
        F.softplus(-critic(generator(x))).mean().backward()
        g.step()
        if step % 3 == 0:
            generator.eval()
            with torch.no_grad():
                generator(x).std().item()
            generator.train()


@right
def warm_start_and_second_phase():
    x, y = blobs()
    model = Dropping()
    for p in model.outer.parameters():
        p.requires_grad_(False)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for phase in range(2):
        if phase == 1:
            model.requires_grad_(True)
            optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
        for inputs, targets in batches(x, y):
            optimizer.zero_grad()
            F.cross_entropy(model(inputs), targets).backward()
            optimizer.step()


@right
def rewards_from_a_frozen_judge():
    policy, judge = mlp(4, 4), mlp(4, 1).eval().requires_grad_(False)
    reference = copy.deepcopy(policy).eval()
    optimizer = torch.optim.AdamW(policy.parameters(), lr=0.01)
    for _ in range(6):
        x = torch.randn(8, 4)
        out = policy(x)
        with torch.no_grad():
            before = reference(x)
        loss = -judge(out).mean() + 0.1 * (out - before).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
