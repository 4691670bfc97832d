"""Right loops whose data come in an order."""

import torch
from torch.nn import functional as F

from tests.audit.parts import mlp
from tests.audit.registry import right


def _sorted(each=8, classes=4):
    y = torch.arange(classes).repeat_interleave(each)
    return torch.randn(len(y), 4) + y[:, None], y


def _step(model, optimizer, x, y):
    optimizer.zero_grad()
    F.cross_entropy(model(x), y).backward()
    optimizer.step()


@right
def sorted_rows_that_are_shuffled():
    x, y = _sorted()
    model = mlp(out=4)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for _ in range(4):
        for rows in torch.randperm(len(x)).split(8):
            _step(model, optimizer, x[rows], y[rows])


@right
def sorted_rows_in_whole_batches():
    x, y = _sorted()
    model = mlp(out=4)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for _ in range(10):
        _step(model, optimizer, x, y)


@right
def one_class_after_the_other_is_added():
    x, y = _sorted()
    model = mlp(out=4)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for now in range(4):
        for _ in range(4):
            _step(model, optimizer, x[y == now], y[y == now])


@right
def sites_that_each_have_one_class():
    x, y = _sorted()
    server = mlp(out=4)
    for _ in range(3):
        states = []
        for site in range(4):
            client = mlp(out=4)
            client.load_state_dict(server.state_dict())
            optimizer = torch.optim.SGD(client.parameters(), lr=0.05)
            for _ in range(3):
                _step(client, optimizer, x[y == site], y[y == site])
            states.append(client.state_dict())
        server.load_state_dict({name: torch.stack([it[name] for it in states]).mean(0) for name in states[0]})


@right
def real_and_fake_in_batches_of_their_own():
    x, _ = _sorted()
    model = mlp(out=2)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(6):
        for kind, rows in ((1, x), (0, torch.randn_like(x))):
            _step(model, optimizer, rows, torch.full((len(rows),), kind))
