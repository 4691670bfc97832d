"""Right loops with lines that look like those of the faulty ones of the same name."""

import copy
import random
from collections import deque

import torch
from torch import nn
from torch.nn import functional as F
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn
from torch.utils.data import DataLoader, TensorDataset

from tests.audit.parts import batches, blobs, lines, mlp
from tests.audit.registry import right


@right
def averages_whose_decay_grows():
    x, y = blobs(48)
    model = mlp()
    shadow, mean = copy.deepcopy(model), AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(0.99))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step, (inputs, targets) in enumerate(batches(x, y)):
        optimizer.zero_grad()
        F.cross_entropy(model(inputs), targets).backward()
        optimizer.step()
        mean.update_parameters(model)
        decay = min(0.999, (1 + step) / (10 + step))
        with torch.no_grad():
            for kept, live in zip(shadow.parameters(), model.parameters(), strict=True):
                kept.mul_(decay).add_(live, alpha=1 - decay)


@right
def held_near_where_it_began():
    x, y = blobs(48)
    model = mlp()
    first = [p.detach().clone() for p in model.parameters()]
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for inputs, targets in batches(x, y):
        optimizer.zero_grad()
        F.cross_entropy(model(inputs), targets).backward()
        optimizer.step()
        with torch.no_grad():
            for p, origin in zip(model.parameters(), first, strict=True):
                p.lerp_(origin, 0.01)
                p.copy_(0.99 * p + 0.01 * origin)
                p.mul_(0.99).add_(origin * 0.01)


@right
def a_target_that_is_set_every_few_steps():
    x, y = lines(48)
    model, target = mlp(out=1), mlp(out=1)
    target.load_state_dict(model.state_dict())
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for step, (inputs, targets) in enumerate(batches(x, y)):
        with torch.no_grad():
            wanted = targets + 0.5 * target(inputs)
        optimizer.zero_grad()
        F.mse_loss(model(inputs), wanted).backward()
        optimizer.step()
        if step % 4 == 3:
            with torch.no_grad():
                for kept, live in zip(target.parameters(), model.parameters(), strict=True):
                    kept.lerp_(live, 0.95)


@right
def straight_through_as_it_is_meant():
    x, y = blobs(48)
    inner, outer, codes = nn.Linear(4, 3), nn.Linear(3, 3), nn.Parameter(torch.randn(6, 3))
    optimizer = torch.optim.Adam([*inner.parameters(), *outer.parameters(), codes], lr=0.01)
    for inputs, targets in batches(x, y, 6):
        hidden = inner(inputs)
        nearest = codes[torch.cdist(hidden.detach(), codes.detach()).argmin(dim=1)]
        passed = hidden + (nearest - hidden).detach()
        passed = passed + (passed.round() - passed).detach()
        passed = (passed - passed.detach()) + passed.round().detach()
        loss = F.cross_entropy(outer(passed), targets)
        loss = loss + F.mse_loss(nearest, hidden.detach()) + 0.25 * F.mse_loss(hidden, nearest.detach())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


@right
def rows_of_a_table_and_what_is_left_of_an_input():
    x, y = blobs(48)
    table, head = nn.Embedding(3, 4), nn.Linear(4, 3)
    optimizer = torch.optim.SGD([*table.parameters(), *head.parameters()], lr=0.1)
    for inputs, targets in batches(x, y, 6):
        row = table(inputs.argmax(dim=1) % 3)
        rest = (inputs - row).detach()
        optimizer.zero_grad()
        F.cross_entropy(head(row + 0.5 * rest) + head(inputs + rest), targets).backward()
        optimizer.step()


@right
def levels_passed_on_the_line_of_the_loss():
    x, y = lines(48)
    inner, outer = nn.Linear(4, 8), nn.Linear(8, 1)
    optimizer = torch.optim.SGD([*inner.parameters(), *outer.parameters()], lr=0.05)
    for inputs, targets in batches(x, y, 6):
        hidden = inner(inputs).tanh()
        levels = (hidden * 4).round() / 4
        optimizer.zero_grad()
        F.mse_loss(outer(hidden + (levels - hidden).detach()), targets).backward()
        optimizer.step()


@right
def states_that_are_copied_into_the_memory():
    net = nn.Linear(3, 1)
    optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
    position, memory = torch.zeros(3), deque(maxlen=100)
    for step in range(40):
        position += 0.1 * torch.randn(3)
        memory.append((position.clone(), float(position.sum())))
        if step >= 10:
            states, sums = zip(*random.sample(memory, 8), strict=True)
            optimizer.zero_grad()
            F.mse_loss(net(torch.stack(states)).squeeze(1), torch.tensor(sums)).backward()
            optimizer.step()


