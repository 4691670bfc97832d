"""Right loops that look as if state were lost, or stored values drifted."""

import copy
from collections import deque

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, Dataset

from tests.audit.parts import batches, blobs, lines, mlp
from tests.audit.registry import right


@right
def plain_descent_made_anew_each_step():
    x, y = blobs(32)
    model = mlp()
    for inputs, targets in batches(x, y):
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        optimizer.zero_grad()
        F.cross_entropy(model(inputs), targets).backward()
        optimizer.step()


@right
def adam_made_anew_each_phase():
    x, y = blobs(24)
    model = mlp()
    for rate in (0.02, 0.01, 0.005, 0.002, 0.001):
        optimizer = torch.optim.Adam(model.parameters(), lr=rate)
        for inputs, targets in batches(x, y):
            optimizer.zero_grad()
            F.cross_entropy(model(inputs), targets).backward()
            optimizer.step()


@right
def one_step_from_the_same_start_for_each_task():
    model = mlp(out=1)
    start = copy.deepcopy(model.state_dict())
    for _ in range(8):
        x, y = lines(8)
        model.load_state_dict(start)
        optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
        optimizer.zero_grad()
        F.mse_loss(model(x), y).backward()
        optimizer.step()


@right
def state_of_the_optimizer_handed_on():
    x, y = lines(40)
    model, kept = nn.Linear(4, 1), None
    for inputs, targets in batches(x, y):
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
        if kept is not None:
            optimizer.load_state_dict(kept)
        optimizer.zero_grad()
        F.mse_loss(model(inputs), targets).backward()
        optimizer.step()
        kept = optimizer.state_dict()


@right
def one_optimizer_for_each_layer():
    x, y = blobs(24)
    model = mlp()
    optimizers = [torch.optim.Adam(part.parameters(), lr=0.01) for part in model if list(part.parameters())]
    for inputs, targets in batches(x, y):
        for optimizer in optimizers:
            optimizer.zero_grad()
        F.cross_entropy(model(inputs), targets).backward()
        for optimizer in optimizers:
            optimizer.step()


@right
def activations_kept_without_graphs():
    class Recorder:
        def __init__(self):
            self.store, self.recent = {}, deque(maxlen=4)

        def __call__(self, module, given, out):
            self.store.setdefault(type(module).__name__, []).append(out.detach())
            self.recent.append(out.detach())

    x, y = blobs(64)
    model, recorder = mlp(), Recorder()
    model[1].register_forward_hook(recorder)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for inputs, targets in batches(x, y):
        optimizer.zero_grad()
        F.cross_entropy(model(inputs), targets).backward()
        optimizer.step()
    print(float(torch.stack(recorder.store["Tanh"]).mean()))


