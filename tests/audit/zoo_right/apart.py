"""Right things that stand apart from the model: averages, masks, fitted numbers, closures, functional weights."""

import io

import torch
from torch import nn
from torch.nn import functional as F

from tests.audit.parts import blobs, lines, mlp
from tests.audit.registry import right
from tests.audit.zoo_faults.apart import PAD, train_a_reader


@right
def average_in_clones_and_decay_by_hand():
    x, y = lines()
    model = mlp(out=1)
    shadow = [p.detach().clone() for p in model.parameters()]
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(6):
        optimizer.zero_grad()
        F.mse_loss(model(x), y).backward()
        optimizer.step()
        with torch.no_grad():
            for mean, p in zip(shadow, model.parameters(), strict=True):
                p.data.add_(p.data, alpha=-1e-3)
                mean.mul_(0.9).add_(p, alpha=0.1)


class Reader(nn.Module):
    """Attention of both kinds over words, with masks that say what each asks for."""

    def __init__(self, by_hand):
        super().__init__()
        self.words, self.three, self.head = nn.Embedding(9, 8), nn.Linear(8, 24), nn.Linear(8, 2)
        self.by_hand = by_hand

    def forward(self, tokens):
        padding = tokens == PAD
        keep = ~padding
        q, k, v = self.three(self.words(tokens)).chunk(3, dim=-1)
        if self.by_hand:
            scores = (q @ k.transpose(1, 2) / 8**0.5).masked_fill(padding[:, None], float("-inf"))
            mixed = scores.softmax(dim=-1) @ v
        else:
            mixed = F.scaled_dot_product_attention(q, k, v, attn_mask=keep[:, None])
        mixed = mixed.masked_fill(padding[..., None], 0.0)
        return self.head(mixed.sum(dim=1) / keep.sum(dim=1, keepdim=True))


@right
def attention_by_hand_over_words():
    train_a_reader(Reader(by_hand=True))


@right
def dot_product_attention_over_words():
    train_a_reader(Reader(by_hand=False))


class Scaled(nn.Module):
    def __init__(self):
        super().__init__()
        self.mean, self.spread = torch.zeros(4), torch.ones(4)
        self.line = nn.Linear(4, 1)

    def fit(self, x):
        self.mean, self.spread = x.mean(0), x.std(0)
        return self

    def forward(self, x):
        return self.line((x - self.mean) / self.spread)


@right
def numbers_that_are_fitted_again_for_what_is_loaded():
    x, y = lines()
    model = Scaled().fit(x)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for _ in range(5):
        optimizer.zero_grad()
        F.mse_loss(model(x), y).backward()
        optimizer.step()
    file = io.BytesIO()
    torch.save(model.state_dict(), file)
    file.seek(0)
    served = Scaled().fit(x)
    served.load_state_dict(torch.load(file))


@right
def closure_over_all_rows_in_any_order():
    x, y = lines(count=64)
    model = mlp(out=1)
    optimizer = torch.optim.LBFGS(model.parameters(), lr=0.1, max_iter=4)

    def closure():
        optimizer.zero_grad()
        total = 0.0
        for rows in torch.randperm(64).split(16):
            loss = F.mse_loss(model(x[rows]), y[rows]) / 4
            loss.backward()
            total += loss.detach()
        return total

    for _ in range(4):
        optimizer.step(closure)


@right
def closure_over_a_batch_that_was_drawn_before():
    x, y = lines(count=64)
    model = mlp(out=1)
    optimizer = torch.optim.LBFGS(model.parameters(), lr=0.1, max_iter=4)
    for _ in range(4):
        rows = torch.randint(64, (32,))

        def closure(rows=rows):
            optimizer.zero_grad()
            loss = F.mse_loss(model(x[rows]), y[rows])
            loss.backward()
            return loss

        optimizer.step(closure)


def by_torch_func(model, x, y, steps=30):
    """Return weights of a model, trained outside of it."""
    weights = {name: p.detach().clone() for name, p in model.named_parameters()}

    def loss_of(weights, x, y):
        return F.cross_entropy(torch.func.functional_call(model, weights, (x,)), y)

    for _ in range(steps):
        slopes = torch.func.grad(loss_of)(weights, x, y)
        weights = {name: weights[name] - 0.1 * slopes[name] for name in weights}
    return weights


@right
def functional_weights_that_are_loaded_before_the_module_is_asked():
    x, y = blobs()
    model = mlp()
    model.load_state_dict(by_torch_func(model, x, y))
    with torch.no_grad():
        return (model(x).argmax(dim=1) == y).float().mean()


@right
def functional_weights_asked_beside_the_untrained_module():
    x, y = blobs()
    model = mlp()
    weights = by_torch_func(model, x, y)
    with torch.no_grad():
        before = (model(x).argmax(dim=1) == y).float().mean()
        after = (torch.func.functional_call(model, weights, (x,)).argmax(dim=1) == y).float().mean()
    return before, after
