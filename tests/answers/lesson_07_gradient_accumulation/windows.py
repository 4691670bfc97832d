"""What several answers of lesson 07 share."""

import torch
from torch.nn.functional import cross_entropy


def windows_as_one_batch(model, optimizer, micro_batches, every):
    losses = []
    for start in range(0, len(micro_batches), every):
        inputs, targets = (torch.cat(parts) for parts in zip(*micro_batches[start : start + every], strict=True))
        optimizer.zero_grad()
        loss = cross_entropy(model(inputs), targets)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses
