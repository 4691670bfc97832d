"""Steps in two parts of which one is forgotten, ensembles of one model, networks trained in a picture's place."""

import copy

import torch
from torch import nn
from torch.func import functional_call
from torch.nn import functional as F

from tests.audit.parts import batches, blobs, lines, mlp
from tests.audit.registry import fault


@fault("ascent-not-undone")
def climbs_and_stays_there():
    x, y = lines()
    model, rho = mlp(out=1), 0.05
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for _ in range(6):
        optimizer.zero_grad()
        F.mse_loss(model(x), y).backward()
        length = torch.stack([p.grad.norm() for p in model.parameters()]).norm()
        with torch.no_grad():
            for p in model.parameters():
                p.add_(rho * p.grad / length)  # <- here
        optimizer.zero_grad()
        F.mse_loss(model(x), y).backward()
        optimizer.step()


@fault("ascent-not-undone")
def climbs_in_a_helper():
    def ascend(model, rho):
        length = torch.norm(torch.stack([p.grad.norm(2) for p in model.parameters()]))
        kept = {}
        with torch.no_grad():
            for name, p in model.named_parameters():
                kept[name] = p.grad * (rho / (length + 1e-12))
                p += kept[name]  # <- here
        return kept

    x, y = blobs()
    model = mlp()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for a, b in batches(x, y) * 2:
        F.cross_entropy(model(a), b).backward()
        ascend(model, 0.1)
        optimizer.zero_grad()
        F.cross_entropy(model(a), b).backward()
        optimizer.step()
        optimizer.zero_grad()


@fault("ascent-not-undone")
def climbs_in_an_optimizer_of_its_own():
    class Sharpness(torch.optim.Optimizer):
        def __init__(self, params, base, rho):
            super().__init__(params, {"rho": rho})
            self.base = base(self.param_groups, lr=0.05)

        @torch.no_grad()
        def first_step(self):
            norms = [p.grad.norm(2) for group in self.param_groups for p in group["params"]]
            for group in self.param_groups:
                scale = group["rho"] / torch.stack(norms).norm()
                for p in group["params"]:
                    p.add_(p.grad * scale)  # <- here
            self.zero_grad()

        def second_step(self):
            self.base.step()
            self.zero_grad()

    x, y = lines()
    model = mlp(out=1)
    optimizer = Sharpness(model.parameters(), torch.optim.SGD, 0.05)
    for _ in range(6):
        F.mse_loss(model(x), y).backward()
        optimizer.first_step()
        F.mse_loss(model(x), y).backward()
        optimizer.second_step()


def tasks():
    weight = torch.randn(4, 1)
    support, query = torch.randn(8, 4), torch.randn(8, 4)
    return support, support @ weight, query, query @ weight


@fault("adaptation-unmeasured")
def outer_loss_of_the_support_rows():
    model = nn.Linear(4, 1)
    outer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(5):
        total = 0
        for _ in range(2):
            xs, ys, xq, yq = tasks()  # noqa: RUF059
            slow = dict(model.named_parameters())
            inner = F.mse_loss(functional_call(model, slow, (xs,)), ys)
            slopes = torch.autograd.grad(inner, list(slow.values()), create_graph=True)
            fast = {name: w - 0.1 * slope for (name, w), slope in zip(slow.items(), slopes, strict=True)}
            total = total + F.mse_loss(functional_call(model, fast, (xs,)), ys)  # <- here
        outer.zero_grad()
        (total / 2).backward()
        outer.step()


@fault("adaptation-unmeasured", "not-divided")
def outer_loss_of_the_copy_thrown_away():
    model = mlp(out=1)
    outer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(6):
        support_x, support_y, query_x, query_y = tasks()
        quick = copy.deepcopy(model)
        inner = torch.optim.SGD(quick.parameters(), lr=0.05)
        for _ in range(2):
            inner.zero_grad()
            F.mse_loss(quick(support_x), support_y).backward()
            inner.step()
        loss = F.mse_loss(model(query_x), query_y)  # <- here
        outer.zero_grad()
        loss.backward()
        outer.step()


@fault("adaptation-unmeasured")
def query_rows_with_the_support_rows_targets():
    weight, bias = (0.1 * torch.randn(4, 1)).requires_grad_(), torch.zeros(1, requires_grad=True)
    outer = torch.optim.SGD([weight, bias], lr=0.01)
    for _ in range(5):
        x_s, y_s, x_q, y_q = tasks()  # noqa: RUF059
        w, b = weight, bias
        for _ in range(2):
            loss = F.mse_loss(x_s @ w + b, y_s)
            by_w, by_b = torch.autograd.grad(loss, (w, b), create_graph=True)
            w, b = w - 0.05 * by_w, b - 0.05 * by_b
        after = F.mse_loss(x_q @ w + b, y_s)  # <- here
        outer.zero_grad()
        after.backward()
        outer.step()


@fault("wrong-loss")
def attack_within_the_loop():
    x, y = blobs()
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for _ in range(6):
        optimizer.zero_grad()
        moved = x.clone().requires_grad_()
        F.cross_entropy(model(moved), y).backward()  # <- here
        moved = (moved + 0.1 * moved.grad.sign()).detach()
        F.cross_entropy(model(moved), y).backward()
        optimizer.step()


