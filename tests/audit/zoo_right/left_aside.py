"""Networks that are asked and not trained, and scores that are flattened with the classes last."""

import torch
from torch import nn
from torch.nn import functional as F

from tests.audit.parts import mlp, segments
from tests.audit.registry import right


@right
def features_that_measure_and_stay():
    net, features = mlp(8, 8), mlp(8, 4).eval()
    optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
    for _ in range(6):
        x = torch.randn(16, 8)
        loss = F.mse_loss(features(net(x)), features(x).detach())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


@right
def classes_of_maps_put_last():
    segments(lambda scores, y: F.cross_entropy(scores.permute(0, 2, 3, 1).reshape(-1, 3), y.reshape(-1)))


@right
def classes_second_as_they_are():
    segments(F.cross_entropy)


@right
def places_flattened_and_classes_left_second():
    segments(lambda scores, y: F.cross_entropy(scores.flatten(2), y.flatten(1)))


@right
def classes_last_from_the_start():
    net = nn.Linear(2, 5)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05)
    for _ in range(5):
        x = torch.randn(4, 9, 2)
        loss = F.cross_entropy(net(x).reshape(-1, 5), torch.randint(5, (4, 9)).reshape(-1))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


@right
def as_many_places_as_classes_last():
    net = nn.Linear(2, 5)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05)
    for _ in range(5):
        x = torch.randn(4, 5, 2)
        loss = F.cross_entropy(net(x).reshape(-1, 5), torch.randint(5, (4, 5)).reshape(-1))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
