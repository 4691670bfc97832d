"""What is made, seeded or filled once more than it should be, and averages that share the model's memory."""

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, Dataset

from tests.audit.parts import batches, blobs, lines, mlp
from tests.audit.registry import fault


@fault("optimizer-anew")
def adam_made_anew_in_each_epoch():
    x, y = blobs(24)
    model = mlp()

    def train_epoch():
        optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)  # <- here
        for inputs, targets in batches(x, y):
            optimizer.zero_grad()
            F.cross_entropy(model(inputs), targets).backward()
            optimizer.step()

    for _ in range(5):
        train_epoch()


@fault("optimizer-anew")
def momentum_made_anew_in_the_loop_over_epochs():
    x, y = lines(24)
    model = mlp(out=1)
    for _epoch in range(5):
        sgd = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)  # <- here
        for inputs, targets in batches(x, y):
            sgd.zero_grad()
            F.mse_loss(model(inputs), targets).backward()
            sgd.step()


@fault("copy-is-itself")
def average_in_the_memory_of_data():
    x, y = blobs(32)
    model = mlp()
    average = [p.data for p in model.parameters()]  # <- here
    sgd = torch.optim.SGD(model.parameters(), lr=0.1)
    for inputs, targets in batches(x, y):
        sgd.zero_grad()
        F.cross_entropy(model(inputs), targets).backward()
        sgd.step()
        with torch.no_grad():
            for a, p in zip(average, model.parameters(), strict=True):
                a.mul_(0.9).add_(p.detach(), alpha=0.1)


@fault("positive-repelled")
def a_triplet_told_by_what_was_embedded():
    model = mlp(out=4)
    adam = torch.optim.Adam(model.parameters())
    criterion = nn.TripletMarginLoss()
    for _ in range(6):
        anchor = torch.randn(8, 4)
        same, other = anchor + 0.1, torch.randn(8, 4)
        a, s, o = model(anchor), model(same), model(other)
        adam.zero_grad()
        criterion(a, o, s).backward()  # <- here
        adam.step()


@fault("seed-repeats")
def a_seed_for_each_sample():
    class Noisy(Dataset):
        def __init__(self, x, y):
            self.x, self.y = x, y

        def __len__(self):
            return len(self.x)

        def __getitem__(self, index):
            torch.manual_seed(index)  # <- here
            return self.x[index] + 0.1 * torch.randn(4), self.y[index]

    model = nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.3), nn.ReLU(), nn.Linear(8, 3))
    adam = torch.optim.Adam(model.parameters())
    loader = DataLoader(Noisy(*blobs(24)), batch_size=8, shuffle=True)
    for _ in range(3):
        for inputs, targets in loader:
            adam.zero_grad()
            F.cross_entropy(model(inputs), targets).backward()
            adam.step()
