"""What is lost, kept or drifts from step to step: state of optimizers, graphs, stored rows, coarse weights."""

from collections import deque
from dataclasses import dataclass, field
from functools import partial

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, Dataset

from tests.audit.parts import batches, blobs, lines, mlp
from tests.audit.registry import fault


@fault("optimizer-anew")
def adam_in_the_step_function():
    x, y = blobs(32)
    net = mlp()

    def fit_batch(inputs, targets):
        adam = torch.optim.Adam(net.parameters(), lr=0.01)  # <- here
        loss = F.cross_entropy(net(inputs), targets)
        adam.zero_grad()
        loss.backward()
        adam.step()

    for _ in range(2):
        for inputs, targets in batches(x, y):
            fit_batch(inputs, targets)


@fault("optimizer-anew")
def momentum_of_an_optimizer_asked_for_anew():
    class Fitting:
        """A trainer whose method gives out a new optimizer each time that it is asked."""

        def __init__(self, model):
            self.model = model

        def optimizer(self):
            groups = [{"params": self.model[0].parameters()}, {"params": self.model[2].parameters(), "lr": 0.02}]
            return torch.optim.SGD(groups, lr=0.01, momentum=0.9, nesterov=True)  # <- here

        def fit(self, data):
            for inputs, targets in data:
                self.model.zero_grad()
                F.mse_loss(self.model(inputs), targets).backward()
                self.optimizer().step()

    Fitting(mlp(out=1)).fit(batches(*lines(40)))


@fault("optimizer-anew")
def rate_set_by_a_new_optimizer_each_round():
    x, y = lines(24)
    model = nn.Linear(4, 1)
    for step in range(12):
        optimizer = torch.optim.RMSprop(model.parameters(), lr=0.02 / (1 + step), momentum=0.5)  # <- here
        optimizer.zero_grad()
        F.mse_loss(model(x), y).backward()
        optimizer.step()


