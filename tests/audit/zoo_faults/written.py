"""Faults in what a line says: averages, straight-through lines, names, buffers, pairs and noise."""

import copy
import random
from collections import deque

import torch
from torch import nn
from torch.nn import functional as F
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn
from torch.utils.data import DataLoader, TensorDataset

from tests.audit.parts import batches, blobs, lines, mlp
from tests.audit.registry import fault


@fault("average-follows")
def the_decay_on_the_live_weights():
    x, y = blobs(48)
    model = mlp()
    shadow = copy.deepcopy(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for inputs, targets in batches(x, y):
        optimizer.zero_grad()
        F.cross_entropy(model(inputs), targets).backward()
        optimizer.step()
        with torch.no_grad():
            for mean, live in zip(shadow.parameters(), model.parameters(), strict=True):
                mean.lerp_(live, 0.99)  # <- here


@fault("average-follows")
def a_dictionary_of_averages_turned_round():
    x, y = blobs(48)
    model = mlp()
    decay = 0.9
    shadow = {name: value.clone() for name, value in model.state_dict().items()}
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def follow():
        for name, value in model.state_dict().items():
            shadow[name] = decay * value + (1 - decay) * shadow[name]  # <- here

    for inputs, targets in batches(x, y):
        optimizer.zero_grad()
        F.cross_entropy(model(inputs), targets).backward()
        optimizer.step()
        follow()


@fault("average-follows")
def an_averaged_model_with_the_rest_for_its_decay():
    x, y = blobs(48)
    model = mlp()
    mean = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(0.01))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for inputs, targets in batches(x, y):
        optimizer.zero_grad()
        F.cross_entropy(model(inputs), targets).backward()
        optimizer.step()
        mean.update_parameters(model)  # <- here


@fault("straight-through-reversed")
def a_codebook_row_plus_what_it_lacks():
    x, _ = blobs(48)
    inner, outer, codes = nn.Linear(4, 3), nn.Linear(3, 4), nn.Parameter(torch.randn(6, 3))
    optimizer = torch.optim.Adam([*inner.parameters(), *outer.parameters(), codes], lr=0.01)
    for (inputs,) in DataLoader(TensorDataset(x), batch_size=6):
        hidden = inner(inputs)
        nearest = codes[torch.cdist(hidden.detach(), codes.detach()).argmin(dim=1)]
        passed = nearest + (hidden - nearest).detach()  # <- here
        loss = F.mse_loss(outer(passed), inputs) + F.mse_loss(nearest, hidden.detach())
        loss = loss + 0.25 * F.mse_loss(hidden, nearest.detach())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


@fault("straight-through-reversed")
def signs_that_are_lost_again():
    x, y = blobs(48)
    inner, outer = nn.Linear(4, 8), nn.Linear(8, 3)
    optimizer = torch.optim.SGD([*inner.parameters(), *outer.parameters()], lr=0.1)

    def binary(values):
        with torch.no_grad():
            rest = values - values.sign()
        return torch.sign(values) + rest  # <- here

    for inputs, targets in batches(x, y, 6):
        optimizer.zero_grad()
        out = outer(binary(inner(inputs)))
        (F.cross_entropy(out, targets) + 0.1 * inner(inputs).pow(2).mean()).backward()
        optimizer.step()


@fault("straight-through-reversed")
def moved_away_from_the_levels():
    x, y = lines(48)
    inner, outer = nn.Linear(4, 8), nn.Linear(8, 1)
    optimizer = torch.optim.SGD([*inner.parameters(), *outer.parameters()], lr=0.05)
    for inputs, targets in batches(x, y, 6):
        hidden = inner(inputs).tanh()
        levels = (hidden * 4).round() / 4
        optimizer.zero_grad()
        F.mse_loss(outer(hidden + (hidden - levels).detach()), targets).backward()  # <- here
        optimizer.step()


@fault("kept-by-reference")
def states_of_a_walk_that_moves_in_place():
    net = nn.Linear(3, 1)
    optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
    position, memory = torch.zeros(3), deque(maxlen=100)
    for step in range(40):
        position += 0.1 * torch.randn(3)
        memory.append((position, float(position.sum())))  # <- here
        if step >= 10:
            states, sums = zip(*random.sample(memory, 8), strict=True)
            optimizer.zero_grad()
            F.mse_loss(net(torch.stack(states)).squeeze(1), torch.tensor(sums)).backward()
            optimizer.step()


