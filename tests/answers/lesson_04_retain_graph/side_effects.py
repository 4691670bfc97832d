"""What several answers of lesson 04 share."""

import torch


def in_evaluation(model, *given):
    model.eval()


def frozen(model, *given):
    model.requires_grad_(False)


def hooked(model, *given):
    model.register_forward_hook(lambda *given: None)


def reseeded(*given):
    torch.manual_seed(0)
