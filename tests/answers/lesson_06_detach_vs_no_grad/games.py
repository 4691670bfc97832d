"""What several answers of lesson 06 share."""

import torch
from torch.nn.functional import binary_cross_entropy_with_logits


def goal(logits, value):
    return binary_cross_entropy_with_logits(logits, torch.full_like(logits, value))


def stepped(optimizer, loss):
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()
