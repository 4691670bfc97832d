"""Right and wrong answers to `uncut_loss`."""

import numpy as np
import torch

from tests.answers.lesson_06_detach_vs_no_grad.side_effects import hook_left, keeps_gradient
from tests.answers.said import said


def uncut_by_norm(points, scale, weights):
    lengths = points.norm(dim=1)
    return (torch.exp(-lengths * scale) * weights).sum()


def uncut_by_stacking(points, scale, weights):
    lengths = torch.stack([row.pow(2).sum().sqrt() for row in points])
    return weights @ (-scale * lengths).exp()


def uncut_by_position(p, s, w):
    return torch.dot(w, torch.exp(-s * torch.linalg.vector_norm(p, dim=1)))


def loss_that_differentiates(points, scale, weights):
    """Runs a pass that ends at the inputs, before it reaches any leaf."""
    loss = uncut_by_norm(points, scale, weights)
    torch.autograd.grad(loss, [points, scale, weights], retain_graph=True)
    return loss


def loss_with_short_gradients(points, scale, weights):
    """Cuts long gradients off."""
    points = points * 1
    points.register_hook(lambda gradient: gradient.clamp(-1e3, 1e3))
    return uncut_by_norm(points, scale, weights)


def loss_and(extra):
    """A right loss, and something left behind."""

    def loss(points, scale, weights):
        result = uncut_by_norm(points, scale, weights)
        extra(points)
        return result

    return loss


def cut_loss(lengths="", factor="", shares="", last=""):
    """A loss with chosen cuts."""

    def loss(points, scale, weights):
        length = (
            torch.tensor([row.norm().item() for row in points], dtype=points.dtype) if lengths else points.norm(dim=1)
        )
        times = scale.item() if factor else scale
        share = torch.exp(-length * times)
        return ((share.detach() if shares else share) * (weights.data if last else weights)).sum()

    return loss


def broken_loss(points, scale, weights):
    lengths = torch.tensor([row.norm().item() for row in points], dtype=points.dtype)
    shares = np.exp(-lengths.numpy() * scale.item())
    total = (torch.from_numpy(shares) * weights.data).sum()
    return total.requires_grad_()


def loss_with_new_leaves(points, scale, weights):
    points, scale, weights = (tensor.detach().requires_grad_() for tensor in (points, scale, weights))
    return uncut_by_norm(points, scale, weights)


def loss_that_writes(points, scale, weights):
    loss = uncut_by_norm(points.clone(), scale.clone(), weights.clone())
    points.data.mul_(2)
    return loss


def loss_that_runs_back(points, scale, weights):
    loss = uncut_by_norm(points, scale, weights)
    loss.backward(retain_graph=True)
    return loss


def loss_remembered():
    """Takes the lengths of the first call for all later ones of that shape."""
    lengths = {}

    def loss(points, scale, weights):
        length = lengths.setdefault(points.shape, points.norm(dim=1))
        return (torch.exp(-length * scale) * weights).sum()

    return loss


RIGHT = [uncut_by_norm, uncut_by_stacking, uncut_by_position]

MISCONCEIVED = {
    "silenced": broken_loss,
    "only the weights": cut_loss(lengths="cut", factor="cut"),
    "the scale is still a number": cut_loss(factor="cut"),
}

WRONG = [
    loss_with_new_leaves,
    loss_that_writes,
    loss_that_runs_back,
    loss_that_differentiates,
    lambda points, scale, weights: weights @ (-scale * (points.square().sum(1) + 1e-12).sqrt()).exp(),
    loss_with_short_gradients,
    loss_hooked := loss_and(hook_left),
    loss_and(keeps_gradient),
    loss_and(lambda points: torch.set_grad_enabled(False)),
    loss_without_points := cut_loss(lengths="cut"),
    said(cut_loss(shares="cut"), "only the weights"),
    lambda points, scale, weights: torch.dot(weights, (-scale * points.norm(dim=1).clamp(min=0.01)).exp()),
    lambda points, scale, weights: torch.dot(weights, (-scale.clamp(min=0) * points.norm(dim=1)).exp()),
    loss_without_weights := cut_loss(last="cut"),
    loss_as_a_number := lambda points, scale, weights: uncut_by_norm(points, scale, weights).item(),
    loss_cut := lambda points, scale, weights: uncut_by_norm(points, scale, weights).detach(),
    lambda points, scale, weights: uncut_by_norm(points, scale, weights) / len(points),
    lambda points, scale, weights: (torch.exp(-points.norm() * scale) * weights).sum(),
    loss_long := lambda points, scale, weights: uncut_by_norm(points, scale, weights)[None],
    loss_of_another_value := lambda *given: uncut_by_norm(*given) + 1,
    loss_remembered(),
    lambda points, scale, weights: (weights / torch.exp(scale * points.norm(dim=1))).sum(),
]

GUARDS = {
    "which gives the same value, as a tensor without dimensions": {
        "value": loss_of_another_value,
        "shape": loss_long,
        "tensor": loss_as_a_number,
    },
    "lets a gradient reach all three": {
        "to points": loss_without_points,
        "to scale": MISCONCEIVED["the scale is still a number"],
        "to weights": loss_without_weights,
        "graph": loss_cut,
    },
    "Your function runs no backward pass.": {"passes": loss_that_differentiates},
    "It changes none of its inputs, and leaves no hook on them.": {
        "untouched": loss_that_writes,
        "as before": loss_hooked,
    },
}

EQUIVALENT = {
    "uncut_by_norm: points.norm(dim=1) -> points.norm(dim=-1)": "The points have two dimensions.",
    "uncut_by_position: torch.linalg.vector_norm(p, dim=1) -> torch.linalg.vector_norm(p, dim=-1)": "The points have two dimensions.",
}

WRONG += [lambda points, scale, weights: torch.dot(weights, (-scale * points.norm(dim=1).clamp(max=50.0)).exp())]
# Raised to the lengths only afterwards: of a large scale that is infinity, or zero.
WRONG += [lambda points, scale, weights: torch.dot(weights, torch.exp(-scale) ** points.norm(dim=1))]
