"""Networks that are pruned once and trained on: the weights that were set to 0 come back."""

import torch
from torch import nn
from torch.nn import functional as F
from torch.nn.utils import prune

from tests.audit.parts import batches, blobs
from tests.audit.registry import fault


def _fit(model, epochs=3, **options):
    x, y = blobs(32)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01, **options)
    for _ in range(epochs):
        for inputs, targets in batches(x, y, 8):
            optimizer.zero_grad()
            F.cross_entropy(model(inputs), targets).backward()
            optimizer.step()
    return optimizer


def _net():
    return nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 3))


@fault("mask-lost")
def small_weights_set_to_zero_once():
    model = _net()
    _fit(model)
    masks = {name: p.detach().abs() > p.detach().abs().median() for name, p in model.named_parameters() if p.dim() > 1}
    with torch.no_grad():
        for name, p in model.named_parameters():
            if name in masks:
                p.mul_(masks[name])  # <- here
    _fit(model)


@fault("mask-lost")
def pruned_between_two_epochs_of_one_optimizer():
    x, y = blobs(32)
    model = _net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for epoch in range(4):
        for inputs, targets in batches(x, y, 8):
            optimizer.zero_grad()
            F.cross_entropy(model(inputs), targets).backward()
            optimizer.step()
        if epoch == 1:
            for layer in (model[0], model[2]):
                mask = torch.rand_like(layer.weight) > 0.5
                layer.weight.data *= mask  # <- here


@fault("mask-lost")
def mask_made_permanent_before_the_fine_tuning():
    model = _net()
    for layer in (model[0], model[2]):
        prune.l1_unstructured(layer, "weight", amount=0.5)
    _fit(model)
    for layer in (model[0], model[2]):
        prune.remove(layer, "weight")  # <- here
    _fit(model)


@fault("mask-lost", "rows-move")
def gradients_masked_where_momentum_moves_on():
    x, y = blobs(32)
    model = _net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    mask = torch.rand(16, 4) > 0.5
    for epoch in range(4):
        for inputs, targets in batches(x, y, 8):
            optimizer.zero_grad()
            F.cross_entropy(model(inputs), targets).backward()
            if epoch > 1:
                model[0].weight.grad *= mask
            optimizer.step()
        if epoch == 1:
            with torch.no_grad():
                model[0].weight.masked_fill_(~mask, 0.0)  # <- here
