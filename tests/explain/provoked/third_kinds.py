"""Kinds of mistakes that the third strangers made: losses and products of several dtypes, and what lies on meta."""

import torch
from torch import nn
from torch.nn import functional as F

from tests.explain.provoked import case


@case("target-dtype", "`labels` holds integers (int64)", "labels = labels.float()")
def integers_for_bce():
    p, labels = torch.rand(3, 1, requires_grad=True), torch.ones(3, 1, dtype=torch.long)
    nn.BCELoss()(p, labels)  # raised here


@case("target-dtype", "`mask` holds booleans (bool)")
def booleans_for_bce():
    p, mask = torch.rand(3), torch.rand(3) > 0.5
    F.binary_cross_entropy(p, mask)  # raised here


@case("target-dtype", "`aims` is float64", "aims = aims.to(p.dtype)")
def float64_for_bce():
    p, aims = torch.rand(3), torch.rand(3, dtype=torch.float64)
    F.binary_cross_entropy(p, aims)  # raised here


@case("target-dtype", "`huber_loss`", "`steps` holds integers", "steps = steps.float()")
def integers_for_huber_that_backward_refuses():
    y, steps = torch.rand(3, requires_grad=True), torch.arange(3)
    loss = F.huber_loss(y, steps)
    loss.backward()  # raised here


@case("target-dtype", "`kl_div`", "`counts` holds integers")
def counts_for_a_divergence():
    y, counts = torch.rand(3).log(), torch.arange(3)
    F.kl_div(y, counts, reduction="sum")  # raised here
