"""Codes of a codebook that go on without a straight-through step."""

import torch
from torch import nn
from torch.nn import functional as F

from tests.audit.registry import fault


def _train(parameters, loss_of, steps=6):
    optimizer = torch.optim.Adam(parameters, lr=0.01)
    for _ in range(steps):
        loss = loss_of(torch.randn(8, 4))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


@fault("straight-through-missing")
def codes_decoded_as_they_are():
    encoder, decoder, codes = nn.Linear(4, 2), nn.Linear(2, 4), nn.Embedding(5, 2)

    def loss_of(x):
        z = encoder(x)
        q = codes(torch.cdist(z, codes.weight).argmin(1))  # <- here
        return F.mse_loss(decoder(q), x) + F.mse_loss(q, z.detach()) + 0.25 * F.mse_loss(z, q.detach())

    _train([*encoder.parameters(), *decoder.parameters(), *codes.parameters()], loss_of)


@fault("straight-through-missing")
def codes_of_an_averaged_book_decoded_as_they_are():
    encoder, decoder = nn.Linear(4, 2), nn.Sequential(nn.Linear(2, 8), nn.ReLU(), nn.Linear(8, 4))
    book = torch.randn(5, 2)

    def loss_of(x):
        z = encoder(x)
        with torch.no_grad():
            index = torch.cdist(z, book).min(dim=1).indices
            ones = F.one_hot(index, 5).float()
        q = ones @ book  # <- here
        with torch.no_grad():
            held = ones.sum(0)[:, None]
            book.copy_(torch.where(held > 0, 0.9 * book + 0.1 * (ones.t() @ z) / held.clamp(min=1), book))
        return F.mse_loss(decoder(q), x) + 0.25 * (z - q).square().mean()

    _train([*encoder.parameters(), *decoder.parameters()], loss_of)


@fault("straight-through-missing")
def codes_of_a_picture_decoded_as_they_are():
    encoder, decoder = nn.Conv2d(1, 3, 3, padding=1), nn.ConvTranspose2d(3, 1, 3, padding=1)
    book = nn.Parameter(torch.randn(6, 3))

    def quantized(z):
        flat = z.permute(0, 2, 3, 1).reshape(-1, 3)
        _, index = (flat @ book.t() - 0.5 * book.square().sum(1)).max(dim=1)
        rows = book[index]  # <- here
        picture = rows.view(len(z), 4, 4, 3).permute(0, 3, 1, 2)
        pull = (picture.detach() - z).square().mean() + (picture - z.detach()).square().mean()
        return picture, pull

    def loss_of(x):
        x = x.view(2, 1, 4, 4)
        q, pull = quantized(encoder(x))
        return F.l1_loss(decoder(q), x) + pull

    _train([*encoder.parameters(), *decoder.parameters(), book], loss_of)


@fault("straight-through-missing")
def codes_given_back_by_a_module_as_they_are():
    class Codebook(nn.Module):
        def __init__(self, count, width):
            super().__init__()
            self.table = nn.Embedding(count, width)

        def forward(self, z):
            apart = z.pow(2).sum(1, keepdim=True) - 2 * z @ self.table.weight.t() + self.table.weight.pow(2).sum(1)
            chosen = self.table(torch.argmin(apart, dim=1))
            return chosen, F.mse_loss(chosen.detach(), z) + F.mse_loss(chosen, z.detach())  # <- here

    encoder, decoder, book = nn.Linear(4, 2), nn.Linear(2, 4), Codebook(5, 2)

    def loss_of(x):
        q, pull = book(encoder(x))
        return F.mse_loss(decoder(q), x) + pull

    _train([*encoder.parameters(), *decoder.parameters(), *book.parameters()], loss_of)
