"""Right and wrong answers to `train`."""

import torch
from torch import nn

from tests.answers.said import said


def train_with_floats(model, optimizer, batches):
    losses, samples, total = [], [], 0.0
    for inputs, targets in batches:
        predictions = model(inputs)
        loss = nn.functional.mse_loss(predictions, targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        samples.append(predictions[0].detach().clone())
        total += loss.item()
    return losses, total / len(losses), samples


def train_in_a_function(model, optimizer, batches):
    def step(inputs, targets):
        predictions = model(inputs)
        loss = torch.mean((predictions - targets) ** 2)
        loss.backward()
        optimizer.step()
        model.zero_grad()
        return float(loss), torch.tensor(predictions[0].tolist())

    steps = [step(*batch) for batch in batches]
    losses = [loss for loss, _ in steps]
    return [losses, sum(losses) / len(batches), [sample for _, sample in steps]]


def trainer(keep_loss=float, keep_total=float, keep_row=lambda row: row.detach().clone(), **options):
    """A loop with one thing wrong."""

    def train(model, optimizer, batches):
        losses, samples, total = [], [], 0.0
        for inputs, targets in batches:
            predictions = model(inputs)
            loss = nn.functional.mse_loss(predictions, targets)
            optimizer.zero_grad()
            loss.backward(**options)
            optimizer.step()
            losses.append(keep_loss(loss))
            samples.append(keep_row(predictions[0]))
            total += keep_total(loss)
        return losses, float(total) / len(losses), samples

    return train


def train_nothing(model, optimizer, batches):
    with torch.no_grad():
        losses = [nn.functional.mse_loss(model(inputs), targets).item() for inputs, targets in batches]
        return losses, sum(losses) / len(losses), [model(inputs)[0].clone() for inputs, _ in batches]


def train_in_two_passes(model, optimizer, batches):
    losses, average, samples = [], 0.0, []
    for inputs, targets in batches:
        for _ in range(2):
            predictions = model(inputs)
            loss = nn.functional.mse_loss(predictions, targets)
            optimizer.zero_grad()
            loss.backward()
        optimizer.step()
        losses.append(loss.item())
        samples.append(predictions[0].detach().clone())
        average += loss.item() / len(batches)
    return losses, average, samples


def train_and_copy_rows_at_the_end(model, optimizer, batches):
    """During the loop the rows are views, and keep all predictions."""
    losses, average, samples = trainer(keep_row=lambda row: row.detach())(model, optimizer, batches)
    return losses, average, [sample.clone() for sample in samples]


def train_and_stay_in_eval_mode(model, optimizer, batches):
    returned = train_with_floats(model, optimizer, batches)
    model.eval()
    return returned


def train_and_switch_off(model, optimizer, batches):
    returned = train_with_floats(model, optimizer, batches)
    model.requires_grad_(False)
    return returned


def train_with_a_hook(model, optimizer, batches):
    """A hook that stays on the model keeps all predictions."""
    kept = []
    model.register_forward_hook(lambda module, given, result: kept.append(result.detach()))
    return train_with_floats(model, optimizer, batches)


def train_with_a_closure(model, optimizer, batches):
    losses, samples = [], []
    for inputs, targets in batches:

        def step(inputs=inputs, targets=targets):
            optimizer.zero_grad()
            predictions = model(inputs)
            loss = nn.functional.mse_loss(predictions, targets)
            loss.backward()
            samples.append(predictions.data[0].clone())
            return loss

        losses.append(optimizer.step(step).item())
    return losses, sum(losses) / len(losses), list(torch.stack(samples))


def train_and_remember(model, optimizer, batches):
    """The list of losses is converted at the end: during the loop it holds every graph."""
    losses, average, samples = trainer(keep_loss=lambda loss: loss)(model, optimizer, batches)
    return [loss.item() for loss in losses], average, samples


RIGHT = [train_with_floats, train_in_a_function, train_with_a_closure]

MISCONCEIVED = {
    "losses with graphs": trainer(keep_loss=lambda loss: loss),
    "a total with a graph": trainer(keep_total=lambda loss: loss),
    "retained for nothing": trainer(retain_graph=True),
    "a row that keeps the rest": trainer(keep_row=lambda row: row.detach()),
}

WRONG = [
    train_nothing,
    train_in_two_passes,
    said(train_and_remember, "a total with a graph"),
    train_and_copy_rows_at_the_end,
    train_and_stay_in_eval_mode,
    train_and_switch_off,
    train_with_a_hook,
    trainer(keep_row=lambda row: row._base.detach().clone()[0]),
    trainer(keep_loss=lambda loss: loss.detach()),
    trainer(keep_row=lambda row: row),
    lambda model, optimizer, batches: (1, 2, 3),
    lambda model, optimizer, batches: ([], [], []),
    lambda model, optimizer, batches: ([[]], 0.0, [None]),
]
