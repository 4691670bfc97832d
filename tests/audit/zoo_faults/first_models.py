"""Faults between a model and its optimizer: what is held, reached, frozen, and in which mode it runs."""

import torch
from torch import nn
from torch.nn import functional as F

from tests.audit.parts import Dropping, batches, blobs, lines, mlp
from tests.audit.registry import fault


@fault("not-in-optimizer")
def new_head_after_the_optimizer():
    x, y = blobs()
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model[2] = nn.Linear(8, 3)  # <- here
    for _ in range(6):
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()


@fault("not-in-optimizer")
def decoder_forgotten():
    x, _ = blobs()
    encoder, decoder = nn.Linear(4, 2), nn.Linear(2, 4)

    class Auto(nn.Module):
        def __init__(self):
            super().__init__()
            self.encoder, self.decoder = encoder, decoder

        def forward(self, x):
            return self.decoder(self.encoder(x).tanh())

    model = Auto()
    optimizer = torch.optim.Adam(model.encoder.parameters(), lr=0.01)  # <- here
    for _ in range(6):
        optimizer.zero_grad()
        F.mse_loss(model(x), x).backward()
        optimizer.step()


@fault("not-in-optimizer")
def layers_in_a_plain_list():
    class Deep(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = [nn.Linear(4, 4) for _ in range(3)]  # <- here
            self.head = nn.Linear(4, 3)

        def forward(self, x):
            for layer in self.layers:
                x = layer(x).tanh()
            return self.head(x)

    x, y = blobs()
    model = Deep()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(6):
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()


@fault("other-tensors")
def optimizer_of_another_model():
    x, y = blobs()
    model = mlp()
    optimizer = torch.optim.SGD(mlp().parameters(), lr=0.1)  # <- here
    for _ in range(6):
        model.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()


@fault("never-reached")
def features_detached():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.body, self.head = nn.Linear(4, 8), nn.Linear(8, 3)

        def forward(self, x):
            features = self.body(x).tanh()
            features = features.detach()  # <- here
            return self.head(features)

    x, y = blobs()
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(6):
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()


@fault("never-reached")
def features_through_numpy():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.body, self.head = nn.Linear(4, 8), nn.Linear(8, 1)

        def forward(self, x):
            features = self.body(x)
            clipped = features.detach().numpy().clip(-1, 1)  # <- here
            return self.head(torch.from_numpy(clipped))

    x, y = lines()
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(6):
        optimizer.zero_grad()
        F.mse_loss(model(x), y).backward()
        optimizer.step()


@fault("never-reached")
def encoder_under_no_grad():
    x, y = lines()
    encoder, head = nn.Linear(4, 8), nn.Linear(8, 1)
    optimizer = torch.optim.SGD([*encoder.parameters(), *head.parameters()], lr=0.1)
    for _ in range(6):
        optimizer.zero_grad()
        with torch.no_grad():  # <- here
            code = encoder(x).relu()
        F.mse_loss(head(code), y).backward()
        optimizer.step()


@fault("misspelt-freeze", "not-in-optimizer")
def frozen_by_a_misspelt_attribute():
    x, y = blobs()
    model = mlp()
    for p in model[0].parameters():
        p.require_grad = False  # <- here
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(6):
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()


@fault("frozen")
def frozen_in_validation_and_never_thawed():
    x, y = blobs(24)
    body, head = nn.Linear(4, 8), nn.Linear(8, 3)
    model = nn.Sequential(body, nn.Tanh(), head)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(3):
        for inputs, targets in batches(x, y, 8):
            optimizer.zero_grad()
            F.cross_entropy(model(inputs), targets).backward()
            optimizer.step()
        if epoch == 0:
            body.requires_grad_(False)  # <- here
            print(float(model(x).sum()))


@fault("frozen-moves")
def frozen_with_gradients_left():
    x, y = blobs()
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=0.01)
    for step in range(8):
        if step == 3:
            model[0].requires_grad_(False)  # <- here
        optimizer.zero_grad(set_to_none=False)
        F.cross_entropy(model(x), y).backward()
        optimizer.step()


@fault("left-in-eval")
def never_back_to_training():
    x, y = blobs()
    model = Dropping()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model.train()
    for _ in range(4):
        for inputs, targets in batches(x, y):
            optimizer.zero_grad()
            F.cross_entropy(model(inputs), targets).backward()
            optimizer.step()
        model.eval()  # <- here
        with torch.no_grad():
            print(float(F.cross_entropy(model(x), y)))


@fault("eval-in-train")
def accuracy_with_dropout():
    x, y = blobs()
    model = Dropping()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(3):
        for inputs, targets in batches(x, y):
            optimizer.zero_grad()
            loss = F.cross_entropy(model(inputs), targets)
            loss.backward()
            optimizer.step()
        with torch.no_grad():
            right = 0
            for inputs, targets in batches(x, y):
                right += (model(inputs).argmax(dim=1) == targets).sum().item()  # <- here
            print(right / len(x))


@fault("graph-in-validation")
def validation_records():
    x, y = blobs()
    model = Dropping()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(3):
        model.train()
        for inputs, targets in batches(x, y):
            optimizer.zero_grad()
            F.cross_entropy(model(inputs), targets).backward()
            optimizer.step()
        model.eval()
        total = 0.0
        for inputs, targets in batches(x, y):
            total += F.cross_entropy(model(inputs), targets).item()  # <- here
        print(total)


@fault("hooks-pile-up")
def a_hook_for_each_step():
    x, y = blobs()
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    seen = []
    for _ in range(6):
        model[1].register_forward_hook(lambda module, given, out: seen.append(out.shape))  # <- here
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()


@fault("dead-units")
def all_units_dead():
    x, y = lines()
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
    nn.init.constant_(model[0].bias, -50.0)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for _ in range(12):
        optimizer.zero_grad()
        out = model(x)  # <- here
        F.mse_loss(out, y).backward()
        optimizer.step()