@fault("kept-by-reference")
def observations_gathered_before_the_training():
    class Walker:
        def __init__(self):
            self.place = torch.zeros(2)

        def step(self):
            self.place.add_(torch.randn(2), alpha=0.1)
            return {"place": self.place, "far": self.place.norm().item()}  # <- here

    walker, seen, far = Walker(), [], []
    for _ in range(32):
        place = walker.step()["place"]
        seen.append(place)
        far.append(place.norm().item())
    data = DataLoader(TensorDataset(torch.stack(seen), torch.tensor(far)), batch_size=8)
    net = nn.Linear(2, 1)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for _ in range(2):
        for inputs, targets in data:
            optimizer.zero_grad()
            F.mse_loss(net(inputs).squeeze(1), targets).backward()
            optimizer.step()


@fault("kept-by-reference")
def predictions_in_a_buffer_that_is_used_again():
    x, y = blobs(64)
    model, out = mlp(), torch.empty(8, 3)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    @torch.no_grad()
    def predict():
        found = []
        for inputs in x.split(8):
            out.copy_(model(inputs))
            found.append(out)  # <- here
        return torch.cat(found)

    for inputs, targets in batches(x, y, 16):
        optimizer.zero_grad()
        F.cross_entropy(model(inputs), targets).backward()
        optimizer.step()
        predict()


@fault("shuffled-apart")
def two_orders_in_each_epoch():
    x, y = blobs(40)
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(4):
        inputs_now = x[torch.randperm(40)]
        targets_now = y[torch.randperm(40)]  # <- here
        for at in range(0, 40, 10):
            out = model(inputs_now[at : at + 10])
            optimizer.zero_grad()
            F.cross_entropy(out, targets_now[at : at + 10]).backward()
            optimizer.step()


@fault("shuffled-apart")
def two_loaders_that_each_shuffle():
    x, y = lines(40)
    model = mlp(out=1)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    inputs_of = DataLoader(x, batch_size=8, shuffle=True)
    targets_of = DataLoader(y, batch_size=8, shuffle=True)  # <- here
    for _ in range(3):
        for inputs, targets in zip(inputs_of, targets_of, strict=True):
            optimizer.zero_grad()
            ((model(inputs) - targets) ** 2).mean().backward()
            optimizer.step()


@fault("shuffled-apart")
def rows_drawn_twice_for_one_batch():
    x, y = lines(64)
    model = mlp(out=1)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)

    def batch(data):
        return data[torch.randint(0, len(data), (16,))]  # <- here

    for _ in range(8):
        optimizer.zero_grad()
        nn.MSELoss()(model(batch(x)), batch(y)).backward()
        optimizer.step()


@fault("shuffled-apart")
def only_the_targets_are_mixed():
    x, y = blobs(48)
    order = torch.randperm(48)
    y = y[order]  # <- here
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for inputs, targets in batches(x, y):
        optimizer.zero_grad()
        F.cross_entropy(model(inputs), targets).backward()
        optimizer.step()


@fault("noise-anew")
def a_denoiser_asked_for_other_noise():
    x, _ = blobs(64)
    model = mlp(5, 4)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)

    def noised(clean, level):
        return (1 - level).sqrt() * clean + level.sqrt() * torch.randn_like(clean)

    for clean in x.split(8):
        level = torch.rand(8, 1)
        out = model(torch.cat([noised(clean, level), level], dim=1))
        wanted = torch.randn_like(clean)  # <- here
        optimizer.zero_grad()
        (out - wanted).pow(2).mean().backward()
        optimizer.step()


@fault("noise-anew")
def a_score_matched_to_what_was_not_added():
    data = torch.randn(64, 2) * torch.tensor([1.0, 0.3])
    score = mlp(2, 2)
    optimizer = torch.optim.Adam(score.parameters(), lr=0.01)
    sigma = 0.2
    for _ in range(8):
        clean = data[torch.randint(0, 64, (16,))]
        seen = clean + sigma * torch.randn(16, 2)
        optimizer.zero_grad()
        F.mse_loss(score(seen), -torch.randn(16, 2) / sigma).backward()  # <- here
        optimizer.step()