@fault("kept-losses")
def activations_in_a_module_of_its_own():
    class Probed(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second = nn.Linear(4, 8), nn.Linear(8, 3)
            self.seen = deque()

        def forward(self, x):
            hidden = self.first(x).relu()
            self.seen.append(hidden)  # <- here
            return self.second(hidden)

    x, y = blobs(48)
    model = Probed()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for inputs, targets in batches(x, y):
        optimizer.zero_grad()
        F.cross_entropy(model(inputs), targets).backward()
        optimizer.step()
    print(float(torch.stack(list(model.seen)).detach().mean()))


@fault("kept-losses")
def hook_that_keeps_by_name():
    def watch(model):
        kept = {part: [] for part in ("0", "1")}

        def keep(name, module, given, out):
            kept[name].append(out)  # <- here

        for name in kept:
            model.get_submodule(name).register_forward_hook(partial(keep, name))
        return model

    x, y = blobs(48)
    model = watch(mlp())
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for inputs, targets in batches(x, y):
        loss = F.cross_entropy(model(inputs), targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


@fault("kept-losses")
def history_in_a_dataclass_of_another():
    @dataclass
    class History:
        features: tuple = ()

    @dataclass
    class State:
        history: History = field(default_factory=History)

    def one_step(state, inputs, targets):
        features = body(inputs).tanh()
        optimizer.zero_grad()
        F.mse_loss(head(features), targets).backward()
        optimizer.step()
        state.history.features = (*state.history.features, features)  # <- here

    body, head, state = nn.Linear(4, 6), nn.Linear(6, 1), State()
    optimizer = torch.optim.SGD([*body.parameters(), *head.parameters()], lr=0.05)
    for inputs, targets in batches(*lines(48)):
        one_step(state, inputs, targets)
    print(len(state.history.features))


@fault("data-drifts")
def arrays_scaled_where_they_are_stored():
    class Arrays(Dataset):
        def __init__(self, count=24):
            rng = np.random.default_rng(0)
            self.rows = rng.normal(size=(count, 4)).astype("float32")
            self.targets = self.rows.sum(axis=1, keepdims=True)

        def __len__(self):
            return len(self.rows)

        def __getitem__(self, at):
            row = self.rows[at]
            row *= np.random.uniform(0.8, 1.2)  # <- here
            return torch.from_numpy(row), torch.from_numpy(self.targets[at])

    loader = DataLoader(Arrays(), batch_size=8, shuffle=True)
    model = mlp(out=1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for _ in range(5):
        for inputs, targets in loader:
            optimizer.zero_grad()
            F.mse_loss(model(inputs), targets).backward()
            optimizer.step()


@fault("data-drifts")
def noise_added_to_slices_of_the_data():
    x, y = blobs(24)
    model = mlp()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(5):
        for begin in range(0, len(x), 8):
            inputs = x[begin : begin + 8]
            inputs.add_(0.1 * torch.randn_like(inputs))  # <- here
            optimizer.zero_grad()
            F.cross_entropy(model(inputs), y[begin : begin + 8]).backward()
            optimizer.step()


@fault("data-drifts")
def a_transform_that_erases_in_its_argument():
    def erase(image):
        at = int(torch.randint(3, ()))
        image[at : at + 2] = 0.5 + 0.1 * torch.rand(2)  # <- here
        return image

    class Images(Dataset):
        def __init__(self, transform):
            self.images, self.labels = blobs(24)
            self.transform = transform

        def __len__(self):
            return len(self.labels)

        def __getitem__(self, at):
            return self.transform(self.images[at]), self.labels[at]

    sets = {"train": DataLoader(Images(erase), batch_size=6)}
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(5):
        for inputs, targets in sets["train"]:
            optimizer.zero_grad()
            F.cross_entropy(model(inputs), targets).backward()
            optimizer.step()


@fault("update-lost")
def most_of_each_step_rounded_away():
    torch.manual_seed(1)
    x, y = blobs(64, classes=3)
    model = nn.Sequential(nn.Linear(4, 64), nn.SiLU(), nn.Linear(64, 3)).to(torch.bfloat16)  # <- here
    optimizer = torch.optim.SGD(model.parameters(), lr=3e-4, momentum=0.9)
    for _ in range(6):
        for inputs, targets in batches(x, y, 8):
            optimizer.zero_grad()
            F.cross_entropy(model(inputs.bfloat16()).float(), targets).backward()
            optimizer.step()


@fault("pass-in-validation")
def both_phases_make_steps():
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Dropout(0.1), nn.Linear(8, 3))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    data = {"train": batches(*blobs(24)), "val": batches(*blobs(8))}
    for _ in range(4):
        for phase in ("train", "val"):
            model.train(phase == "train")
            for inputs, targets in data[phase]:
                optimizer.zero_grad()
                F.cross_entropy(model(inputs), targets).backward()  # <- here
                optimizer.step()


@fault("pass-in-validation")
def one_epoch_function_for_validation_too():
    train, valid = batches(*lines(24)), batches(*lines(12))

    def one_epoch(model, data, optimizer):
        for inputs, targets in data:
            model.zero_grad()
            loss = F.mse_loss(model(inputs), targets)
            loss.backward()  # <- here
            optimizer.step()

    model = mlp(out=1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for _ in range(3):
        one_epoch(model.train(), train, optimizer)
        one_epoch(model.eval(), valid, optimizer)


@fault("not-in-optimizer")
def a_parameter_cast_after_it_was_made():
    class Features(nn.Module):
        def __init__(self):
            super().__init__()
            self.rates = nn.Parameter(torch.randn(4, 6, dtype=torch.float64)).to(torch.float32)  # <- here
            self.head = nn.Linear(6, 1)

        def forward(self, x):
            return self.head((x @ self.rates).sin())

    x, y = lines(24)
    model = Features()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(6):
        optimizer.zero_grad()
        F.mse_loss(model(x), y).backward()
        optimizer.step()


@fault("not-in-optimizer")
def a_parameter_shaped_after_it_was_made():
    class Prompt(nn.Module):
        def __init__(self, width):
            super().__init__()
            start = nn.Parameter(torch.randn(width))
            self.added = start.view(1, -1)  # <- here

        def forward(self, x):
            return x + self.added

    x, y = blobs(24)
    model = nn.Sequential(Prompt(4), mlp())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for inputs, targets in batches(x, y):
        optimizer.zero_grad()
        F.cross_entropy(model(inputs), targets).backward()
        optimizer.step()


@fault("not-in-optimizer")
def centres_of_a_loss_that_are_no_parameter():
    class Centres(nn.Module):
        def __init__(self):
            super().__init__()
            self.centres = torch.randn(3, 4, requires_grad=True)  # <- here

        def forward(self, points, labels):
            return (points - self.centres[labels]).pow(2).sum(1).mean()

    x, y = blobs(24)
    model, measure = nn.Linear(4, 4), Centres()
    optimizer = torch.optim.SGD([*model.parameters(), *measure.parameters()], lr=0.1)
    for inputs, targets in batches(x, y):
        optimizer.zero_grad()
        measure(model(inputs), targets).backward()
        optimizer.step()


@fault("state-is-alias")
def mean_weights_kept_by_reference():
    x, y = lines(24)
    model, smooth = mlp(out=1), mlp(out=1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    mean = {name: value for name, value in model.state_dict().items()}  # <- here
    for _ in range(6):
        optimizer.zero_grad()
        F.mse_loss(model(x), y).backward()
        optimizer.step()
        with torch.no_grad():
            for name, value in model.state_dict().items():
                mean[name].copy_(0.9 * mean[name] + 0.1 * value)
    smooth.load_state_dict(mean)


@fault("no-effect")
def a_hook_that_returns_nothing():
    def limiting(limit):
        def hook(gradient):
            gradient.clamp(-limit, limit)  # <- here

        return hook

    x, y = lines(24)
    model = mlp(out=1)
    for parameter in model.parameters():
        parameter.register_hook(limiting(0.05))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for _ in range(6):
        optimizer.zero_grad()
        F.mse_loss(model(x), y).backward()
        optimizer.step()


@fault("data-drifts")
def noise_that_stays_in_the_stored_rows():
    def shaken(rows):
        rows += 0.1 * torch.randn_like(rows)  # <- here
        return rows

    class Loader:
        def __init__(self, x, y):
            self.x, self.y = x, y

        def __iter__(self):
            for start in range(0, len(self.x), 8):
                yield self.x[start : start + 8], self.y[start : start + 8]

    loader = Loader(*blobs(24))
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for _ in range(5):
        for inputs, targets in loader:
            inputs = shaken(inputs)
            optimizer.zero_grad()
            F.cross_entropy(model(inputs), targets).backward()
            optimizer.step()


class Measured(Dataset):
    """Rows with a number for each, and what is made of a row."""

    def __init__(self, *changes):
        self.rows, self.numbers = 3 + 2 * torch.randn(24, 4), torch.randn(24, 1)
        self.changes = changes

    def __len__(self):
        return len(self.rows)


def _read(data, epochs=6):
    model = mlp(out=1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for _ in range(epochs):
        for row, number in DataLoader(data, batch_size=8, shuffle=True):
            optimizer.zero_grad()
            F.mse_loss(model(row), number).backward()
            optimizer.step()


@fault("data-drifts")
def a_callable_thing_that_scales_the_row_it_is_given():
    class Shrink:
        def __init__(self, by):
            self.by = by

        def __call__(self, values):
            values.div_(self.by)  # <- here
            return values

    class Shrunk(Measured):
        def __getitem__(self, at):
            row = self.rows[at]
            for change in self.changes:
                row = change(row)
            return row, self.numbers[at]

    _read(Shrunk(Shrink(1.5)))


@fault("data-drifts")
def a_module_as_a_change_of_rows():
    class Centre(nn.Module):
        def forward(self, values):
            values -= 3.0  # <- here
            return values

    class Centred(Measured):
        def __init__(self):
            super().__init__()
            self.change = Centre()

        def __getitem__(self, at):
            return self.change(self.rows[at]), self.numbers[at]

    _read(Centred())
