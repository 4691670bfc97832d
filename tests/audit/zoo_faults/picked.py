"""Classes picked where a model has one output."""

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from tests.audit.parts import batches, mlp
from tests.audit.registry import fault


def two_classes(count=32):
    """Return points and the class of each, 0 or 1."""
    x = torch.randn(count, 4)
    return x, (x.sum(dim=1) > 0).float()


def taught(model, epochs=3, look=None):
    """Train a model with one output, and look at it after each epoch."""
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    x, y = two_classes()
    for _ in range(epochs):
        for rows, labels in batches(x, y, 8):
            optimizer.zero_grad()
            F.binary_cross_entropy_with_logits(model(rows)[:, 0], labels).backward()
            optimizer.step()
        if look is not None:
            with torch.no_grad():
                look(model, x, y)
    return model


@fault("argmax-of-one")
def accuracy_by_argmax_of_a_single_logit():
    def look(model, x, y):
        return (model(x).argmax(1) == y).float().mean()  # <- here

    taught(mlp(out=1), look=look)


@fault("argmax-of-one")
def places_of_the_largest_probabilities_after_all_epochs():
    model = taught(mlp(out=1), epochs=8)
    model.eval()
    x, y = two_classes()
    with torch.no_grad():
        probabilities = torch.sigmoid(model(x))
        _, predicted = torch.max(probabilities.data, 1)  # <- here
        correct = (predicted == y).sum().item()
    return correct / len(y)


@fault("argmax-of-one")
def argmax_of_numpy_after_all_epochs():
    model = taught(mlp(out=1), epochs=8)
    x, y = two_classes()
    model.eval()
    with torch.no_grad():
        out = model(x)
    predicted = np.argmax(out.cpu().numpy(), axis=1)  # <- here
    return (predicted == y.numpy()).mean()


@fault("argmax-of-one")
def accuracy_of_a_helper_while_training():
    def accuracy(scores, labels):
        predicted = scores.max(dim=-1)[1].cpu()  # <- here
        return labels.eq(predicted).float().mean().item()

    model = nn.Sequential(nn.Linear(4, 6), nn.ReLU(), nn.Linear(6, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for rows, labels in batches(*two_classes(), 8):
        scores = model(rows)
        loss = F.binary_cross_entropy_with_logits(scores, labels[:, None])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        accuracy(scores.detach(), labels)
