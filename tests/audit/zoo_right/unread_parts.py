"""What looks as if nobody read it: orders that go with both, slopes of one's own, numbers for a log."""

import torch
from torch import nn
from torch.nn import functional as F

from tests.audit.parts import blobs, lines, mlp
from tests.audit.registry import right


@right
def rows_and_labels_by_one_order():
    x_train, y_train = blobs(32)
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(4):
        order = torch.randperm(len(x_train))
        mixed, their = x_train[order], y_train[order]
        for start in range(0, 32, 8):
            optimizer.zero_grad()
            F.cross_entropy(model(mixed[start : start + 8]), their[start : start + 8]).backward()
            optimizer.step()


@right
def an_order_for_rows_whose_labels_are_taken_by_it_later():
    x_train, y_train = blobs(32)
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(4):
        order = torch.randperm(len(x_train))
        mixed = x_train[order]
        for start in range(0, 32, 8):
            optimizer.zero_grad()
            F.cross_entropy(model(mixed[start : start + 8]), y_train[order][start : start + 8]).backward()
            optimizer.step()


class StraightThrough(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.clamp(0, 1)

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output


@right
def a_clamp_that_passes_all_on():
    x, y = lines(64)
    first, last = nn.Linear(4, 16), nn.Linear(16, 1)
    optimizer = torch.optim.Adam([*first.parameters(), *last.parameters()], lr=0.01)
    for _ in range(6):
        optimizer.zero_grad()
        F.mse_loss(last(StraightThrough.apply(first(x))), y).backward()
        optimizer.step()


@right
def weights_that_are_drawn_to_where_they_were():
    x, y = lines()
    model = mlp(out=1)
    start = [weight.detach().clone() for weight in model.parameters()]
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(6):
        optimizer.zero_grad()
        near = sum((now - then).square().sum() for now, then in zip(model.parameters(), start, strict=True))
        norm = sum(weight.data.square().sum() for weight in model.parameters())
        loss = F.mse_loss(model(x), y) + 0.1 * near
        print(f"{loss.item():.3f} {norm.item():.3f}")
        loss.backward()
        optimizer.step()


@right
def padding_by_lengths():
    embedding, attention, head = nn.Embedding(9, 8), nn.MultiheadAttention(8, 2, batch_first=True), nn.Linear(8, 2)
    optimizer = torch.optim.Adam(nn.ModuleList([embedding, attention, head]).parameters(), lr=0.01)
    lengths = torch.tensor([2, 5, 3, 4])
    for _ in range(5):
        inside = torch.arange(5)[None, :] < lengths[:, None]
        read = embedding(torch.where(inside, torch.randint(1, 9, (4, 5)), 0))
        seen, _ = attention(read, read, read, key_padding_mask=~inside)
        optimizer.zero_grad()
        F.cross_entropy(head(seen[:, 0]), torch.tensor([0, 1, 0, 1])).backward()
        optimizer.step()


@right
def a_value_for_the_log_now_and_then():
    x, y = lines()
    model = mlp(out=1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for step in range(240):
        optimizer.zero_grad()
        F.mse_loss(model(x), y).backward()
        optimizer.step()
        if step % 80 == 79:
            print(model(x[0]).item())