@right
def one_state_for_each_action():
    net = nn.Linear(5, 1)
    optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
    state, actions = torch.zeros(3), torch.tensor([[0.0, 1.0], [1.0, 0.0], [0.5, 0.5], [0.2, 0.8]])
    frames = deque(maxlen=4)
    for _ in range(4):
        frames.append(torch.ones(2).mul_(2).add_(1).sub_(1).div_(2))
    for _ in range(12):
        state.mul_(0.9).add_(torch.randn(3))
        repeated = [state for _ in range(len(actions))]
        torch.stack([state] * 8)
        torch.stack(list(frames))
        optimizer.zero_grad()
        F.mse_loss(net(torch.cat([torch.stack(repeated), actions], dim=1)), actions.sum(1, keepdim=True)).backward()
        optimizer.step()


@right
def one_order_for_both():
    x, y = blobs(40)
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(4):
        torch.manual_seed(epoch)
        inputs_now = x[torch.randperm(40)]
        torch.manual_seed(epoch)
        targets_now = y[torch.randperm(40)]
        for at in range(0, 40, 10):
            optimizer.zero_grad()
            F.cross_entropy(model(inputs_now[at : at + 10]), targets_now[at : at + 10]).backward()
            optimizer.step()


@right
def loaders_with_the_same_generator():
    x, y = lines(40)
    model = mlp(out=1)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    inputs_of, targets_of = (
        DataLoader(it, batch_size=8, shuffle=True, generator=torch.Generator().manual_seed(5)) for it in (x, y)
    )
    for _ in range(3):
        for inputs, targets in zip(inputs_of, targets_of, strict=True):
            optimizer.zero_grad()
            F.mse_loss(model(inputs), targets).backward()
            optimizer.step()


@right
def labelled_and_unlabelled_rows_side_by_side():
    x, y = blobs(40)
    other = torch.randn(40, 4)
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with_labels = DataLoader(TensorDataset(x, y), batch_size=8, shuffle=True)
    without = DataLoader(TensorDataset(other), batch_size=8, shuffle=True)
    for _ in range(3):
        for (inputs, targets), (more,) in zip(with_labels, without, strict=True):
            with torch.no_grad():
                guessed = model(more).argmax(dim=1)
            shift = model(more + 0.1 * torch.randn_like(more))
            loss = F.cross_entropy(model(inputs), targets) + 0.1 * F.cross_entropy(shift, guessed)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()


@right
def mixed_rows_and_mixed_losses():
    x, y = blobs(48)
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(8):
        rows = torch.randperm(48)[:12]
        inputs, targets, order = x[rows], y[rows], torch.randperm(12)
        share = torch.rand(())
        out = model(share * inputs + (1 - share) * inputs[order])
        loss = share * F.cross_entropy(out, targets) + (1 - share) * F.cross_entropy(out, targets[order])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


@right
def pairs_and_pairs_torn_apart():
    x, y = lines(48)
    judge = mlp(5, 1)
    optimizer = torch.optim.Adam(judge.parameters(), lr=0.01)
    for inputs, targets in batches(x, y, 6):
        both = torch.cat([inputs, targets], dim=1)
        apart = torch.cat([inputs, targets[torch.randperm(6)]], dim=1)
        out = judge(torch.cat([both, apart]))
        optimizer.zero_grad()
        F.binary_cross_entropy_with_logits(out, torch.cat([torch.ones(6, 1), torch.zeros(6, 1)])).backward()
        optimizer.step()


@right
def labels_torn_apart_to_see_what_is_learned_by_heart():
    x, y = blobs(48)
    random_labels = y[torch.randperm(48)]
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for inputs, targets in batches(x, random_labels):
        optimizer.zero_grad()
        F.cross_entropy(model(inputs), targets).backward()
        optimizer.step()


@right
def one_noise_hidden_by_another():
    x, _ = blobs(64)
    model = mlp(4, 4)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for clean in x.split(8):
        first, second = (clean + 0.2 * torch.randn_like(clean) for _ in range(2))
        added = torch.randn_like(clean)
        out = model(clean + 0.1 * added)
        optimizer.zero_grad()
        (F.mse_loss(model(first), second) + (out - added).pow(2).mean()).backward()
        optimizer.step()


@right
def numbers_by_chance_as_data():
    model = mlp(4, 4)
    x, y = torch.randn(32, 4), torch.randn(32, 4)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for inputs, targets in batches(x, y):
        optimizer.zero_grad()
        F.mse_loss(model(inputs + 0.1 * torch.randn_like(inputs)), targets).backward()
        optimizer.step()
    for _ in range(4):
        optimizer.zero_grad()
        F.mse_loss(model(torch.randn(8, 4)), torch.randn(8, 4)).backward()
        optimizer.step()
