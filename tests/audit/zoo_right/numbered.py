"""What is kept by a number that means the same rows, or nothing of the rows."""

import torch
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

from tests.audit.parts import blobs, mlp
from tests.audit.registry import right
from tests.audit.zoo_faults.numbered import answers, shuffled


@right
def answers_in_an_order_that_stays():
    loader, net = DataLoader(TensorDataset(*blobs(32)), batch_size=8), mlp()
    soft = answers(mlp(), loader)
    optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
    for _ in range(3):
        for at, (x, _) in enumerate(loader):
            loss = F.mse_loss(net(x), soft[at])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()


@right
def answers_by_the_number_of_the_row():
    (x, y), teacher = blobs(32), mlp()
    with torch.no_grad():
        soft = [teacher(row) for row in x]
    loader, net = DataLoader(TensorDataset(torch.arange(32), x, y), batch_size=8, shuffle=True), mlp()
    optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
    for _ in range(3):
        for at, (rows, points, _) in enumerate(loader):
            wanted = torch.stack([soft[row] for row in rows.tolist()])
            loss = F.mse_loss(net(points), wanted) / (1 + at)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()


@right
def noise_drawn_once_for_each_number():
    loader = shuffled()
    noise = [torch.randn(8, 3) for _ in range(len(loader))]
    net = mlp()
    optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
    for _ in range(3):
        for at, (x, y) in enumerate(loader):
            loss = F.cross_entropy(net(x) + 0.1 * noise[at], y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()


@right
def written_and_read_in_one_round():
    loader, net, teacher = shuffled(), mlp(), mlp()
    optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
    known = {}
    for _ in range(3):
        for at, (x, _) in enumerate(loader):
            with torch.no_grad():
                known[at] = teacher(x)
            loss = F.mse_loss(net(x), known[at])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()


@right
def batches_kept_as_they_came():
    batches, teacher, net = list(shuffled()), mlp(), mlp()
    soft = answers(teacher, batches)
    optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
    for _ in range(3):
        for (x, _), wanted in zip(batches, soft, strict=True):
            loss = F.mse_loss(net(x), wanted)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()


@right
def rate_of_each_batch_in_the_epoch_before():
    loader, net = shuffled(), mlp()
    optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
    losses = [0.0] * len(loader)
    for _ in range(3):
        for at, (x, y) in enumerate(loader):
            loss = F.cross_entropy(net(x), y)
            optimizer.zero_grad()
            (loss * (1 + 0 * losses[at])).backward()
            optimizer.step()
            losses[at] = loss.item()


@right
def order_that_begins_at_one_seed():
    for_order = torch.Generator()
    loader = DataLoader(TensorDataset(*blobs(32)), batch_size=8, shuffle=True, generator=for_order)
    for_order.manual_seed(3)
    soft = answers(mlp(), loader)
    net = mlp()
    optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
    for _ in range(3):
        for_order.manual_seed(3)
        for at, (x, _) in enumerate(loader):
            loss = F.mse_loss(net(x), soft[at])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
