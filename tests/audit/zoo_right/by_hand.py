"""Right loops that write gradients or weights by hand, and right loops whose layers learn by themselves."""

import copy

import torch
from torch import nn
from torch.nn import functional as F
from torch.nn.utils import parameters_to_vector, vector_to_parameters

from tests.audit.parts import blobs, lines, mlp
from tests.audit.registry import right


def write(parameters, flat, how):
    """Put a flat gradient into .grad, in one of the ways that people have."""
    at = 0
    for p in parameters:
        part = flat[at : at + p.numel()].view_as(p).clone()
        at += p.numel()
        if how == "set" or p.grad is None:
            p.grad = part
        else:
            p.grad.copy_(part)


@right
def search_by_perturbations():
    x, y = lines()
    model = mlp(out=1).requires_grad_(False)
    parameters = list(model.parameters())
    optimizer = torch.optim.Adam(parameters, lr=0.02)
    for _ in range(6):
        center = parameters_to_vector(parameters).clone()
        slope = torch.zeros_like(center)
        for _ in range(8):
            noise = torch.randn_like(center)
            ends = []
            for sign in (1, -1):
                vector_to_parameters(center + sign * 0.05 * noise, parameters)
                ends.append(F.mse_loss(model(x), y))
            slope += (ends[0] - ends[1]) / 0.1 * noise / 8
        vector_to_parameters(center, parameters)
        write(parameters, slope, "set")
        optimizer.step()


@right
def search_by_perturbations_after_passes():
    x, y = lines()
    model = mlp(out=1)
    parameters = list(model.parameters())
    optimizer = torch.optim.SGD(parameters, lr=0.01, momentum=0.9)
    for _ in range(4):
        optimizer.zero_grad(set_to_none=False)
        F.mse_loss(model(x), y).backward()
        optimizer.step()
    model.requires_grad_(False)
    for _ in range(6):
        optimizer.zero_grad(set_to_none=False)
        center = parameters_to_vector(parameters).clone()
        noise = torch.randn_like(center)
        vector_to_parameters(center + 0.01 * noise, parameters)
        up = F.mse_loss(model(x), y)
        vector_to_parameters(center - 0.01 * noise, parameters)
        down = F.mse_loss(model(x), y)
        vector_to_parameters(center, parameters)
        write(parameters, (up - down) / 0.02 * noise, "copy")
        optimizer.step()


@right
def gradients_of_a_function():
    x, y = lines()
    model = mlp(out=1).requires_grad_(False)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)

    def loss(values):
        return F.mse_loss(torch.func.functional_call(model, values, (x,)), y)

    for _ in range(6):
        found = torch.func.grad(loss)({name: p.detach() for name, p in model.named_parameters()})
        for name, p in model.named_parameters():
            p.grad = found[name]
        optimizer.step()


@right
def forward_gradient():
    x, y = lines()
    model = nn.Linear(4, 1).requires_grad_(False)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)

    def loss(weight, bias):
        return F.mse_loss(F.linear(x, weight, bias), y)

    for _ in range(6):
        ways = tuple(map(torch.randn_like, model.parameters()))
        _, slope = torch.func.jvp(loss, tuple(model.parameters()), ways)
        for p, way in zip(model.parameters(), ways, strict=True):
            p.grad = slope * way
        optimizer.step()


@right
def server_of_several_clients():
    x, y = lines()
    server = mlp(out=1).requires_grad_(False)
    optimizer = torch.optim.SGD(server.parameters(), lr=1.0, momentum=0.5)
    for _ in range(5):
        optimizer.zero_grad()
        moves = [torch.zeros_like(p) for p in server.parameters()]
        for client in range(2):
            local = copy.deepcopy(server).requires_grad_(True)
            own = torch.optim.SGD(local.parameters(), lr=0.05)
            for _ in range(2):
                own.zero_grad()
                F.mse_loss(local(x[client::2]), y[client::2]).backward()
                own.step()
            for move, p, q in zip(moves, server.parameters(), local.parameters(), strict=True):
                move += (p - q.detach()) / 2
        for p, move in zip(server.parameters(), moves, strict=True):
            p.grad = move
        optimizer.step()


class Perturbing(torch.optim.Optimizer):
    """Keeps a random move where it lowers the loss. It needs no gradient."""

    def __init__(self, parameters, size=0.05):
        super().__init__(parameters, {"size": size})

    @torch.no_grad()
    def step(self, closure):
        best = closure()
        for group in self.param_groups:
            for p in group["params"]:
                move = group["size"] * torch.randn_like(p)
                p.add_(move)
                now = closure()
                if now < best:
                    best = now
                else:
                    p.sub_(move)
        return best


@right
def optimizer_that_needs_no_gradient():
    x, y = lines()
    model = mlp(out=1).requires_grad_(False)
    optimizer = Perturbing(model.parameters())
    for _ in range(8):
        optimizer.step(lambda: F.mse_loss(model(x), y))


