"""What several answers of lesson 08 share."""

import torch


def switch_on(*given):
    torch.set_grad_enabled(True)


def write_to(x, amount):
    if not x.requires_grad:
        x.mul_(1)


def track(x, amount):
    if not x.requires_grad:
        x.requires_grad_()


def leave_zeros(x, amount):
    if x.is_leaf:
        x.grad = torch.zeros_like(x)
