"""Right loops that make, seed or fill something again, or keep an average of weights."""

import copy

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, Dataset

from tests.audit.parts import batches, blobs, lines, mlp
from tests.audit.registry import right


@right
def adam_made_anew_for_each_task():
    model = mlp(out=1)

    def learn(x, y):
        adam = torch.optim.Adam(model.parameters(), lr=0.01)
        for _epoch in range(2):
            for inputs, targets in batches(x, y):
                adam.zero_grad()
                F.mse_loss(model(inputs), targets).backward()
                adam.step()

    for _task in range(5):
        learn(*lines(24))


@right
def plain_descent_made_anew_in_each_epoch():
    x, y = blobs(24)
    model = mlp()
    for _epoch in range(5):
        sgd = torch.optim.SGD(model.parameters(), lr=0.05)
        for inputs, targets in batches(x, y):
            sgd.zero_grad()
            F.cross_entropy(model(inputs), targets).backward()
            sgd.step()


@right
def an_optimizer_of_each_epoch_with_another_rate():
    x, y = blobs(24)
    model = mlp()
    for epoch in range(5):
        adam = torch.optim.Adam(model.parameters(), lr=0.01 * 0.5**epoch)
        for inputs, targets in batches(x, y):
            adam.zero_grad()
            F.cross_entropy(model(inputs), targets).backward()
            adam.step()


@right
def average_in_memory_of_its_own():
    x, y = blobs(32)
    model = mlp()
    average = [p.detach().clone() for p in model.parameters()]
    sgd = torch.optim.SGD(model.parameters(), lr=0.1)
    for inputs, targets in batches(x, y):
        sgd.zero_grad()
        F.cross_entropy(model(inputs), targets).backward()
        sgd.step()
        with torch.no_grad():
            for a, p in zip(average, model.parameters(), strict=True):
                a.mul_(0.9).add_(p.detach(), alpha=0.1)


@right
def a_triplet_told_by_what_was_embedded():
    model = mlp(out=4)
    adam = torch.optim.Adam(model.parameters())
    criterion = nn.TripletMarginLoss()
    for _ in range(6):
        anchor = torch.randn(8, 4)
        same, other = anchor + 0.1, torch.randn(8, 4)
        a, s, o = model(anchor), model(same), model(other)
        adam.zero_grad()
        criterion(a, s, o).backward()
        adam.step()


class Noisy(Dataset):
    """Samples with noise that `draw` gives for an index."""

    def __init__(self, draw):
        (self.x, self.y), self.draw = blobs(24), draw

    def __len__(self):
        return len(self.x)

    def __getitem__(self, index):
        return self.x[index] + 0.1 * self.draw(index), self.y[index]


def trained_on(draw):
    model = nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.3), nn.ReLU(), nn.Linear(8, 3))
    adam = torch.optim.Adam(model.parameters())
    for _ in range(3):
        for inputs, targets in DataLoader(Noisy(draw), batch_size=8, shuffle=True):
            adam.zero_grad()
            F.cross_entropy(model(inputs), targets).backward()
            adam.step()


@right
def a_generator_for_each_sample():
    trained_on(lambda index: torch.randn(4, generator=torch.Generator().manual_seed(index)))


@right
def a_seed_for_each_sample_that_is_taken_back():
    def draw(index):
        with torch.random.fork_rng():
            torch.manual_seed(index)
            return torch.randn(4)

    trained_on(draw)


@right
def rows_of_padding_zeroed_again_and_added():
    embedding, outer = nn.Embedding(12, 4, padding_idx=0), nn.Linear(4, 3)
    nn.init.normal_(embedding.weight)
    with torch.no_grad():
        embedding.weight[0].zero_()
    adam = torch.optim.Adam([*embedding.parameters(), *outer.parameters()])
    for _ in range(5):
        tokens, y = torch.randint(1, 12, (8, 5)), torch.randint(3, (8,))
        tokens[:4, 3:] = 0
        adam.zero_grad()
        F.cross_entropy(outer(embedding(tokens).sum(1)), y).backward()
        adam.step()


@right
def a_training_resumed_and_its_best_weights_loaded():
    x, y = blobs(24)

    def build():
        model = mlp()
        return model, torch.optim.Adam(model.parameters(), lr=0.01)

    def run(model, adam):
        for inputs, targets in batches(x, y):
            adam.zero_grad()
            F.cross_entropy(model(inputs), targets).backward()
            adam.step()
        return {name: value.clone() for name, value in model.state_dict().items()}

    first = build()
    run(*first)
    saved = copy.deepcopy([part.state_dict() for part in first])
    again = build()
    for part, state in zip(again, saved, strict=True):
        part.load_state_dict(state)
    best = run(*again)
    again[0].load_state_dict(best)
