"""What is measured of a model in a wrong way, on the wrong data, or kept and forgotten."""

import copy
import random

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, Dataset, TensorDataset

from tests.audit.parts import binary, blobs, epoch_of, mlp
from tests.audit.registry import fault


@fault("bound-misplaced")
def scores_above_a_half():
    x, y = binary()
    model, criterion = mlp(out=1), nn.BCEWithLogitsLoss()
    for _ in range(3):
        epoch_of(model, criterion, x[:32], y[:32])
        with torch.no_grad():
            scores = model(x[32:])
            predicted = (scores > 0.5).float()  # <- here
            print((predicted == y[32:]).float().mean().item())


@fault("bound-misplaced")
def scores_rounded_for_several_labels():
    x, y = binary(3)
    model = mlp(out=3)

    def evaluate(model, x, y):
        with torch.no_grad():
            predicted = model(x).round()  # <- here
        return (predicted == y).all(dim=1).float().mean().item()

    for _ in range(3):
        epoch_of(model, F.binary_cross_entropy_with_logits, x[:32], y[:32])
        print(evaluate(model, x[32:], y[32:]))


@fault("bound-misplaced")
def probabilities_above_zero():
    x, y = binary()
    model = nn.Sequential(mlp(out=1), nn.Sigmoid())
    for _ in range(3):
        epoch_of(model, F.binary_cross_entropy, x[:32], y[:32])
        with torch.no_grad():
            share = (model(x[32:]) > 0).float().mean()  # <- here
            print(share.item())


@fault("bound-misplaced")
def a_threshold_as_a_parameter():
    x, y = binary(2)
    model, criterion = mlp(out=2), nn.BCEWithLogitsLoss()

    def hits(outputs, y, threshold=0.5):
        return (torch.ge(outputs, threshold).float() == y).float().mean().item()  # <- here

    for _ in range(3):
        epoch_of(model, criterion, x[:32], y[:32])
        with torch.no_grad():
            print(hits(model(x[32:]), y[32:]))


@fault("bound-misplaced")
def scores_kept_in_a_list():
    x, y = binary()
    model = mlp(out=1)
    for _ in range(3):
        epoch_of(model, F.binary_cross_entropy_with_logits, x[:32], y[:32])
        outputs = []
        with torch.no_grad():
            for rows in torch.arange(32, 48).split(8):
                outputs.append(model(x[rows]))
        predicted = torch.cat(outputs) > 0.5  # <- here
        print((predicted.float() == y[32:]).float().mean().item())


@fault("class-axis")
def the_largest_of_each_column():
    x, y = blobs(48, classes=4)
    model = mlp(out=4)
    for _ in range(3):
        epoch_of(model, F.cross_entropy, x[:32], y[:32])
        with torch.no_grad():
            for rows in torch.arange(32, 48).split(4):
                print((model(x[rows]).argmax(0) == y[rows]).sum().item())  # <- here


@fault("class-axis")
def one_class_for_a_batch():
    x, y = blobs(48)
    model, criterion = mlp(), nn.CrossEntropyLoss()

    def accuracy(scores, y):
        predicted = torch.argmax(scores)  # <- here
        return (predicted == y).float().mean().item()

    for _ in range(3):
        epoch_of(model, criterion, x[:32], y[:32])
        with torch.no_grad():
            print(accuracy(model(x[32:]), y[32:]))


@fault("metric-miscounted")
def hits_of_the_last_batch():
    x, y = blobs(48)
    model = mlp()
    held_out = list(zip(x[32:].split(4), y[32:].split(4), strict=True))
    for _ in range(3):
        epoch_of(model, F.cross_entropy, x[:32], y[:32])
        correct, total = 0, 0
        with torch.no_grad():
            for inputs, targets in held_out:
                correct = (model(inputs).argmax(1) == targets).sum().item()  # <- here
                total += len(targets)
        print(correct / total)


@fault("metric-miscounted")
def hits_by_the_number_of_batches():
    x, y = blobs(48)
    model = mlp()
    loader = DataLoader(TensorDataset(x[32:], y[32:]), batch_size=5)
    for _ in range(3):
        epoch_of(model, F.cross_entropy, x[:32], y[:32])
        correct = 0
        with torch.no_grad():
            for inputs, targets in loader:
                correct += (model(inputs).argmax(1) == targets).sum().item()
        print(100 * correct / len(loader))  # <- here


@fault("metric-miscounted")
def the_loss_of_the_last_batch():
    x, y = blobs(48)
    model, criterion = mlp(), nn.CrossEntropyLoss()
    loader = DataLoader(TensorDataset(x[32:], y[32:]), batch_size=5)

    def validate():
        loss = 0.0
        with torch.no_grad():
            for inputs, targets in loader:
                loss = criterion(model(inputs), targets).item()  # <- here
        return loss / len(loader)

    for _ in range(3):
        epoch_of(model, criterion, x[:32], y[:32])
        print(validate())


@fault("validated-on-training")
def an_argument_that_nobody_reads():
    x, y = blobs(48)
    train_loader = DataLoader(TensorDataset(x[:32], y[:32]), batch_size=8)
    val_loader = DataLoader(TensorDataset(x[32:], y[32:]), batch_size=8)
    model = mlp()

    def evaluated(model, loader):
        hits = 0
        with torch.no_grad():
            for inputs, targets in train_loader:  # <- here
                hits += (model(inputs).argmax(1) == targets).sum().item()
        return hits

    for _ in range(3):
        epoch_of(model, F.cross_entropy, x[:32], y[:32])
        print(evaluated(model, val_loader))


