"""Augmentations that write by chance into the stored data themselves: each round erases more of them."""

from types import SimpleNamespace

import torch
from torch import nn
from torch.nn import functional as F

from tests.audit.parts import blobs, mlp
from tests.audit.registry import fault


class Graph:
    """Features of nodes, their neighbours, and their labels."""

    def __init__(self):
        self.x, self.y = blobs(24)
        self.adjacency = (torch.eye(24) + torch.eye(24).roll(1, 0)) / 2


@fault("data-drifts")
def features_erased_where_the_graph_keeps_them():
    def hide(graph, share):
        hidden = torch.rand(graph.x.shape) < share
        graph.x[hidden] = 0.0  # <- here
        return graph

    def train():
        optimizer.zero_grad()
        seen = hide(graph, 0.2)
        F.cross_entropy(seen.adjacency @ model(seen.x), seen.y).backward()
        optimizer.step()

    graph, model = Graph(), mlp()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(12):
        train()


@fault("data-drifts")
def an_entry_masked_in_the_loop():
    x, y = blobs(24, width=8)
    data = {"x": x, "y": y}
    model = mlp(width=8)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(12):
        data["x"].masked_fill_(torch.rand_like(data["x"]) < 0.1, 0.0)  # <- here
        optimizer.zero_grad()
        F.cross_entropy(model(data["x"]), data["y"]).backward()
        optimizer.step()


@fault("data-drifts")
def noise_added_to_another_name_of_the_data():
    data = SimpleNamespace()
    data.x, data.y = blobs(24)
    model, width = mlp(), 0.05
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(10):
        noisy = data.x
        noisy += width * torch.randn_like(noisy)  # <- here
        optimizer.zero_grad()
        F.cross_entropy(model(noisy), data.y).backward()
        optimizer.step()


@fault("data-drifts")
def a_layer_that_erases_in_its_input():
    class Hiding(nn.Module):
        def forward(self, x):
            if self.training:
                keep = torch.bernoulli(torch.full_like(x, 0.8))
                x *= keep  # <- here
            return x

    x, y = blobs(24, width=8)
    model = nn.Sequential(Hiding(), mlp(width=8))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(12):
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()


@fault("data-drifts")
def dropout_in_place_on_the_stored_features():
    class Network(nn.Module):
        def __init__(self):
            super().__init__()
            self.drop = nn.Dropout(0.1, inplace=True)  # <- here
            self.body = mlp(width=8)

        def forward(self, x):
            return self.body(self.drop(x))

    x, y = blobs(24, width=8)
    model = Network()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(12):
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()


@fault("data-drifts")
def words_masked_in_slices_of_the_corpus():
    words = torch.randint(1, 9, (24, 12))
    wanted = words.clone()
    model = nn.Sequential(nn.Embedding(9, 8), nn.Tanh(), nn.Linear(8, 9))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(6):
        for begin in range(0, 24, 8):
            given = words[begin : begin + 8]
            given[torch.rand(given.shape) < 0.15] = 0  # <- here
            loss = F.cross_entropy(model(given).flatten(0, 1), wanted[begin : begin + 8].flatten())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
