"""Networks that are pruned and stay so, and zeros that are meant to move."""

import torch
from torch import nn
from torch.nn import functional as F
from torch.nn.utils import prune

from tests.audit.parts import batches, blobs
from tests.audit.registry import right


def _net():
    return nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 3))


def _fit(model, after=None, epochs=3):
    x, y = blobs(32)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(epochs):
        for inputs, targets in batches(x, y, 8):
            optimizer.zero_grad()
            F.cross_entropy(model(inputs), targets).backward()
            optimizer.step()
            if after is not None:
                after()


@right
def masks_that_are_applied_after_each_step():
    model = _net()
    _fit(model)
    masks = {name: p.detach().abs() > p.detach().abs().median() for name, p in model.named_parameters() if p.dim() > 1}

    @torch.no_grad()
    def masked():
        for name, p in model.named_parameters():
            if name in masks:
                p.mul_(masks[name])

    masked()
    _fit(model, masked)


@right
def masks_that_the_forward_keeps():
    model = _net()
    for layer in (model[0], model[2]):
        prune.l1_unstructured(layer, "weight", amount=0.5)
    _fit(model)
    for layer in (model[0], model[2]):
        prune.remove(layer, "weight")
    with torch.no_grad():
        model(torch.randn(4, 4))


@right
def masks_on_gradients_from_the_first_step():
    model = _net()
    mask = torch.rand(16, 4) > 0.5
    with torch.no_grad():
        model[0].weight.mul_(mask)
    model[0].weight.register_hook(lambda grad: grad * mask)
    _fit(model)


@right
def filters_set_to_zero_after_each_epoch_until_the_end():
    model = _net()
    for _ in range(4):
        _fit(model, epochs=1)
        with torch.no_grad():
            size = model[0].weight.norm(dim=1)
            mask = (size > size.median()).float()
            model[0].weight.mul_(mask[:, None])


@right
def last_layer_that_begins_at_zero():
    model = _net()
    nn.init.zeros_(model[2].weight)
    with torch.no_grad():
        model[0].weight[:8].zero_()
    mask = torch.ones(16)
    mask[::2] = 0
    _fit(model)
    with torch.no_grad():
        model[2](model[1](model[0](torch.randn(4, 4))) * mask)
