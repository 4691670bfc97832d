"""Parts of a loop that nobody reads: an order for rows alone, what a backward saved, numbers without their graph."""

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

from tests.audit.parts import blobs, lines, mlp
from tests.audit.registry import fault


@fault("shuffled-apart")
def rows_put_in_order_under_another_name():
    x_train, y_train = blobs(32)
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(4):
        order = torch.randperm(len(x_train))
        mixed = x_train[order]  # <- here
        for start in range(0, 32, 8):
            optimizer.zero_grad()
            F.cross_entropy(model(mixed[start : start + 8]), y_train[start : start + 8]).backward()
            optimizer.step()


@fault("derivative-differs")
def slope_of_a_clamp_forgotten():
    class Clipped(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x.clamp(0, 1)

        @staticmethod
        def backward(ctx, grad_output):
            (x,) = ctx.saved_tensors  # noqa: RUF059
            return grad_output  # <- here

    x, y = lines(64)
    first, last = nn.Linear(4, 16), nn.Linear(16, 1)
    optimizer = torch.optim.Adam([*first.parameters(), *last.parameters()], lr=0.01)
    for _ in range(6):
        optimizer.zero_grad()
        F.mse_loss(last(Clipped.apply(first(x))), y).backward()
        optimizer.step()


@fault("constant-term")
def decay_of_numbers_without_their_graph():
    x, y = lines()
    model = mlp(out=1)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(6):
        optimizer.zero_grad()
        decay = sum(weight.data.square().sum() for weight in model.parameters())  # <- here
        loss = F.mse_loss(model(x), y) + 0.1 * decay
        loss.backward()
        optimizer.step()


@fault("constant-term")
def norm_of_detached_weights():
    x, y = lines()
    model = mlp(out=1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for _ in range(6):
        optimizer.zero_grad()
        loss = F.mse_loss(model(x), y)
        for weight in model.parameters():
            loss = loss + 0.01 * weight.detach().abs().sum()  # <- here
        loss.backward()
        optimizer.step()


def within(lengths, width):
    return torch.arange(width)[None, :] < lengths[:, None]


@fault("mask-inverted", "nan-began")
def lengths_where_padding_is_asked_for():
    class Reader(nn.Module):
        def __init__(self):
            super().__init__()
            self.embedding, self.head = nn.Embedding(9, 8), nn.Linear(8, 2)
            self.attention = nn.MultiheadAttention(8, 2, batch_first=True)

        def forward(self, tokens, lengths):
            mask = within(lengths, tokens.shape[1])
            read = self.embedding(tokens)
            seen, _ = self.attention(read, read, read, key_padding_mask=mask)  # <- here
            return self.head(seen[:, 0])

    model, lengths = Reader(), torch.tensor([2, 5, 3, 4])
    tokens = torch.where(within(lengths, 5), torch.randint(1, 9, (4, 5)), 0)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(5):
        optimizer.zero_grad()
        F.cross_entropy(model(tokens, lengths), torch.tensor([0, 1, 0, 1])).backward()
        optimizer.step()


@fault("wrong-return")
def returns_with_a_small_discount_the_wrong_way_round():
    policy = mlp(out=2)
    optimizer = torch.optim.Adam(policy.parameters(), lr=0.01)
    for _ in range(6):
        chosen, rewards = [], []
        for _ in range(5):
            choice = torch.distributions.Categorical(logits=policy(torch.randn(4)))
            action = choice.sample()
            chosen.append(choice.log_prob(action))
            rewards.append(float(action))
        returns, total = [], 0.0
        for reward in reversed(rewards):
            total = reward + 0.2 * total
            returns.append(total)  # <- here
        loss = -(torch.stack(chosen) * torch.tensor(returns)).sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


@fault("sorted-batches")
def sorted_rows_and_a_short_last_batch():
    y = torch.arange(4).repeat_interleave(16)[:62]
    x = torch.randn(62, 4) + y[:, None]
    loader = DataLoader(TensorDataset(x, y), batch_size=5)  # <- here
    model = mlp(out=4)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for _ in range(4):
        for rows, labels in loader:
            optimizer.zero_grad()
            F.cross_entropy(model(rows), labels).backward()
            optimizer.step()
