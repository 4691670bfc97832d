"""Evaluations of shapes that fit, targets along the actions, spreads that are guarded, one order for both."""

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

from tests.audit.parts import binary, blobs, lines, mlp, trained
from tests.audit.registry import right
from tests.audit.zoo_faults.rows_and_columns import asked_yes_or_no, bootstrapped, classified, fitted


@right
def columns_of_answers_and_of_targets():
    x, y = binary()
    model = asked_yes_or_no(x, y)
    with torch.no_grad():
        predicted = (model(x) > 0).float()
    (predicted == y).float().mean()


@right
def answers_made_a_row_first():
    x, y = binary()
    model, y = asked_yes_or_no(x, y), y[:, 0]
    with torch.no_grad():
        for a, b in DataLoader(TensorDataset(x, y), 8):
            predicted = (model(a) > 0).float()
            predicted = predicted.squeeze(1)
            (predicted == b).float().mean()


@right
def targets_seen_as_the_predictions_are():
    x, y = blobs(24)
    model = trained(mlp()).eval()
    hits = 0
    with torch.no_grad():
        for a, b in DataLoader(TensorDataset(x, y), 8):
            predicted = model(a).argmax(dim=1, keepdim=True)
            hits += predicted.eq(b.view_as(predicted)).sum().item()
    return hits / len(x)


@right
def any_of_the_first_two():
    x, y = blobs(24)
    model = trained(mlp()).eval()
    with torch.no_grad():
        best = model(x).topk(2, dim=1).indices
        return (best == y[:, None]).any(dim=1).float().mean()


@right
def every_pair_is_compared_on_purpose():
    x, y = blobs(24)
    model = trained(mlp()).eval()
    with torch.no_grad():
        classes = model(x).argmax(dim=1)
        return (classes[:, None] == classes[None]).float().mean() + (classes == y).float().mean()


@right
def error_of_rows():
    x, y = lines()
    model = fitted(x, y).eval()
    wanted = y.flatten()
    with torch.no_grad():
        return (model(x).flatten() - wanted).abs().mean()


@right
def largest_along_the_actions():
    def target_of(slow, rewards, following, gamma=0.9):
        return rewards + gamma * slow(following).max(dim=1).values

    bootstrapped(target_of)


@right
def largest_of_all_is_only_shown():
    shown = []

    def target_of(slow, rewards, following, gamma=0.9):
        values = slow(following)
        shown.append(values.max().item())
        return rewards + gamma * values.amax(1)

    bootstrapped(target_of)


@right
def largest_of_one_state():
    def target_of(slow, rewards, following, gamma=0.9):
        values = [slow(state).max() for state in following]
        return rewards + gamma * torch.stack(values)

    bootstrapped(target_of)


@right
def constant_column_with_a_guard():
    x, y = lines()
    x[:, 2] = 1.0
    x = (x - x.mean(0)) / (x.std(0) + 1e-8)
    fitted(x, y)


@right
def spread_of_one_where_there_is_none():
    x, y = lines(24)
    x[:16, 3] = 2.0
    center, spread = x[:16].mean(0), x[:16].std(0)
    spread[spread < 1e-6] = 1.0
    model = fitted((x[:16] - center) / spread, y[:16])
    with torch.no_grad():
        F.mse_loss(model((x[16:] - center) / spread), y[16:])


@right
def spread_guarded_in_the_division():
    x, y = (it.numpy() for it in lines())
    x[:, 1] = 0
    spread = x.std(axis=0)
    x = (x - x.mean(axis=0)) / np.where(spread > 0, spread, 1)
    fitted(torch.from_numpy(x), torch.from_numpy(y))


@right
def small_spread_of_a_small_column():
    x, y = lines()
    x[:, 0] *= 1e-6
    x = (x - x.mean(0)) / x.std(0)
    fitted(x, y)


@right
def one_order_on_one_line():
    rng = np.random.default_rng(0)
    X, y = (it.numpy() for it in blobs())
    order = rng.permutation(len(X))
    X, y = X[order], y[order]
    classified(X, y)


@right
def one_seed_for_each_shuffling():
    X, y = (it.numpy() for it in blobs())
    np.random.seed(3)
    np.random.shuffle(X)
    np.random.seed(3)
    np.random.shuffle(y)
    classified(X, y)


@right
def one_state_for_two_draws_on_one_line():
    X, y = (it.numpy() for it in blobs())
    n = len(X)
    X, y = X[np.random.RandomState(0).permutation(n)], y[np.random.RandomState(0).permutation(n)]
    classified(X, y)


@right
def two_sets_in_orders_of_their_own():
    rng = np.random.default_rng(0)
    X, y = (it.numpy() for it in blobs(24))
    first, second = rng.permutation(16), rng.permutation(np.arange(16, 24))
    classified(X[first], y[first])
    classified(X[second], y[second])


@right
def loaders_of_unpaired_pictures():
    one, other = torch.randn(16, 4), torch.randn(16, 4)
    there, judge = nn.Linear(4, 4), mlp(4, 1)
    optimizer = torch.optim.Adam([*there.parameters()], lr=0.01)
    for a, b in zip(DataLoader(one, 4, shuffle=True), DataLoader(other, 4, shuffle=True), strict=True):
        optimizer.zero_grad()
        (judge(there(a)).mean() - judge(b).mean()).square().backward()
        optimizer.step()


class Dropper(nn.Module):
    def __init__(self, told):
        super().__init__()
        self.inner, self.outer, self.told = nn.Linear(4, 8), nn.Linear(8, 3), told

    def forward(self, x):
        if self.told:
            return self.outer(F.dropout(self.inner(x).relu(), 0.5, self.training))
        return self.outer(F.dropout(self.inner(x).relu(), 0.5))


@right
def mean_of_passes_that_drop():
    x, _ = blobs()
    model = trained(Dropper(False))
    model.eval()
    with torch.no_grad():
        passes = torch.stack([model(x).softmax(1) for _ in range(5)])
    return passes.mean(0), passes.std(0)


@right
def passes_that_drop_are_added_up():
    x, _ = blobs()
    model = trained(Dropper(False))
    model.eval()
    total = torch.zeros(len(x), 3)
    with torch.no_grad():
        for _ in range(5):
            scores = model(x)
            total += scores.softmax(1)
    return total / 5


@right
def codebook_that_follows_by_averages():
    x, _ = blobs()
    encoder, decoder = nn.Linear(4, 2), nn.Linear(2, 4)
    codes = torch.randn(5, 2)
    optimizer = torch.optim.Adam([*encoder.parameters(), *decoder.parameters()], lr=0.01)
    for _ in range(5):
        z = encoder(x)
        k = torch.cdist(z, codes).argmin(1)
        q = codes[k]
        with torch.no_grad():
            for code in k.unique():
                codes[code] = 0.9 * codes[code] + 0.1 * z[k == code].mean(0)
        loss = F.mse_loss(decoder(z + (q - z).detach()), x) + 0.25 * F.mse_loss(z, q)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
