"""Right loops that take the largest along an axis that has one entry, or might have."""

import torch
from torch import nn
from torch.nn import functional as F

from tests.audit.parts import batches, blobs, lines, mlp
from tests.audit.registry import right


def taught(model, look, epochs=3):
    """Train a model with one output, and look at it after each epoch."""
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    x = torch.randn(32, 4)
    y = (x.sum(dim=1) > 0).float()
    for _ in range(epochs):
        for rows, labels in batches(x, y, 8):
            optimizer.zero_grad()
            F.binary_cross_entropy_with_logits(model(rows)[:, 0], labels).backward()
            optimizer.step()
        with torch.no_grad():
            look(model, x, y)


@right
def threshold_of_a_single_logit():
    taught(mlp(out=1), lambda model, x, y: ((model(x)[:, 0] > 0) == y).float().mean())


@right
def argmax_only_for_several_outputs():
    def look(model, x, y):
        out = model(x)
        predicted = out.argmax(1) if out.shape[1] > 1 else (out[:, 0] > 0).long()
        return (predicted == y).float().mean()

    taught(mlp(out=1), look)


@right
def argmax_of_both_logits_made_of_one():
    def look(model, x, y):
        score = model(x)
        predicted = torch.cat([torch.zeros_like(score), score], dim=1).argmax(1)
        return (predicted == y).float().mean()

    taught(mlp(out=1), look)


@right
def choices_scored_one_by_one():
    scorer = mlp(out=1)
    optimizer = torch.optim.Adam(scorer.parameters(), lr=0.01)
    for _ in range(5):
        choices, answers = torch.randn(8, 5, 4), torch.randint(5, (8,))
        scores = scorer(choices.view(-1, 4)).view(-1, 5)
        optimizer.zero_grad()
        F.cross_entropy(scores, answers).backward()
        optimizer.step()
        (scores.argmax(1) == answers).float().mean()


@right
def best_row_by_a_critic():
    critic = mlp(out=1)
    optimizer = torch.optim.Adam(critic.parameters(), lr=0.01)
    x, y = lines()
    for _ in range(5):
        optimizer.zero_grad()
        F.mse_loss(critic(x), y).backward()
        optimizer.step()
        with torch.no_grad():
            value, place = critic(x).max(0)
            assert value.numel() == 1
            assert (place == y.argmax(0)).numel() == 1


@right
def candidates_of_which_one_is_left_at_times():
    model = mlp(out=6)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for count in (6, 1, 1, 3, 1, 2):
        x, _ = blobs()
        wanted = torch.randint(count, (16,))
        scores = model(x)[:, :count]
        optimizer.zero_grad()
        (F.cross_entropy(scores, wanted) + 0.01 * scores.square().mean()).backward()
        optimizer.step()
        (scores.argmax(1) == wanted).float().mean()


@right
def beams_of_one():
    model = nn.Linear(4, 4)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(5):
        x, y = blobs(classes=4)
        scores = model(x)
        optimizer.zero_grad()
        F.cross_entropy(scores, y).backward()
        optimizer.step()
        beams, ends = scores.detach().topk(1, dim=1)
        kept = beams.argmax(dim=1)
        word = ends.gather(1, kept[:, None])[:, 0]
        assert bool((kept == 0).all())
        assert word.shape == y.shape
