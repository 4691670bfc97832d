"""Right and wrong answers to `fit_classes`."""

import torch
from torch.nn.functional import cross_entropy, nll_loss

from tests.answers.lesson_09_practical_checklist.side_effects import MESSES, leaving
from tests.answers.lesson_09_practical_checklist.training import step


def by_grad(parameters, optimizer, loss):
    """A step whose gradients come from torch.autograd.grad."""
    for p, gradient in zip(parameters, torch.autograd.grad(loss, parameters), strict=True):
        p.grad = gradient
    optimizer.step()
    return loss.item()


def classifier(loss_of=cross_entropy, clear=True, keep=float, hits_of=lambda hit: hit.sum().item(), again=False):
    def fit_classes(model, optimizer, batches):
        losses, hits, total = [], 0, 0
        for inputs, targets in batches:
            scores = model(inputs)
            loss = loss_of(scores, targets)
            if clear:
                optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if again:
                scores = model(inputs)
            losses.append(keep(loss))
            hits += hits_of(scores.argmax(1) == targets)
            total += len(targets)
        return losses, hits / total

    return fit_classes


def classes_by_hand(model, optimizer, batches):
    losses, right = [], []
    for inputs, targets in batches:
        logarithms = model(inputs).log_softmax(dim=1)
        losses.append(step(optimizer, nll_loss(logarithms, targets)))
        right += (logarithms.exp().argmax(dim=1) == targets).tolist()
        optimizer.zero_grad()
    return [losses, sum(right) / len(right)]


def classes_by_grad(model, optimizer, batches):
    losses, right = [], []
    for inputs, targets in batches:
        scores = model(inputs)
        right.append(scores.argmax(dim=-1) == targets)
        losses.append(by_grad(list(model.parameters()), optimizer, cross_entropy(scores, targets)))
    return losses, torch.cat(right).double().mean().item()


RIGHT = [classifier(), classes_by_hand, classes_by_grad]

MISCONCEIVED = {
    "softmax twice": classifier(lambda scores, targets: cross_entropy(scores.softmax(1), targets)),
    "never cleared": classifier(clear=False),
    "logarithm of a softmax": classifier(lambda s, targets: nll_loss(s.softmax(1).log(), targets)),
}

WRONG = [
    classifier(keep=lambda loss: loss),
    classifier(keep=lambda loss: loss.detach()),
    classifier(hits_of=lambda hit: hit.float().mean().item()),
    classifier(again=True),
    classifier(lambda scores, targets: cross_entropy(scores, targets, reduction="sum")),
    lambda model, optimizer, batches: ([], 0.0),
    *(leaving(classifier(), mess) for mess in MESSES),
]