@fault("validated-on-training")
def the_training_rows_once_more():
    x, y = blobs(48)
    x_train, y_train = x[:32], y[:32]
    model = mlp()

    def accuracy(model, x, y):
        with torch.no_grad():
            return (model(x).argmax(1) == y).float().mean().item()

    for _ in range(3):
        epoch_of(model, F.cross_entropy, x_train, y_train)
        val_accuracy = accuracy(model, x_train, y_train)  # <- here
        print(val_accuracy)


@fault("validated-on-training")
def a_loader_of_the_wrong_set():
    x, y = blobs(48)
    train_set = TensorDataset(x[:32], y[:32])
    test_loader = DataLoader(train_set, batch_size=8)  # <- here
    model = mlp()
    for _ in range(3):
        epoch_of(model, F.cross_entropy, x[:32], y[:32])
        with torch.no_grad():
            print(sum((model(a).argmax(1) == b).sum().item() for a, b in test_loader))


class _Noisy(Dataset):
    def __init__(self, x, y, augment=False, transform=None):
        self.x, self.y, self.augment, self.transform = x, y, augment, transform

    def __len__(self):
        return len(self.x)

    def __getitem__(self, row):
        x = self.x[row]
        if self.augment:
            x = x + 0.1 * torch.randn_like(x)
        if self.transform is not None:
            x = self.transform(x)
        return x, self.y[row]


@fault("augmented-evaluation")
def noise_for_the_validation():
    x, y = blobs(48)
    train_set = _Noisy(x[:32], y[:32], augment=True)
    val_set = _Noisy(x[32:], y[32:], augment=True)  # <- here
    model = mlp()
    for _ in range(3):
        for inputs, targets in DataLoader(train_set, batch_size=8):
            epoch_of(model, F.cross_entropy, inputs, targets)
        with torch.no_grad():
            print(sum((model(a).argmax(1) == b).sum().item() for a, b in DataLoader(val_set, 8)))


@fault("augmented-evaluation")
def the_transformation_of_the_training():
    x, y = blobs(48)

    def train_tf(x):
        return x * random.choice((1.0, 1.1)) + 0.01 * torch.randn_like(x)

    train_set = _Noisy(x[:32], y[:32], transform=train_tf)
    test_set = _Noisy(x[32:], y[32:], transform=train_tf)  # <- here
    model = mlp()
    for _ in range(3):
        for inputs, targets in DataLoader(train_set, batch_size=8):
            epoch_of(model, F.cross_entropy, inputs, targets)
        with torch.no_grad():
            print(sum((model(a).argmax(1) == b).sum().item() for a, b in DataLoader(test_set, 8)))


@fault("augmented-evaluation")
def a_set_made_within_its_loader():
    x, y = blobs(48)
    train_loader = DataLoader(_Noisy(x[:32], y[:32], augment=True), batch_size=8, shuffle=True)
    val_loader = DataLoader(_Noisy(x[32:], y[32:], augment=True), batch_size=8)  # <- here
    model = mlp()
    for _ in range(3):
        for inputs, targets in train_loader:
            epoch_of(model, F.cross_entropy, inputs, targets)
        with torch.no_grad():
            print(sum((model(a).argmax(1) == b).sum().item() for a, b in val_loader))


def _asked(model, x, y):
    with torch.no_grad():
        return F.cross_entropy(model(x), y).item()


@fault("best-forgotten")
def the_best_value_stays_infinite():
    x, y = blobs(48)
    model = mlp()
    best_loss, best_state = float("inf"), None
    for _ in range(4):
        epoch_of(model, F.cross_entropy, x[:32], y[:32])
        loss = _asked(model, x[32:], y[32:])
        if loss < best_loss:  # <- here
            best_state = copy.deepcopy(model.state_dict())
    model.load_state_dict(best_state)


@fault("best-forgotten")
def patience_that_is_never_restored():
    x, y = blobs(48)
    model = mlp()
    best, waited = float("inf"), 0
    for _ in range(4):
        epoch_of(model, F.cross_entropy, x[:32], y[:32])
        loss = _asked(model, x[32:], y[32:])
        if loss < best:
            best = loss
        else:
            waited += 1  # <- here
        if waited > 3:
            break


@fault("best-forgotten")
def the_best_copy_is_never_used():
    x, y = blobs(48)
    model = mlp()
    best_accuracy = 0.0
    for _ in range(4):
        epoch_of(model, F.cross_entropy, x[:32], y[:32])
        with torch.no_grad():
            accuracy = (model(x[32:40]).argmax(1) == y[32:40]).float().mean().item()
        if accuracy > best_accuracy:
            best_accuracy = accuracy
            best_copy_of_all = copy.deepcopy(model)  # noqa: F841  # <- here
    print(_asked(model, x[40:], y[40:]))


@fault("best-forgotten")
def a_stopper_that_counts_all():
    x, y = blobs(48)
    model = mlp()

    class Stopper:
        def __init__(self, patience):
            self.patience, self.bad_epochs, self.best, self.stop = patience, 0, float("inf"), False

        def update(self, loss):
            if loss < self.best:
                self.best = loss
            else:
                self.bad_epochs += 1  # <- here
                if self.bad_epochs >= self.patience:
                    self.stop = True

    stopper = Stopper(3)
    for _ in range(4):
        epoch_of(model, F.cross_entropy, x[:32], y[:32])
        stopper.update(_asked(model, x[32:], y[32:]))
        if stopper.stop:
            break
