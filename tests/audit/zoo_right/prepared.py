"""Data prepared for both parts alike, choices made by the training part alone, and evaluation far away on purpose."""

import torch
from torch.nn import functional as F

from tests.audit.parts import mlp
from tests.audit.registry import right
from tests.audit.selecting import SelectKBest, train_test_split


def _raw(count=48):
    x = torch.tensor([50.0, 3.0, 900.0, 20.0]) * (1 + 0.2 * torch.randn(count, 4))
    return x, (x[:, 0] > 50).long()


def _fit(model, x, y, *asked):
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(3):
        for rows in torch.randperm(len(x)).split(12):
            optimizer.zero_grad()
            F.cross_entropy(model(x[rows]), y[rows]).backward()
            optimizer.step()
        with torch.no_grad():
            for ask in asked:
                print(model(ask).argmax(1).float().mean().item())


@right
def both_parts_scaled_by_the_first():
    x, y = _raw()
    x_train, x_val, y_train = x[:32], x[32:], y[:32]
    mean, std = x_train.mean(dim=0), x_train.std(dim=0)
    x_train = (x_train - mean) / std
    x_val = (x_val - mean) / std
    _fit(mlp(out=2), x_train, y_train, x_val)


@right
def validated_near_and_asked_far_away():
    x, y = torch.randn(48, 4), torch.randint(2, (48,))
    x_train = (x - x.mean(dim=0)) / x.std(dim=0)
    _fit(mlp(out=2), x_train, y, x_train[:10], 30 + torch.randn(20, 4))


@right
def raw_numbers_for_both_parts():
    x, y = _raw()
    _fit(mlp(out=2), x[:32], y[:32], x[32:])


@right
def a_selector_fitted_on_the_training_part():
    x, y = torch.randn(60, 20).numpy(), torch.randint(2, (60,)).numpy()
    x_train, x_test, y_train, _ = train_test_split(x, y, 0.25)
    selector = SelectKBest(4)
    x_train = torch.tensor(selector.fit_transform(x_train, y_train))
    x_test = torch.tensor(selector.transform(x_test))
    _fit(mlp(out=2), x_train, torch.tensor(y_train), x_test)


@right
def columns_chosen_without_labels():
    x, y = torch.randn(60, 40) * torch.rand(40), torch.randint(2, (60,))
    best = x.var(dim=0).topk(4).indices
    x = x[:, best]
    order = torch.randperm(60)
    x_train, x_test, y_train = x[order[:45]], x[order[45:]], y[order[:45]]
    _fit(mlp(out=2), x_train, y_train, x_test)


@right
def columns_ranked_by_the_training_part():
    x, y = torch.randn(60, 40), torch.randint(2, (60,))
    x_train, x_test, y_train = x[:45], x[45:], y[:45]
    score = ((x_train - x_train.mean(dim=0)) * (y_train - y_train.float().mean())[:, None]).mean(dim=0).abs()
    best = score.topk(4).indices
    _fit(mlp(out=2), x_train[:, best], y_train, x_test[:, best])
