"""Faults of kinds that a third set of other people's loops showed."""

import copy

import torch
from torch import nn
from torch.nn import functional as F
from torch.optim import lr_scheduler
from torch.utils.checkpoint import checkpoint

from tests.audit.parts import batches, blobs, lines, mlp
from tests.audit.registry import fault


@fault("no-effect")
def average_bound_to_a_name():
    x, y = blobs()
    model = mlp()
    average = copy.deepcopy(model).requires_grad_(False)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(6):
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()
        with torch.no_grad():
            for kept, new in zip(average.parameters(), model.parameters(), strict=True):
                kept = kept.lerp(new, 0.1)  # <- here


@fault("no-effect")
def own_descent_on_names():
    x, y = blobs()
    model = mlp()
    for _ in range(6):
        model.zero_grad()
        F.cross_entropy(model(x), y).backward()
        for p in model.parameters():
            p = p - 0.1 * p.grad  # <- here


@fault("no-effect")
def hook_that_forgets_its_result():
    x, y = blobs()
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def halve(grad):
        grad = grad * 0.5  # <- here

    model[0].weight.register_hook(halve)
    for _ in range(6):
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()


@fault("copy-is-itself")
def target_that_is_the_network_itself():
    class Agent:
        def __init__(self):
            self.net = mlp(4, 2)
            self.target_net = self.net  # <- here
            self.optimizer = torch.optim.Adam(self.net.parameters(), lr=0.01)

        def learn(self, step):
            state, following, reward = torch.randn(8, 4), torch.randn(8, 4), torch.randn(8)
            with torch.no_grad():
                goal = reward + 0.9 * self.target_net(following).max(1).values
            self.optimizer.zero_grad()
            F.mse_loss(self.net(state)[:, 0], goal).backward()
            self.optimizer.step()
            if step % 3 == 2:
                self.target_net.load_state_dict(self.net.state_dict())

    agent = Agent()
    for step in range(6):
        agent.learn(step)


@fault("sample-cut")
def drawn_with_torch_normal():
    encoder, decoder = mlp(4, 4), mlp(2, 4)
    optimizer = torch.optim.Adam([*encoder.parameters(), *decoder.parameters()], lr=0.01)
    for _ in range(6):
        x, _ = blobs()
        mean, spread = encoder(x).chunk(2, 1)
        code = torch.normal(mean, spread.exp())  # <- here
        rest = (mean.square() + spread.exp() - spread).mean()
        optimizer.zero_grad()
        (F.mse_loss(decoder(code), x) + 0.1 * rest).backward()
        optimizer.step()


@fault("constant-term")
def overlap_of_decisions():
    x, y = lines()
    y = (y > 0).float()
    model = mlp(out=1)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(6):
        scores = model(x)
        chosen = scores.sigmoid().gt(0.5).float()  # <- here
        overlap = 1 - 2 * (chosen * y).sum() / (chosen.sum() + y.sum() + 1)
        optimizer.zero_grad()
        (F.binary_cross_entropy_with_logits(scores, y) + overlap).backward()
        optimizer.step()


@fault("zero-gradient")
def softmax_over_the_only_score():
    x, y = lines()
    y = (y > 0).float()
    model = mlp(out=1)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(6):
        optimizer.zero_grad()
        F.mse_loss(torch.softmax(model(x), dim=1), y).backward()  # <- here
        optimizer.step()


@fault("zero-gradient")
def weights_over_the_wrong_dimension():
    class Pooling(nn.Module):
        def __init__(self):
            super().__init__()
            self.score, self.value = nn.Linear(4, 1), nn.Linear(4, 3)
            self.weigh = nn.Softmax(dim=-1)  # <- here

        def forward(self, x):
            weights = self.weigh(self.score(x))
            return (weights * self.value(x)).mean(1)

    model = Pooling()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(6):
        optimizer.zero_grad()
        F.cross_entropy(model(torch.randn(8, 5, 4)), torch.randint(3, (8,))).backward()
        optimizer.step()


@fault("zero-gradient")
def both_factors_made_of_zeros():
    class Adapted(nn.Module):
        def __init__(self, base):
            super().__init__()
            self.base = base.requires_grad_(False)
            self.down = nn.Parameter(torch.zeros(4, 2))  # <- here
            self.up = nn.Parameter(torch.zeros(2, 3))

        def forward(self, x):
            return self.base(x) + x @ self.down @ self.up

    x, y = blobs()
    model = Adapted(nn.Linear(4, 3))
    optimizer = torch.optim.Adam([model.down, model.up], lr=0.01)
    for _ in range(6):
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()


