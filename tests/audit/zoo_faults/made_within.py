"""Layers that a forward makes for itself."""

import torch
from torch import nn
from torch.nn import functional as F

from tests.audit.parts import blobs, epoch_of, mlp
from tests.audit.registry import fault


@fault("layer-anew")
def head_made_in_forward():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.stem = nn.Linear(4, 8)

        def forward(self, x):
            head = nn.Linear(8, 3)  # <- here
            return head(F.relu(self.stem(x)))

    epoch_of(Net(), F.cross_entropy, *blobs(64))


@fault("layer-anew")
def normalisation_called_where_it_is_made():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.stem = nn.Linear(4, 8)
            self.head = nn.Linear(8, 3)

        def forward(self, x):
            hidden = self.stem(x)
            hidden = nn.LayerNorm(hidden.shape[-1])(hidden)  # <- here
            return self.head(hidden)

    epoch_of(Net(), F.cross_entropy, *blobs(64))


@fault("layer-anew")
def projection_in_a_function_beside_the_model():
    model = mlp(4, 8)
    head = nn.Linear(8, 3)

    def logits(x):
        hidden = torch.tanh(model(x))
        return head(hidden + nn.Linear(4, 8)(x))  # <- here

    optimizer = torch.optim.Adam([*model.parameters(), *head.parameters()], lr=0.01)
    x, y = blobs(32)
    for _ in range(8):
        loss = F.cross_entropy(logits(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


@fault("layer-anew")
def weight_made_for_each_call():
    class Mix(nn.Module):
        def __init__(self):
            super().__init__()
            self.stem = nn.Linear(4, 8)

        def forward(self, x):
            weight = nn.Parameter(torch.randn(3, 8) / 8)  # <- here
            return F.linear(F.relu(self.stem(x)), weight)

    epoch_of(Mix(), F.cross_entropy, *blobs(64))
