"""Steps in two parts that are both there, ensembles of unlike models, inputs that ask for a gradient of their own."""

import copy

import torch
from torch import nn
from torch.func import functional_call
from torch.nn import functional as F

from tests.audit.parts import batches, blobs, lines, mlp
from tests.audit.registry import right


@right
def climbs_and_comes_back():
    x, y = lines()
    model, rho = mlp(out=1), 0.05
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for _ in range(6):
        optimizer.zero_grad()
        F.mse_loss(model(x), y).backward()
        length = torch.stack([p.grad.norm() for p in model.parameters()]).norm()
        moves = [rho * p.grad / length for p in model.parameters()]
        with torch.no_grad():
            for p, move in zip(model.parameters(), moves, strict=True):
                p.add_(move)
        optimizer.zero_grad()
        F.mse_loss(model(x), y).backward()
        with torch.no_grad():
            for p, move in zip(model.parameters(), moves, strict=True):
                p.sub_(move)
        optimizer.step()


@right
def climbs_and_comes_back_by_data():
    x, y = lines()
    model = mlp(out=1)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(6):
        F.mse_loss(model(x), y).backward()
        kept = [p.data.clone() for p in model.parameters()]
        for p in model.parameters():
            p.data += 0.05 * p.grad / (p.grad.norm() + 1e-12)
        optimizer.zero_grad()
        F.mse_loss(model(x), y).backward()
        for p, value in zip(model.parameters(), kept, strict=True):
            p.data = value
        optimizer.step()
        optimizer.zero_grad()