@fault("wrong-loss")
def attack_of_several_steps_within_the_loop():
    x, y = blobs()
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for a, b in batches(x, y) * 2:
        optimizer.zero_grad()
        delta = torch.zeros_like(a, requires_grad=True)
        for _ in range(2):
            loss = F.cross_entropy(model(a + delta), b)
            loss.backward()  # <- here
            delta.data = (delta.data + 0.02 * delta.grad.sign()).clamp(-0.1, 0.1)
            delta.grad.zero_()
        loss = F.cross_entropy(model(a + delta.detach()), b)
        loss.backward()
        optimizer.step()


@fault("wrong-loss")
def slopes_of_the_inputs_for_a_picture():
    x, y = blobs()
    model = mlp()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    importance = torch.zeros(4)
    for a, b in batches(x, y) * 2:
        optimizer.zero_grad()
        probe = a.clone().requires_grad_(True)
        model(probe).max(1).values.sum().backward()  # <- here
        importance += probe.grad.abs().mean(0)
        loss = F.cross_entropy(model(a), b)
        loss.backward()
        optimizer.step()


@fault("wrong-loss")
def slopes_of_held_out_rows_for_a_number():
    x, y = blobs(20)
    x_val, y_val = blobs(8)
    model = mlp()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    sizes = []
    for a, b in batches(x, y):
        optimizer.zero_grad()
        F.cross_entropy(model(x_val), y_val).backward()  # <- here
        sizes.append(sum(float(p.grad.norm()) for p in model.parameters()))
        F.cross_entropy(model(a), b).backward()
        optimizer.step()


@fault("members-alike", "graph-in-validation")
def one_seed_for_each_member():
    def make():
        torch.manual_seed(1)  # <- here
        return mlp(out=1)

    x, y = lines()
    nets = [make() for _ in range(3)]
    for net in nets:
        optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
        for _ in range(4):
            optimizer.zero_grad()
            F.mse_loss(net(x), y).backward()
            optimizer.step()
    with torch.no_grad():
        torch.stack([net(x) for net in nets]).std(0)


@fault("members-alike")
def members_copied_into_a_list_of_modules():
    class Committee(nn.Module):
        def __init__(self, base, count):
            super().__init__()
            self.members = nn.ModuleList(copy.deepcopy(base) for _ in range(count))  # <- here

        def forward(self, x):
            return torch.stack([member(x) for member in self.members])

    x, y = lines()
    model = Committee(mlp(out=1), 3)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for _ in range(4):
        optimizer.zero_grad()
        F.mse_loss(model(x), y.expand(3, -1, -1)).backward()
        optimizer.step()


@fault("members-alike")
def members_that_load_the_first_ones_state():
    x, y = lines()
    ensemble = [mlp(out=1) for _ in range(3)]
    for net in ensemble[1:]:
        net.load_state_dict(ensemble[0].state_dict())  # <- here
    optimizers = [torch.optim.SGD(net.parameters(), lr=0.05) for net in ensemble]
    for a, b in batches(x, y):
        for net, optimizer in zip(ensemble, optimizers, strict=True):
            optimizer.zero_grad()
            F.mse_loss(net(a), b).backward()
            optimizer.step()
    with torch.no_grad():
        return sum(net(x) for net in ensemble) / 3


@fault("members-alike", "seed-repeats")
def seeded_in_each_round():
    x, y = lines()
    models = []
    for _ in range(3):
        torch.manual_seed(42)  # <- here
        model = mlp(out=1)
        optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
        for rows in torch.randperm(len(x)).split(4):
            optimizer.zero_grad()
            F.mse_loss(model(x[rows]), y[rows]).backward()
            optimizer.step()
        models.append(model)
    total = 0
    with torch.no_grad():
        for model in models:
            total += model(x)


@fault("input-not-held")
def features_trained_in_the_pictures_place():
    features = nn.Sequential(nn.Conv2d(3, 4, 3, padding=1), nn.ReLU())
    content = torch.rand(1, 3, 8, 8)
    img = torch.rand(1, 3, 8, 8, requires_grad=True)
    optimizer = torch.optim.Adam(features.parameters(), lr=0.01)  # <- here
    for _ in range(6):
        optimizer.zero_grad()
        F.mse_loss(features(img), features(content).detach()).backward()
        optimizer.step()


@fault("input-not-held")
def generator_trained_in_the_codes_place():
    generator, wanted = mlp(out=6), torch.rand(1, 6)
    z = torch.randn(1, 4).requires_grad_()
    optimizer = torch.optim.Adam(generator.parameters(), lr=0.05)  # <- here
    for _ in range(6):
        loss = F.mse_loss(generator(z), wanted)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


@fault("input-not-held")
def optimizer_of_a_frozen_network():
    features = nn.Conv2d(3, 4, 3)
    for p in features.parameters():
        p.requires_grad_(False)
    wanted = features(torch.rand(1, 3, 8, 8))
    start = torch.zeros(1, 3, 8, 8, requires_grad=True)
    optimizer = torch.optim.SGD(features.parameters(), lr=0.05)  # <- here
    for _ in range(6):
        optimizer.zero_grad()
        F.mse_loss(features(start), wanted).backward()
        optimizer.step()
