"""Evaluations that look like mistaken ones and are not."""

import copy

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, Dataset, Subset, TensorDataset

from tests.audit.parts import binary, blobs, epoch_of, mlp
from tests.audit.registry import right


@right
def probabilities_above_a_half():
    x, y = binary()
    model, criterion = mlp(out=1), nn.BCEWithLogitsLoss()
    for _ in range(3):
        epoch_of(model, criterion, x[:32], y[:32])
        with torch.no_grad():
            probabilities = torch.sigmoid(model(x[32:]))
            print(((probabilities > 0.5).float() == y[32:]).float().mean().item())
            print(((model(x[32:]) > 0).float() == y[32:]).float().mean().item())
            print((probabilities.round() == y[32:]).float().mean().item())


@right
def a_regression_on_zero_and_one():
    x, y = binary()
    model = mlp(out=1)
    for _ in range(3):
        epoch_of(model, F.mse_loss, x[:32], y[:32])
        with torch.no_grad():
            print(((model(x[32:]) > 0.5).float() == y[32:]).float().mean().item())


@right
def a_model_that_ends_in_a_sigmoid():
    x, y = binary(2)
    model = nn.Sequential(mlp(out=2), nn.Sigmoid())

    def f1(outputs, y, threshold=0.5):
        predicted = (outputs > threshold).float()
        return (2 * (predicted * y).sum() / (predicted.sum() + y.sum()).clamp(min=1)).item()

    for _ in range(3):
        epoch_of(model, F.binary_cross_entropy, x[:32], y[:32])
        with torch.no_grad():
            print(f1(model(x[32:]), y[32:]))


@right
def an_answer_for_a_single_row():
    x, y = blobs(48)
    model = mlp()
    for _ in range(3):
        epoch_of(model, F.cross_entropy, x[:32], y[:32])
        with torch.no_grad():
            print(sum(model(row).argmax(0).item() == target.item() for row, target in zip(x[32:], y[32:], strict=True)))
            print(model(x[32:33]).argmax().item() == y[32].item())
            print(model(x[32:]).max(dim=1).values.argmax().item())  # the surest row


@right
def hits_and_losses_counted_over_all():
    x, y = blobs(48)
    model, criterion = mlp(), nn.CrossEntropyLoss()
    loader = DataLoader(TensorDataset(x[32:], y[32:]), batch_size=5)
    for _ in range(3):
        epoch_of(model, criterion, x[:32], y[:32])
        correct, total, loss, accuracy = 0, 0, 0.0, 0.0
        with torch.no_grad():
            for inputs, targets in loader:
                scores = model(inputs)
                predicted = scores.argmax(1)
                correct += (predicted == targets).sum().item()
                accuracy += (predicted == targets).float().mean().item()
                loss += criterion(scores, targets).item() * len(inputs)
                total += len(targets)
        print(correct / total, correct / len(loader.dataset), accuracy / len(loader), loss / len(loader.dataset))


@right
def hits_of_single_rows():
    x, y = blobs(40)
    model = mlp()
    loader = DataLoader(TensorDataset(x[32:], y[32:]), batch_size=1)
    for _ in range(3):
        epoch_of(model, F.cross_entropy, x[:32], y[:32])
        correct = 0
        with torch.no_grad():
            for inputs, targets in loader:
                correct += (model(inputs).argmax(1) == targets).sum().item()
        print(correct / len(loader))


@right
def the_last_loss_is_shown():
    x, y = blobs(32)
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for _ in range(3):
        count = 0
        for inputs, targets in zip(x.split(8), y.split(8), strict=True):
            loss = F.cross_entropy(model(inputs), targets)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            count += len(inputs)
        print(loss.item(), count)


@right
def both_parts_measured_and_told_apart():
    x, y = blobs(48)
    x_train, y_train, x_val, y_val = x[:32], y[:32], x[32:], y[32:]
    train_loader = DataLoader(TensorDataset(x_train, y_train), batch_size=8)
    val_loader = DataLoader(TensorDataset(x_val, y_val), batch_size=8)
    model = mlp()

    def evaluate(model, loader):
        hits = 0
        with torch.no_grad():
            for inputs, targets in loader:
                hits += (model(inputs).argmax(1) == targets).sum().item()
        return hits / len(loader.dataset)

    def train_and_validate(model, train_loader, val_loader):
        for inputs, targets in train_loader:
            epoch_of(model, F.cross_entropy, inputs, targets)
        return evaluate(model, val_loader)

    for _ in range(3):
        val_accuracy = train_and_validate(model, train_loader, val_loader)
        train_accuracy = evaluate(model, train_loader)
        gap = train_accuracy - evaluate(model, val_loader)
        print(val_accuracy, train_accuracy, gap)


