"""What is left aside: half of a model, the state of an optimizer, and where the classes of scores stand."""

import io

import torch
from torch import nn
from torch.nn import functional as F

from tests.audit.parts import blobs, mlp, segments
from tests.audit.registry import fault


@fault("not-in-optimizer")
def decoder_left_out_and_evaluated_at_the_end():
    encoder, decoder = mlp(8, 3), mlp(3, 8)
    optimizer = torch.optim.Adam(encoder.parameters(), lr=0.01)  # <- here
    for _ in range(3):
        encoder.train()
        decoder.train()
        for _ in range(4):
            x = torch.randn(16, 8)
            loss = F.mse_loss(decoder(encoder(x)), x)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        encoder.eval()
        decoder.eval()
        with torch.no_grad():
            decoder(encoder(torch.randn(4, 8)))


@fault("view-not-transpose")
def classes_of_maps_read_as_rows():
    segments(lambda scores, y: F.cross_entropy(scores.view(-1, 3), y.view(-1)))  # <- here


@fault("view-not-transpose")
def classes_of_maps_reshaped_to_rows():
    criterion = nn.CrossEntropyLoss()

    def loss_of(scores, y):
        return criterion(scores.reshape(-1, scores.shape[1]), y.flatten())  # <- here

    segments(loss_of)


@fault("view-not-transpose")
def classes_of_sequences_read_as_rows():
    net = nn.Conv1d(2, 5, 3, padding=1)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05)
    for _ in range(5):
        x = torch.randn(4, 2, 9)
        scores, tags = net(x), torch.randint(5, (4, 9))
        loss = F.cross_entropy(scores.reshape(-1, 5), tags.reshape(-1))  # <- here
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def _epochs(model, optimizer, x, y, epochs):
    for _ in epochs:
        for rows in torch.randperm(len(x)).split(8):
            optimizer.zero_grad()
            F.cross_entropy(model(x[rows]), y[rows]).backward()
            optimizer.step()


@fault("not-saved")
def momentum_saved_and_left_in_the_file():
    x, y = blobs(32)
    file = io.BytesIO()
    model = mlp()
    sgd = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    _epochs(model, sgd, x, y, range(3))
    torch.save({"weights": model.state_dict(), "optimizer": sgd.state_dict(), "next_epoch": 3}, file)
    file.seek(0)
    saved = torch.load(file)
    model = mlp()
    sgd = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    model.load_state_dict(saved["weights"])  # <- here
    _epochs(model, sgd, x, y, range(saved["next_epoch"], 6))
