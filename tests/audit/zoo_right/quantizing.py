"""Nearest codes that need no straight-through step, or have one in another dress."""

import torch
from torch import nn
from torch.nn import functional as F

from tests.audit.registry import right


def _parts(width=2):
    return nn.Linear(4, width), nn.Linear(width, 4), nn.Embedding(5, width)


def _train(loss_of, *parts, steps=6):
    optimizer = torch.optim.Adam([it for part in parts for it in part.parameters()], lr=0.01)
    for _ in range(steps):
        loss = loss_of(torch.randn(8, 4))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


class _Pass(torch.autograd.Function):
    @staticmethod
    def forward(ctx, z, book):
        return book[torch.cdist(z, book).argmin(1)]

    @staticmethod
    def backward(ctx, grad):
        return grad, None


@right
def clusters_of_an_autoencoder():
    encoder, decoder, codes = _parts()

    def loss_of(x):
        z = encoder(x)
        centre = codes(torch.cdist(z, codes.weight).argmin(1))
        return F.mse_loss(decoder(z), x) + 0.1 * F.mse_loss(z, centre)

    _train(loss_of, encoder, decoder, codes)


@right
def map_that_decodes_codes_and_what_they_stand_for():
    encoder, decoder, codes = _parts()

    def loss_of(x):
        z = encoder(x)
        q = codes(torch.cdist(z, codes.weight).argmin(1))
        return F.mse_loss(decoder(q), x) + F.mse_loss(decoder(z), x) + 0.1 * F.mse_loss(z, q)

    _train(loss_of, encoder, decoder, codes)


@right
def straight_through_by_a_function_of_ones_own():
    encoder, decoder, codes = _parts()

    def loss_of(x):
        z = encoder(x)
        q = codes(torch.cdist(z, codes.weight).argmin(1))
        through = _Pass.apply(z, codes.weight.detach())
        return F.mse_loss(decoder(through), x) + F.mse_loss(q, z.detach()) + 0.25 * F.mse_loss(z, q.detach())

    _train(loss_of, encoder, decoder, codes)


@right
def gradient_of_codes_carried_over_by_hand():
    encoder, decoder, codes = _parts()
    optimizer = torch.optim.Adam([*encoder.parameters(), *decoder.parameters(), *codes.parameters()], lr=0.01)
    for _ in range(6):
        x = torch.randn(8, 4)
        z = encoder(x)
        q = codes(torch.cdist(z, codes.weight).argmin(1))
        q.retain_grad()
        optimizer.zero_grad()
        loss = F.mse_loss(decoder(q), x) + F.mse_loss(q, z.detach()) + 0.25 * F.mse_loss(z, q.detach())
        loss.backward(retain_graph=True)
        z.backward(q.grad)
        optimizer.step()


@right
def noise_in_the_place_of_the_quantisation():
    encoder, decoder, codes = _parts()

    def loss_of(x):
        z = encoder(x)
        q = codes(torch.cdist(z, codes.weight).argmin(1))
        noise = torch.randn_like(z)
        size = (z - q).norm(dim=1, keepdim=True) / noise.norm(dim=1, keepdim=True)
        return F.mse_loss(decoder(z + size * noise), x)

    _train(loss_of, encoder, decoder, codes)


@right
def words_that_a_decoder_chose_are_read_again():
    first, second, words = nn.Linear(4, 5), nn.Linear(2, 5), nn.Embedding(5, 2)
    guess = nn.Linear(4, 2)

    def loss_of(x):
        scores = first(x)
        word = words(scores.argmax(1))
        target = torch.arange(8) % 5
        told = F.cross_entropy(scores, target) + F.cross_entropy(second(word), target)
        return told + 0.1 * F.mse_loss(guess(x), word.detach())

    _train(loss_of, first, second, words, guess)


@right
def codes_of_a_frozen_encoder():
    encoder, decoder, codes = _parts()
    encoder.requires_grad_(False)

    def loss_of(x):
        z = encoder(x)
        q = codes(torch.cdist(z, codes.weight).argmin(1))
        return F.mse_loss(decoder(q), x) + F.mse_loss(q, z)

    _train(loss_of, decoder, codes)


@right
def points_that_rebuild_rows_of_their_data():
    data = torch.randn(12, 4)
    encoder, decoder = nn.Linear(4, 4), nn.Linear(4, 4)
    with torch.no_grad():
        for part in (encoder, decoder):
            nn.init.eye_(part.weight)
    optimizer = torch.optim.SGD([*encoder.parameters(), *decoder.parameters()], lr=0.01)
    hard = torch.arange(12.0)
    for _ in range(6):
        x = data[hard.topk(4).indices]
        loss = F.mse_loss(decoder(encoder(x)), x)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