@right
def activations_replaced_in_each_step():
    class Penalized(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second, self.kept = nn.Linear(4, 8), nn.Linear(8, 3), {}

        def forward(self, x):
            self.kept["hidden"] = [self.first(x).relu()]
            self.kept["out"] = [self.second(self.kept["hidden"][0])]
            return self.kept["out"][0]

    x, y = blobs(64)
    model = Penalized()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for inputs, targets in batches(x, y):
        optimizer.zero_grad()
        penalty = sum(part.square().mean() for parts in model.kept.values() for part in parts) if model.kept else 0
        loss = F.cross_entropy(model(inputs), targets)
        loss.backward()
        print(float(penalty))
        optimizer.step()


@right
def one_graph_of_the_weights_for_all_steps():
    basis = torch.randn(3, 4)
    mixed = (basis.clone().requires_grad_() * 2).tanh()
    head = nn.Linear(4, 1)
    optimizer = torch.optim.SGD(head.parameters(), lr=0.05)
    for _ in range(10):
        optimizer.zero_grad()
        (head(mixed).square().mean() + mixed.square().sum()).backward(retain_graph=True)
        optimizer.step()


@right
def noise_on_copies_of_rows():
    class Noisy(Dataset):
        def __init__(self):
            self.rows, self.labels = blobs(24)
            self.read = torch.zeros(24)

        def __len__(self):
            return len(self.labels)

        def __getitem__(self, at):
            row = self.rows[at].clone()
            row += 0.1 * torch.randn(row.shape)
            self.read[at] += 1
            return row, self.labels[at]

    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(5):
        for inputs, targets in DataLoader(Noisy(), batch_size=6, shuffle=True):
            inputs += 0.1 * torch.randn_like(inputs)
            optimizer.zero_grad()
            F.cross_entropy(model(inputs), targets).backward()
            optimizer.step()


@right
def batches_by_index_changed_in_place():
    x, y = blobs(24)
    model = mlp()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(5):
        for rows in torch.randperm(len(x)).split(6):
            inputs = x[rows]
            inputs *= 1 + 0.1 * torch.randn(len(rows), 1)
            optimizer.zero_grad()
            F.cross_entropy(model(inputs), y[rows]).backward()
            optimizer.step()


@right
def rows_clipped_once_where_they_are_stored():
    x, y = lines(24)
    model = mlp(out=1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for _ in range(5):
        for inputs, targets in batches(x, y, 6):
            inputs.clamp_(-1.0, 1.0)
            optimizer.zero_grad()
            F.mse_loss(model(inputs), targets).backward()
            optimizer.step()


@right
def phases_of_which_one_makes_steps():
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Dropout(0.1), nn.Linear(8, 3))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    data = {"train": batches(*blobs(24)), "val": batches(*blobs(8))}
    for _ in range(4):
        for phase in ("train", "val"):
            model.train(phase == "train")
            for inputs, targets in data[phase]:
                optimizer.zero_grad()
                with torch.set_grad_enabled(phase == "train"):
                    loss = F.cross_entropy(model(inputs), targets)
                if phase == "train":
                    loss.backward()
                    optimizer.step()


@right
def a_last_phase_in_evaluation_mode():
    x, y = blobs(32)
    model = mlp()
    for rate in (0.05, 0.01):
        optimizer = torch.optim.SGD(model.parameters(), lr=rate)
        model.train(rate > 0.02)
        for inputs, targets in batches(x, y):
            optimizer.zero_grad()
            F.cross_entropy(model(inputs), targets).backward()
            optimizer.step()


@right
def bfloat16_at_a_rate_that_moves_it():
    x, y = blobs(64)
    model = nn.Sequential(nn.Linear(4, 64), nn.SiLU(), nn.Linear(64, 3)).to(torch.bfloat16)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    for _ in range(3):
        for inputs, targets in batches(x, y, 8):
            optimizer.zero_grad()
            F.cross_entropy(model(inputs.bfloat16()).float(), targets).backward()
            optimizer.step()


@right
def a_parameter_cast_before_it_is_wrapped():
    class Features(nn.Module):
        def __init__(self):
            super().__init__()
            self.rates = nn.Parameter(torch.randn(4, 6, dtype=torch.float64).float() * 0.5)
            self.head = nn.Linear(6, 1)

        def forward(self, x):
            self.scaled = self.rates * 0.1
            return self.head((x @ self.scaled).sin())

    x, y = lines(24)
    model = Features()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(6):
        optimizer.zero_grad()
        F.mse_loss(model(x), y).backward()
        optimizer.step()


@right
def a_fixed_table_beside_a_part_that_learns():
    class Table(nn.Module):
        def __init__(self):
            super().__init__()
            self.table = torch.randn(4, 6).double().float() * 0.1
            self.gain = nn.Parameter(torch.ones(6))

        def forward(self, x):
            return ((x @ self.table) * self.gain).sum(dim=1, keepdim=True)

    x, y = lines(24)
    model = Table()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(6):
        optimizer.zero_grad()
        F.mse_loss(model(x), y).backward()
        optimizer.step()


@right
def callable_things_that_change_a_copy():
    class Scale:
        def __call__(self, values):
            values = values.clone()
            values.div_(1.5)
            return values

    class Centre:
        def __call__(self, values):
            return values - 3.0

    class Changed(Dataset):
        def __init__(self):
            self.rows, self.numbers = 3 + 2 * torch.randn(24, 4), torch.randn(24, 1)
            self.changes, self.last = [Scale(), Centre()], Centre()

        def __len__(self):
            return len(self.rows)

        def __getitem__(self, at):
            row = self.rows[at]
            for change in self.changes:
                row = change(row)
            return self.last(row), self.numbers[at]

    model = mlp(out=1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for _ in range(6):
        for row, number in DataLoader(Changed(), batch_size=8, shuffle=True):
            optimizer.zero_grad()
            F.mse_loss(model(row), number).backward()
            optimizer.step()


@right
def a_search_along_a_line_with_a_loss_that_is_a_module():
    x, y = lines(32)
    weight, shift = torch.zeros(4, 1, requires_grad=True), torch.zeros(1, requires_grad=True)
    criterion = nn.MSELoss()
    optimizer = torch.optim.LBFGS([weight, shift], max_iter=4, line_search_fn="strong_wolfe")

    def closure():
        optimizer.zero_grad()
        loss = criterion(x @ weight + shift, y) + 1e-3 * weight.square().sum()
        loss.backward()
        return loss

    for _ in range(5):
        optimizer.step(closure)