@right
def rule_of_a_layer_beside_passes():
    x, y = blobs()
    body = nn.Linear(4, 8, bias=False).requires_grad_(False)
    head = nn.Linear(8, 3)
    optimizer = torch.optim.SGD([*body.parameters(), *head.parameters()], lr=0.05)
    for _ in range(6):
        optimizer.zero_grad()
        hidden = torch.tanh(body(x))
        F.cross_entropy(head(hidden), y).backward()
        body.weight.grad = -(hidden.T @ (x - hidden @ body.weight)) / len(x)
        optimizer.step()


class Local(nn.Module):
    """A layer with an optimizer of its own, which learns from its own output."""

    def __init__(self, inputs, outputs):
        super().__init__()
        self.linear = nn.Linear(inputs, outputs)
        self.optimizer = torch.optim.SGD(self.linear.parameters(), lr=0.03)

    def forward(self, x):
        return self.linear(F.normalize(x, dim=1)).relu()

    def train_on(self, good, bad):
        goodness = [self(it).square().sum(1) for it in (good, bad)]
        loss = F.softplus(goodness[1] - goodness[0]).mean()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return self(good).detach(), self(bad).detach()


@right
def layers_with_optimizers_of_their_own():
    x, _ = blobs(32)
    layers = [Local(4, 16), Local(16, 16), Local(16, 8)]
    for _ in range(6):
        good, bad = x, x[torch.randperm(len(x))].roll(1, dims=1)
        for layer in layers:
            good, bad = layer.train_on(good, bad)


@right
def layers_one_after_another_in_each_step():
    x, y = blobs(32)
    layers = nn.ModuleList([nn.Linear(4, 8), nn.Linear(8, 8)])
    heads = nn.ModuleList([nn.Linear(8, 3), nn.Linear(8, 3)])
    optimizers = [torch.optim.Adam([*a.parameters(), *b.parameters()]) for a, b in zip(layers, heads, strict=True)]
    for _ in range(5):
        hidden = x
        for layer, head, optimizer in zip(layers, heads, optimizers, strict=True):
            loss = F.cross_entropy(head(layer(hidden).relu()), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            hidden = layer(hidden).relu().detach()


@right
def codes_kept_in_a_memory():
    class Learner:
        def __init__(self):
            self.net = mlp(out=4)
            self.optimizer = torch.optim.SGD(self.net.parameters(), lr=0.05)
            self.memory = []

        def remember(self, x):
            self.memory.append(self.net(x).detach())

        def learn(self, x):
            scores = self.net(x) @ torch.cat(self.memory[-3:]).T
            loss = F.cross_entropy(scores, torch.arange(len(x)))
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()

    x, _ = blobs(8)
    learner = Learner()
    for _ in range(6):
        learner.remember(x)
        learner.learn(x)


@right
def loss_kept_for_a_later_method():
    class Learner:
        def __init__(self):
            self.net = mlp()
            self.optimizer = torch.optim.SGD(self.net.parameters(), lr=0.05)
            self.losses = []

        def measure(self, x, y):
            loss = F.cross_entropy(self.net(x), y)
            self.losses.append(loss)
            return loss.item()

        def update(self):
            self.optimizer.zero_grad()
            torch.stack(self.losses).max().backward()
            self.optimizer.step()
            self.losses.clear()

    x, y = blobs(16)
    learner = Learner()
    for _ in range(5):
        for at in range(4):
            learner.measure(x[at::4], y[at::4])
        learner.update()


@right
def average_moved_by_hand_and_called():
    x, y = blobs()
    model = mlp()
    shadow = copy.deepcopy(model).requires_grad_(False)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for _ in range(6):
        wanted = shadow(x).softmax(1)
        out = model(x)
        loss = F.cross_entropy(out, y) + 0.1 * F.mse_loss(out.softmax(1), wanted)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        with torch.no_grad():
            for slow, fast in zip(shadow.parameters(), model.parameters(), strict=True):
                slow.lerp_(fast, 0.05)


@right
def average_held_by_the_optimizer():
    x, y = blobs()
    model = mlp()
    shadow = copy.deepcopy(model).requires_grad_(False)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    average = torch.optim.SGD(shadow.parameters(), lr=0.1)
    for _ in range(6):
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()
        for slow, fast in zip(shadow.parameters(), model.parameters(), strict=True):
            slow.grad = slow - fast.detach()
        average.step()


@right
def noise_on_frozen_weights():
    x, y = blobs()
    model = mlp()
    model[0].requires_grad_(False)
    optimizer = torch.optim.SGD([p for p in model.parameters() if p.requires_grad], lr=0.1)
    for _ in range(6):
        kept = model[0].weight.clone()
        model[0].weight.add_(0.01 * torch.randn_like(kept))
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()
        model[0].weight.copy_(kept)
