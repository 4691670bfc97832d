"""Evaluations of shapes that do not fit, targets over the batch, columns without a spread, orders of one's own."""

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

from tests.audit.parts import binary, blobs, lines, mlp, trained
from tests.audit.registry import fault


def asked_yes_or_no(x, y):
    model = mlp(out=1)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(5):
        optimizer.zero_grad()
        F.binary_cross_entropy_with_logits(model(x), y).backward()
        optimizer.step()
    return model.eval()


@fault("metric-miscounted")
def column_of_answers_and_row_of_targets():
    x, y = binary()
    model, y = asked_yes_or_no(x, y), y[:, 0]
    with torch.no_grad():
        predicted = (model(x) > 0).float()
    (predicted == y).float().mean()  # <- here


@fault("metric-miscounted")
def column_of_classes_batch_by_batch():
    x, y = blobs(24)
    model = trained(mlp()).eval()
    hits = 0
    with torch.no_grad():
        for a, b in DataLoader(TensorDataset(x, y), 8):
            hits += model(a).argmax(dim=1, keepdim=True).eq(b).sum().item()  # <- here
    return hits / len(x)


@fault("metric-miscounted")
def error_of_a_column_against_a_row():
    x, y = lines()
    model = mlp(out=1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for _ in range(5):
        optimizer.zero_grad()
        F.mse_loss(model(x), y).backward()
        optimizer.step()
    wanted = y.flatten()
    model.eval()
    with torch.no_grad():
        return (model(x) - wanted).abs().mean()  # <- here


@fault("metric-miscounted")
def arrays_of_unlike_shapes():
    x, y = binary()
    model, truth = asked_yes_or_no(x, y), y.numpy().ravel()
    with torch.no_grad():
        answers = (torch.sigmoid(model(x)) > 0.5).numpy()
    return np.mean(answers == truth)  # <- here


def bootstrapped(target_of, size=8):
    critic, slow = mlp(), mlp()
    slow.load_state_dict(critic.state_dict())
    optimizer = torch.optim.Adam(critic.parameters(), lr=0.01)
    for _ in range(6):
        states, actions, rewards = torch.randn(size, 4), torch.randint(3, (size,)), torch.randn(size)
        with torch.no_grad():
            target = target_of(slow, rewards, torch.randn(size, 4))
        value = critic(states).gather(1, actions[:, None]).squeeze(1)
        optimizer.zero_grad()
        F.smooth_l1_loss(value, target).backward()
        optimizer.step()


@fault("class-axis")
def largest_of_all_states_and_actions():
    def target_of(slow, rewards, following, gamma=0.9):
        return rewards + gamma * slow(following).max()  # <- here

    bootstrapped(target_of)


@fault("class-axis")
def largest_of_each_action():
    def target_of(slow, rewards, following, gamma=0.9):
        best = slow(following).max(0).values  # <- here
        return rewards + gamma * best

    bootstrapped(target_of, 3)


@fault("class-axis")
def largest_along_the_states():
    def target_of(slow, rewards, following, discount=0.99):
        values = slow(following)
        best = torch.amax(values, dim=0)  # <- here
        return rewards + discount * best * torch.ones(3)

    bootstrapped(target_of, 3)


def fitted(x, y):
    model = nn.Sequential(nn.Linear(x.shape[1], 8), nn.Tanh(), nn.Linear(8, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(4):
        optimizer.zero_grad()
        F.mse_loss(model(x), y).backward()
        optimizer.step()
    return model


@fault("spread-zero", "nan-began")
def constant_column_gives_nan():
    x, y = lines()
    x[:, 2] = 1.0
    x = (x - x.mean(0)) / x.std(0)  # <- here
    fitted(x, y)


@fault("spread-zero")
def other_rows_far_off():
    x, y = lines(24)
    x[:16, 3] = 2.0
    center, spread = x[:16].mean(0), x[:16].std(0) + 1e-9
    train = (x[:16] - center) / spread
    test = (x[16:] - center) / spread  # <- here
    model = fitted(train, y[:16])
    with torch.no_grad():
        F.mse_loss(model(test), y[16:])


@fault("spread-zero")
def mended_when_it_is_too_late():
    x, y = (it.numpy() for it in lines())
    x[:, 1] = 0
    spread = x.std(axis=0)
    with np.errstate(all="ignore"):
        x = np.nan_to_num((x - x.mean(axis=0)) / spread)  # <- here
    fitted(torch.from_numpy(x), torch.from_numpy(y))


def classified(x, y):
    model = mlp()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for a, b in zip(torch.as_tensor(x).split(4), torch.as_tensor(y).split(4), strict=True):
        optimizer.zero_grad()
        F.cross_entropy(model(a), b).backward()
        optimizer.step()


@fault("shuffled-apart")
def two_orders_on_one_line():
    rng = np.random.default_rng(0)
    X, y = (it.numpy() for it in blobs())
    n = len(X)
    X, y = X[rng.permutation(n)], y[rng.permutation(n)]  # <- here
    classified(X, y)


@fault("shuffled-apart")
def shuffled_where_they_stand():
    rng = np.random.default_rng(0)
    X, y = (it.numpy() for it in blobs())
    rng.shuffle(X)
    rng.shuffle(y)  # <- here
    classified(X, y)


@fault("shuffled-apart")
def orders_in_a_function_with_other_names():
    def load():
        rng = np.random.default_rng(0)
        rows, seconds = (it.numpy() for it in blobs())
        rows = rows[rng.permutation(len(rows))]
        seconds = seconds[rng.permutation(len(seconds))]  # <- here
        return rows, seconds

    x, y = load()
    classified(x, y)


@fault("shuffled-apart")
def a_loader_for_each():
    x, y = blobs()
    rows = DataLoader(x, 4, shuffle=True)
    labels = DataLoader(y, 4, shuffle=True)  # <- here
    model = mlp()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for a, b in zip(rows, labels, strict=True):
        optimizer.zero_grad()
        F.cross_entropy(model(a), b).backward()
        optimizer.step()


@fault("eval-in-train")
def dropped_in_each_of_three_showings():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner, self.outer = nn.Linear(4, 8), nn.Linear(8, 3)

        def forward(self, x):
            return self.outer(F.dropout(self.inner(x).relu(), 0.5))  # <- here

    x, y = blobs()
    model = trained(Net())
    model.eval()
    with torch.no_grad():
        for _ in range(3):
            print((model(x).argmax(1) == y).float().mean().item())


@fault("never-reached")
def codebook_of_no_module():
    x, _ = blobs()
    encoder, decoder = nn.Linear(4, 2), nn.Linear(2, 4)
    codes = nn.Parameter(torch.randn(5, 2))
    optimizer = torch.optim.Adam([*encoder.parameters(), *decoder.parameters(), codes], lr=0.01)
    for _ in range(5):
        z = encoder(x)
        q = codes[torch.cdist(z, codes).argmin(1)]
        kept = 1.25 * F.mse_loss(z, q.detach())  # <- here
        loss = F.mse_loss(decoder(z + (q - z).detach()), x) + kept
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
