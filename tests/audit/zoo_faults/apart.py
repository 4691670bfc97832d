"""Faults of things that stand apart from the model: averages, masks, fitted numbers, closures, functional weights."""

import io

import torch
from torch import nn
from torch.nn import functional as F

from tests.audit.parts import blobs, lines, mlp
from tests.audit.registry import fault

PAD = 0


def padded(count=16, length=6):
    """Return sentences whose last words are padding, and a class for each."""
    tokens = torch.randint(1, 9, (count, length))
    tokens[torch.arange(length) >= torch.randint(2, length, (count, 1))] = PAD
    return tokens, torch.randint(2, (count,))


def train_a_reader(model, steps=4):
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(steps):
        tokens, y = padded()
        loss = F.cross_entropy(model(tokens), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


@fault("copy-is-itself")
def average_in_a_dictionary_of_detached_weights():
    x, y = lines()
    model = mlp(out=1)
    shadow = {name: p.detach() for name, p in model.named_parameters()}  # <- here
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(6):
        optimizer.zero_grad()
        F.mse_loss(model(x), y).backward()
        optimizer.step()
        with torch.no_grad():
            for name, p in model.named_parameters():
                shadow[name].lerp_(p, 0.1)


@fault("copy-is-itself")
def average_in_a_list_of_data():
    x, y = lines()
    model = mlp(out=1)
    mean = [p.data for p in model.parameters()]  # <- here
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for _ in range(6):
        optimizer.zero_grad()
        F.mse_loss(model(x), y).backward()
        optimizer.step()
        with torch.no_grad():
            for average, p in zip(mean, model.parameters(), strict=True):
                average.mul_(0.9).add_(p, alpha=0.1)


@fault("mask-inverted")
def padding_is_what_dot_product_attention_attends_to():
    class Attention(nn.Module):
        def __init__(self):
            super().__init__()
            self.three = nn.Linear(8, 24)

        def forward(self, h, mask):
            q, k, v = self.three(h).chunk(3, dim=-1)
            return F.scaled_dot_product_attention(q, k, v, attn_mask=mask)

    class Reader(nn.Module):
        def __init__(self):
            super().__init__()
            self.words, self.attention, self.head = nn.Embedding(9, 8), Attention(), nn.Linear(8, 2)

        def forward(self, tokens):
            padding = tokens == PAD
            h = self.words(tokens)
            h = h + self.attention(h, padding[:, None])  # <- here
            return self.head(h[:, 0])

    train_a_reader(Reader())


@fault("mask-inverted")
def words_are_what_is_filled_with_minus_infinity():
    class Reader(nn.Module):
        def __init__(self):
            super().__init__()
            self.words, self.score, self.head = nn.Embedding(9, 8), nn.Linear(8, 1), nn.Linear(8, 2)

        def forward(self, tokens):
            no_pad = tokens.ne(PAD)
            h = self.words(tokens)
            scores = self.score(h).squeeze(-1)
            scores = scores.masked_fill(no_pad, -1e9)  # <- here
            return self.head((scores.softmax(dim=1)[..., None] * h).sum(dim=1))

    train_a_reader(Reader())


@fault("not-saved")
def mean_fitted_once_and_kept_beside_the_state():
    class Scaled(nn.Module):
        def __init__(self):
            super().__init__()
            self.mean = torch.zeros(4)  # <- here
            self.line = nn.Linear(4, 1)

        def fit(self, x):
            self.mean = x.mean(0)

        def forward(self, x):
            return self.line(x - self.mean)

    x, y = lines()
    model = Scaled()
    model.fit(x)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for _ in range(5):
        optimizer.zero_grad()
        F.mse_loss(model(x), y).backward()
        optimizer.step()
    torch.save(model.state_dict(), io.BytesIO())


@fault("closure-draws")
def closure_that_takes_another_batch():
    x, y = lines(count=64)
    model = mlp(out=1)
    optimizer = torch.optim.LBFGS(model.parameters(), lr=0.1, max_iter=4)

    def closure():
        rows = torch.randint(64, (16,))  # <- here
        optimizer.zero_grad()
        loss = F.mse_loss(model(x[rows]), y[rows])
        loss.backward()
        return loss

    for _ in range(4):
        optimizer.step(closure)


@fault("trained-elsewhere")
def weights_trained_by_torch_func_and_never_written_back():
    x, y = blobs()
    model = mlp()
    weights = {name: p.detach().clone() for name, p in model.named_parameters()}

    def loss_of(weights, x, y):
        return F.cross_entropy(torch.func.functional_call(model, weights, (x,)), y)

    for _ in range(30):
        slopes = torch.func.grad(loss_of)(weights, x, y)
        weights = {name: weights[name] - 0.1 * slopes[name] for name in weights}
    with torch.no_grad():
        return (model(x).argmax(dim=1) == y).float().mean()  # <- here
