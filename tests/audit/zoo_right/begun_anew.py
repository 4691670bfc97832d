"""Right loops with generators of their own: one for all steps, one for each epoch, one to look at the model with."""

import torch
from torch import nn
from torch.nn import functional as F

from tests.audit.parts import blobs, mlp
from tests.audit.registry import right


@right
def a_generator_for_the_whole_training():
    x, y = blobs(32)
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    generator = torch.Generator().manual_seed(7)
    for _ in range(6):
        optimizer.zero_grad()
        F.cross_entropy(model(x + 0.3 * torch.randn(x.shape, generator=generator)), y).backward()
        optimizer.step()


@right
def an_order_of_its_own_for_each_epoch():
    x, y = blobs(32)
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(5):
        order = torch.randperm(len(x), generator=torch.Generator().manual_seed(epoch))
        for rows in order.split(8):
            optimizer.zero_grad()
            F.cross_entropy(model(x[rows]), y[rows]).backward()
            optimizer.step()


@right
def the_same_noise_to_look_at_a_generator_with():
    generator_net = mlp(8, 2)
    real = torch.randn(16, 2)
    optimizer = torch.optim.Adam(generator_net.parameters(), lr=1e-3)
    for step in range(6):
        optimizer.zero_grad()
        made = generator_net(torch.randn(16, 8))
        (made.mean(dim=0) - real.mean(dim=0)).square().sum().backward()
        optimizer.step()
        with torch.no_grad():
            shown = generator_net(torch.randn(9, 8, generator=torch.Generator().manual_seed(0)))
        print(step, shown.shape)


@right
def the_same_split_in_each_trial():
    x, y = blobs(40)
    for rate in (0.3, 0.1, 0.03, 0.01):
        order = torch.randperm(len(x), generator=torch.Generator().manual_seed(0))
        seen, held_out = order[:30], order[30:]
        model = mlp()
        optimizer = torch.optim.SGD(model.parameters(), lr=rate)
        for _ in range(4):
            optimizer.zero_grad()
            F.cross_entropy(model(x[seen]), y[seen]).backward()
            optimizer.step()
        with torch.no_grad():
            print(rate, F.cross_entropy(model(x[held_out]), y[held_out]) > 0)


@right
def a_batch_of_images_whose_colours_are_moved():
    images = torch.rand(24, 6, 6, 3).permute(0, 3, 1, 2).contiguous()
    labels = torch.randint(0, 2, (24,))
    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(64, 2))
    optimizer = torch.optim.Adam(model.parameters())
    for _ in range(4):
        optimizer.zero_grad()
        F.cross_entropy(model(images.view(24, 3, 36).view(24, 3, 6, 6)), labels).backward()
        optimizer.step()