@right
def a_part_of_the_training_for_validation():
    x_train, y_train = blobs(48)
    order = torch.randperm(48)
    train_rows, val_rows = order[:32], order[32:]
    x_val, y_val = x_train[val_rows], y_train[val_rows]
    model = mlp()
    for _ in range(3):
        epoch_of(model, F.cross_entropy, x_train[train_rows], y_train[train_rows])
        with torch.no_grad():
            print(F.cross_entropy(model(x_val), y_val).item())


@right
def patience_in_a_row_and_the_best_put_back():
    x, y = blobs(48)
    model = mlp()
    best, waited, best_state = float("inf"), 0, None
    for epoch in range(4):
        epoch_of(model, F.cross_entropy, x[:32], y[:32])
        with torch.no_grad():
            loss = F.cross_entropy(model(x[32:]), y[32:]).item()
        if loss < best - 1e-4:
            best, waited = loss, 0
            best_state, best_epoch = copy.deepcopy(model.state_dict()), epoch
        else:
            waited += 1
            if waited >= 3:
                break
    model.load_state_dict(best_state)
    print(best_epoch)


@right
def the_best_of_two_by_min():
    x, y = blobs(48)
    model = mlp()
    best_loss, kept = float("inf"), []
    for _ in range(4):
        epoch_of(model, F.cross_entropy, x[:32], y[:32])
        with torch.no_grad():
            loss = F.cross_entropy(model(x[32:]), y[32:]).item()
        if loss < best_loss:
            kept.append({name: value.clone() for name, value in model.state_dict().items()})
        best_loss = min(best_loss, loss)
    model.load_state_dict(kept[-1])


@right
def a_stopper_that_begins_anew():
    x, y = blobs(48)
    model = mlp()

    class Stopper:
        def __init__(self, patience):
            self.patience, self.best, self.stop = patience, None, False
            self.reset()

        def reset(self):
            self.counter = 0

        def update(self, loss):
            if self.best is None or loss < self.best:
                self.best = loss
                self.reset()
            else:
                self.counter += 1
                self.stop = self.counter >= self.patience

    stopper = Stopper(3)
    for _ in range(4):
        epoch_of(model, F.cross_entropy, x[:32], y[:32])
        with torch.no_grad():
            stopper.update(F.cross_entropy(model(x[32:]), y[32:]).item())
        if stopper.stop:
            break


@right
def a_loss_below_a_half_ends_the_training():
    x, y = binary()
    model, criterion = mlp(out=1), nn.BCEWithLogitsLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for _ in range(6):
        loss = criterion(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        with torch.no_grad():
            accuracy = ((model(x) > 0).float() == y).float().mean().item()
        if loss.item() < 0.5 or accuracy > 0.5:
            print(loss < 0.5, round(accuracy, 2))


@right
def a_best_value_that_the_caller_keeps():
    x, y = blobs(48)
    model = mlp()
    kept = {}

    def measured(best_accuracy):
        with torch.no_grad():
            accuracy = (model(x[32:]).argmax(1) == y[32:]).float().mean().item()
        if accuracy > best_accuracy:
            kept["state"] = copy.deepcopy(model.state_dict())
        return max(accuracy, best_accuracy)

    best_accuracy = 0.0
    for _ in range(4):
        epoch_of(model, F.cross_entropy, x[:32], y[:32])
        best_accuracy = measured(best_accuracy)
    print(best_accuracy, len(kept))


@right
def both_parts_from_the_training_files():
    x, y = blobs(48)

    class Files(Dataset):
        def __init__(self, train=True, transform=None):
            self.train, self.transform = train, transform

        def __len__(self):
            return 48

        def __getitem__(self, row):
            return (x[row] if self.transform is None else self.transform(x[row])), y[row]

    train_set = Subset(Files(train=True, transform=lambda it: it + 0.1 * torch.randn_like(it)), range(32))
    val_set = Subset(Files(train=True), range(32, 48))
    model = mlp()
    for _ in range(3):
        for inputs, targets in DataLoader(train_set, batch_size=8, shuffle=True):
            epoch_of(model, F.cross_entropy, inputs, targets)
        with torch.no_grad():
            print(sum((model(a).argmax(1) == b).sum().item() for a, b in DataLoader(val_set, 8)))