@right
def perturbed_weights_restored_after_the_step():
    x, y = lines()
    model = mlp(out=1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for _ in range(6):
        optimizer.zero_grad()
        F.mse_loss(model(x), y).backward()
        moves = [0.02 * p.grad.sign() for p in model.parameters()]
        with torch.no_grad():
            for p, move in zip(model.parameters(), moves, strict=True):
                p.add_(move)
        optimizer.zero_grad()
        F.mse_loss(model(x), y).backward()
        optimizer.step()
        with torch.no_grad():
            for p, move in zip(model.parameters(), moves, strict=True):
                p.sub_(move)


def tasks():
    weight = torch.randn(4, 1)
    support, query = torch.randn(8, 4), torch.randn(8, 4)
    return support, support @ weight, query, query @ weight


@right
def adapted_to_the_support_and_judged_by_the_query():
    model = nn.Linear(4, 1)
    outer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(5):
        total = 0
        for _ in range(2):
            xs, ys, xq, yq = tasks()
            slow = dict(model.named_parameters())
            inner = F.mse_loss(functional_call(model, slow, (xs,)), ys)
            slopes = torch.autograd.grad(inner, list(slow.values()), create_graph=True)
            fast = {name: w - 0.1 * slope for (name, w), slope in zip(slow.items(), slopes, strict=True)}
            total = total + F.mse_loss(functional_call(model, fast, (xq,)), yq)
        outer.zero_grad()
        (total / 2).backward()
        outer.step()


@right
def first_order_by_a_copy():
    model = mlp(out=1)
    outer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(5):
        support_x, support_y, query_x, query_y = tasks()
        quick = copy.deepcopy(model)
        inner = torch.optim.SGD(quick.parameters(), lr=0.05)
        inner.zero_grad()
        F.mse_loss(quick(support_x), support_y).backward()
        inner.step()
        quick.zero_grad()
        F.mse_loss(quick(query_x), query_y).backward()
        for p, q in zip(model.parameters(), quick.parameters(), strict=True):
            p.grad = q.grad.clone()
        outer.step()


@right
def towards_what_the_copy_became():
    model = mlp(out=1)
    for _ in range(5):
        x, y, *_ = tasks()
        quick = copy.deepcopy(model)
        inner = torch.optim.SGD(quick.parameters(), lr=0.05)
        for _ in range(3):
            inner.zero_grad()
            F.mse_loss(quick(x), y).backward()
            inner.step()
        with torch.no_grad():
            for p, q in zip(model.parameters(), quick.parameters(), strict=True):
                p.lerp_(q, 0.1)


@right
def a_baseline_and_an_adapted_one_are_compared():
    model = nn.Linear(4, 1)
    outer = torch.optim.Adam(model.parameters(), lr=0.01)
    gains = []
    for _ in range(5):
        xs, ys, xq, yq = tasks()
        inner = F.mse_loss(model(xs), ys)
        by_weight, by_bias = torch.autograd.grad(inner, (model.weight, model.bias), create_graph=True)
        fast = {"weight": model.weight - 0.1 * by_weight, "bias": model.bias - 0.1 * by_bias}
        with torch.no_grad():
            before = F.mse_loss(model(xq), yq)
        after = F.mse_loss(functional_call(model, fast, (xq,)), yq)
        gains.append(float(before - after))
        outer.zero_grad()
        after.backward()
        outer.step()


@right
def attack_cleared_before_the_training():
    x, y = blobs()
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for _ in range(6):
        moved = x.clone().requires_grad_()
        F.cross_entropy(model(moved), y).backward()
        moved = (moved + 0.1 * moved.grad.sign()).detach()
        optimizer.zero_grad()
        F.cross_entropy(model(moved), y).backward()
        optimizer.step()


@right
def clean_and_attacked_inputs_together():
    x, y = blobs()
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for _ in range(6):
        optimizer.zero_grad()
        moved = x.clone().requires_grad_()
        clean_loss = F.cross_entropy(model(moved), y)
        clean_loss.backward()
        moved = (moved + 0.1 * moved.grad.sign()).detach()
        loss = F.cross_entropy(model(moved), y)
        loss.backward()
        optimizer.step()


@right
def both_losses_are_shown():
    x, y = blobs()
    model = mlp()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for a, b in batches(x, y) * 2:
        optimizer.zero_grad()
        moved = a.clone().requires_grad_()
        loss = F.cross_entropy(model(moved), b)
        loss.backward()
        shown = loss.item()
        loss = F.cross_entropy(model((moved + 0.1 * moved.grad.sign()).detach()), b)
        loss.backward()
        shown += loss.item()
        optimizer.step()


@right
def two_tasks_one_after_the_other():
    model, second = mlp(), nn.Linear(3, 1)
    optimizer = torch.optim.SGD([*model.parameters(), *second.parameters()], lr=0.05)
    sizes = []
    for _ in range(6):
        x, y = blobs()
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        sizes.append(float(model[0].weight.grad.norm()))
        F.mse_loss(second(model(x)), x.sum(1, keepdim=True)).backward()
        optimizer.step()


@right
def members_of_seeds_of_their_own():
    def make(number):
        torch.manual_seed(number)
        return mlp(out=1)

    x, y = lines()
    nets = [make(number) for number in range(3)]
    for net in nets:
        optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
        for _ in range(4):
            optimizer.zero_grad()
            F.mse_loss(net(x), y).backward()
            optimizer.step()
    with torch.no_grad():
        torch.stack([net(x) for net in nets]).std(0)


@right
def copies_that_see_rows_of_their_own():
    x, y = lines()
    members = [mlp(out=1)]
    members += [copy.deepcopy(members[0]) for _ in range(2)]
    for member in members:
        optimizer = torch.optim.SGD(member.parameters(), lr=0.05)
        for rows in torch.randint(len(x), (4, 8)):
            optimizer.zero_grad()
            F.mse_loss(member(x[rows]), y[rows]).backward()
            optimizer.step()
    with torch.no_grad():
        torch.stack([member(x) for member in members]).mean(0)


@right
def replicas_that_average_their_gradients():
    x, y = lines()
    first = mlp(out=1)
    replicas = [first, *(copy.deepcopy(first) for _ in range(2))]
    optimizers = [torch.optim.SGD(replica.parameters(), lr=0.05) for replica in replicas]
    for _ in range(4):
        for replica, a, b in zip(replicas, x.chunk(3), y.chunk(3), strict=True):
            replica.zero_grad()
            F.mse_loss(replica(a), b).backward()
        for shared in zip(*(replica.parameters() for replica in replicas), strict=True):
            mean = torch.stack([p.grad for p in shared]).mean(0)
            for p in shared:
                p.grad.copy_(mean)
        for optimizer in optimizers:
            optimizer.step()
    with torch.no_grad():
        torch.stack([replica(x) for replica in replicas]).std(0)


@right
def the_same_seed_gives_the_same_run():
    x, y = lines()
    ends = []
    for _ in range(2):
        torch.manual_seed(0)
        model = mlp(out=1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
        for _ in range(4):
            optimizer.zero_grad()
            F.mse_loss(model(x), y).backward()
            optimizer.step()
        ends.append(model[0].weight.detach().clone())
    assert torch.equal(*ends)


@right
def a_picture_that_the_optimizer_holds():
    features = nn.Sequential(nn.Conv2d(3, 4, 3, padding=1), nn.ReLU()).requires_grad_(False)
    wanted = features(torch.rand(1, 3, 8, 8))
    img = torch.rand(1, 3, 8, 8, requires_grad=True)
    optimizer = torch.optim.Adam([img], lr=0.05)
    for _ in range(6):
        optimizer.zero_grad()
        F.mse_loss(features(img), wanted).backward()
        optimizer.step()


@right
def points_of_a_differential_equation():
    points = torch.linspace(0, 1, 16)[:, None].requires_grad_(True)
    model = mlp(1, 1)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(6):
        value = model(points)
        (slope,) = torch.autograd.grad(value.sum(), points, create_graph=True)
        loss = (slope + value).square().mean() + (model(torch.zeros(1, 1)) - 1).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


@right
def data_that_ask_for_a_gradient_nobody_reads():
    x = torch.randn(16, 4, requires_grad=True)
    y = x.detach().sum(1, keepdim=True)
    model = mlp(out=1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for _ in range(6):
        optimizer.zero_grad()
        F.mse_loss(model(x), y).backward()
        optimizer.step()


@right
def a_code_moved_by_hand_beside_the_optimizer():
    generator, wanted = mlp(out=6), torch.rand(1, 6)
    z = torch.randn(1, 4, requires_grad=True)
    optimizer = torch.optim.Adam(generator.parameters(), lr=0.01)
    for _ in range(6):
        optimizer.zero_grad()
        z.grad = None
        F.mse_loss(generator(z), wanted).backward()
        optimizer.step()
        with torch.no_grad():
            z -= 0.1 * z.grad