@fault("never-reached")
def reentrant_checkpoint_of_the_first_layer():
    x, y = blobs()
    first, last = mlp(4, 8), nn.Linear(8, 3)
    optimizer = torch.optim.SGD([*first.parameters(), *last.parameters()], lr=0.1)
    for _ in range(6):
        h = checkpoint(first, x, use_reentrant=True)  # <- here
        optimizer.zero_grad()
        F.cross_entropy(last(h), y).backward()
        optimizer.step()


@fault("silent-function")
def function_that_forgets_its_second_input():
    class Scaled(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, scale):
            ctx.save_for_backward(x, scale)
            return x * scale

        @staticmethod
        def backward(ctx, grad):
            return grad * ctx.saved_tensors[1], None  # <- here

    x, y = lines()
    model, scale = nn.Linear(4, 1), nn.Parameter(torch.ones(1))
    optimizer = torch.optim.SGD([*model.parameters(), scale], lr=0.01)
    for _ in range(6):
        optimizer.zero_grad()
        F.mse_loss(Scaled.apply(model(x), scale), y).backward()
        optimizer.step()


@fault("never-reached")
def both_sides_of_a_codebook_detached():
    encoder, book, decoder = nn.Linear(4, 2), nn.Embedding(6, 2), nn.Linear(2, 4)
    book.weight.data.normal_()
    parts = nn.ModuleList([encoder, book, decoder])
    optimizer = torch.optim.Adam(parts.parameters(), lr=0.01)
    for _ in range(6):
        x, _ = blobs()
        z = encoder(x)
        chosen = book(torch.cdist(z, book.weight).argmin(1))
        commitment = F.mse_loss(z, chosen.detach())
        pull = F.mse_loss(chosen.detach(), z)  # <- here
        out = decoder(z + (chosen - z).detach())
        optimizer.zero_grad()
        (F.mse_loss(out, x) + pull + 0.25 * commitment).backward()
        optimizer.step()


@fault("other-tensors")
def loss_of_adapted_copies():
    model = mlp(1, 1)
    outer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(5):
        outer.zero_grad()
        total = 0.0
        for _ in range(2):
            learner = copy.deepcopy(model)
            inner = torch.optim.SGD(learner.parameters(), lr=0.05)
            x = torch.randn(8, 1)
            inner.zero_grad()
            F.mse_loss(learner(x), x.sin()).backward()
            inner.step()
            total = total + F.mse_loss(learner(-x), -x.sin())
        total.backward()  # <- here
        outer.step()


@fault("schedule-of-other")
def schedule_of_the_optimizer_before():
    x, y = blobs()
    model = mlp()
    optimizer = torch.optim.SGD(model[2].parameters(), lr=0.1)
    schedule = lr_scheduler.ExponentialLR(optimizer, 0.9)
    for epoch in range(8):
        if epoch == 3:
            optimizer = torch.optim.SGD(model.parameters(), lr=0.01)  # <- here
        for inputs, targets in batches(x, y):
            optimizer.zero_grad()
            F.cross_entropy(model(inputs), targets).backward()
            optimizer.step()
        schedule.step()


@fault("not-in-optimizer")
def weight_made_anew_after_each_step():
    x, y = blobs()
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(6):
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()
        model[2].weight = nn.Parameter(model[2].weight.detach().clamp(-1, 1))  # <- here


@fault("last-of-loop")
def last_loss_of_the_loop_alone():
    x, y = blobs()
    trunk, heads = nn.Linear(4, 8), nn.ModuleList([nn.Linear(8, 3), nn.Linear(8, 3)])
    optimizer = torch.optim.Adam([*trunk.parameters(), *heads.parameters()], lr=0.01)
    for _ in range(6):
        h = trunk(x).relu()
        for head in heads:
            loss = F.cross_entropy(head(h), y)  # <- here
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


@fault("loss-unused")
def second_loss_for_the_log_alone():
    model = mlp(4, 4)
    side = nn.Linear(4, 1)
    optimizer = torch.optim.Adam([*model.parameters(), *side.parameters()], lr=0.01)
    for _ in range(6):
        x, y = lines()
        out = model(x)
        rebuilt = F.mse_loss(out, x)
        guessed = F.mse_loss(side(out), y)  # <- here
        optimizer.zero_grad()
        rebuilt.backward()
        optimizer.step()
        print(rebuilt.item(), guessed.item())


@fault("clip-nothing")
def clipping_of_a_used_up_iterator():
    x, y = blobs()
    model = mlp()
    weights = model.parameters()  # <- here
    optimizer = torch.optim.SGD(weights, lr=0.1)
    for _ in range(6):
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        nn.utils.clip_grad_norm_(weights, 1.0)
        optimizer.step()


@fault("running-total")
def total_in_an_object_of_ones_own():
    class Meter:
        def __init__(self):
            self.mean = 0.0

        def add(self, value):
            self.mean = 0.9 * self.mean + 0.1 * value

    x, y = blobs()
    model, meter = mlp(), Meter()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(12):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        meter.add(loss)  # <- here
