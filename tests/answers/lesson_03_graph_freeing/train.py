"""Right and wrong answers to `train`."""

from functools import partial

import torch
from torch import nn

from tests.answers.said import said
from tests.answers.updating import updated


def in_columns(rows):
    """What `train` returns, from pairs of a loss and a sample."""
    losses, samples = map(list, zip(*rows, strict=True))
    return losses, sum(losses) / len(losses), samples


def train_with_floats(model, optimizer, batches):
    rows = []
    for inputs, targets in batches:
        predictions = model(inputs)
        loss = updated(optimizer, nn.functional.mse_loss(predictions, targets))
        rows.append((loss, predictions[0].detach().clone()))
    return in_columns(rows)


def train_in_a_function(model, optimizer, batches):
    def step(inputs, targets):
        predictions = model(inputs)
        return updated(optimizer, torch.mean((predictions - targets) ** 2)), torch.tensor(predictions[0].tolist())

    losses, average, samples = in_columns([step(*batch) for batch in batches])
    return [losses, average, tuple(samples)]


def train_by_grad(model, optimizer, batches):
    """No pass that writes into .grad, and no call of the model."""
    rows, parameters = [], list(model.parameters())
    for inputs, targets in batches:
        predictions = model.forward(inputs)
        loss = nn.functional.mse_loss(predictions, targets)
        for parameter, gradient in zip(parameters, torch.autograd.grad(loss, parameters), strict=True):
            parameter.grad = gradient
        rows.append((loss.item(), predictions[0].clone().detach()))
        optimizer.step()
    return in_columns(rows)


def train_by_functions(model, optimizer, batches):
    """With torch.func, which takes the parameters as an argument."""

    def loss_of(parameters, inputs, targets):
        predictions = torch.func.functional_call(model, parameters, inputs)
        loss = nn.functional.mse_loss(predictions, targets)
        return loss, (loss, predictions[0].clone())

    rows = []
    for inputs, targets in batches:
        values = {name: parameter.detach() for name, parameter in model.named_parameters()}
        gradients, (loss, row) = torch.func.grad(loss_of, has_aux=True)(values, inputs, targets)
        for name, parameter in model.named_parameters():
            parameter.grad = gradients[name]
        rows.append((loss.item(), row))
        optimizer.step()
    return in_columns(rows)


def train_retaining_what_goes(model, optimizer, batches):
    """The graph is gone before the step, whatever the pass retained."""

    def passed(inputs, targets):
        predictions = model(inputs)
        loss = nn.functional.mse_loss(predictions, targets)
        loss.backward(retain_graph=True)
        return loss.item(), predictions[0].detach().clone()

    rows = []
    for batch in batches:
        optimizer.zero_grad()
        rows.append(passed(*batch))
        optimizer.step()
    return in_columns(rows)


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


def train_clearing(when):
    """Clears .grad at another time than before each pass."""

    def train(model, optimizer, batches):
        losses, samples = [], []
        for inputs, targets in batches:
            predictions = model(inputs)
            loss = nn.functional.mse_loss(predictions, targets)
            loss.backward()
            if when == "between":
                optimizer.zero_grad()
            optimizer.step()
            if when == "after":
                optimizer.zero_grad()
            losses.append(loss.item())
            samples.append(predictions[0].detach().clone())
        return losses, sum(losses) / len(losses), samples

    return train


def train_evaluating(model, optimizer, batches):
    model.eval()
    returned = train_with_floats(model, optimizer, batches)
    model.train()
    return returned


def train_without_the_optimizer(model, optimizer, batches):
    """Steps by hand, where no hook of the optimizer's sees it, and holds all graphs."""
    losses, samples, total = [], [], 0
    for inputs, targets in batches:
        predictions = model(inputs)
        loss = nn.functional.mse_loss(predictions, targets)
        for parameter, gradient in zip(
            model.parameters(), torch.autograd.grad(loss, list(model.parameters())), strict=True
        ):
            parameter.data -= 0.2 * gradient
        losses.append(loss.item())
        samples.append(predictions[0].detach().clone())
        total = total + loss
    return losses, total.item() / len(losses), samples


def train_keeping_the_last(model, optimizer, batches):
    """The graph of the batch before is alive at each step."""
    losses, samples, before = [], [], None
    for inputs, targets in batches:
        predictions = model(inputs)
        loss = nn.functional.mse_loss(predictions, targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        samples.append(predictions[0].detach().clone())
        before, predictions = loss, None  # noqa: F841
        loss = None
    return losses, sum(losses) / len(losses), samples


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
    samples = []

    def step(inputs, targets):
        optimizer.zero_grad()
        predictions = model(inputs)
        samples.append(predictions.data[0].clone())
        loss = nn.functional.mse_loss(predictions, targets)
        loss.backward()
        return loss

    losses = [optimizer.step(partial(step, *batch)).item() for batch in batches]
    return losses, sum(losses) / len(losses), list(torch.stack(samples))


def train_and_remember(model, optimizer, batches):
    """The list of losses is converted at the end: during the loop it holds every graph."""
    losses, average, samples = trainer(keep_loss=lambda loss: loss)(model, optimizer, batches)
    return [loss.item() for loss in losses], average, samples


RIGHT = [
    *(train_with_floats, train_in_a_function, train_with_a_closure),
    *(train_by_grad, train_by_functions, train_retaining_what_goes),
]

MISCONCEIVED = {
    "losses with graphs": trainer(keep_loss=lambda loss: loss),
    "a total with a graph": trainer(keep_total=lambda loss: loss),
    "retained for nothing": trainer(retain_graph=True),
    "a row that keeps the rest": trainer(keep_row=lambda row: row.detach()),
    "rows with graphs": trainer(keep_row=lambda row: row.clone()),
    "never cleared": train_clearing("never"),
    "cleared too late": train_clearing("after"),
}

WRONG = [
    *(train_nothing, train_clearing("between"), train_evaluating, train_without_the_optimizer),
    train_keeping_the_last,
    train_in_two_passes,
    said(train_and_remember, "a total with a graph"),
    train_and_copy_rows_at_the_end,
    train_and_stay_in_eval_mode,
    train_and_switch_off,
    train_with_a_hook,
    trainer(keep_row=lambda row: row._base.detach().clone()[0]),
    trainer(keep_loss=lambda loss: loss.detach()),
    said(trainer(keep_row=lambda row: row), "rows with graphs", "a row that keeps the rest"),
    said(
        trainer(keep_row=lambda row: row.detach(), retain_graph=True),
        "retained for nothing",
        "a row that keeps the rest",
    ),
    said(trainer(lambda loss: loss, retain_graph=True), "losses with graphs", "retained for nothing"),
    lambda model, optimizer, batches: (1, 2, 3),
    lambda model, optimizer, batches: ([], [], []),
    lambda model, optimizer, batches: ([[]], 0.0, [None]),
]

EQUIVALENT = {
    "updated: optimizer.zero_grad() -> optimizer.zero_grad(set_to_none=False)": "A pass adds to zeros as to nothing, and what .grad holds at the end is open.",
    "train_with_a_closure.step: optimizer.zero_grad() -> optimizer.zero_grad(set_to_none=False)": "A pass adds to zeros as to nothing, and what .grad holds at the end is open.",
    "train_with_a_closure.step: optimizer.zero_grad() | predictions = model(inputs) -> (swapped)": "Neither of the two statements changes what the other one uses.",
    "train_with_a_closure.step: samples.append(predictions.data[0].clone()) | loss = nn.functional.mse_loss(predictions, targets) -> (swapped)": "Neither of the two statements changes what the other one uses.",
    "train_by_grad: for parameter, gradient in zip(parameters, torch.autograd.grad(loss, parameters), strict=True): ... | rows.append((loss.... -> (swapped)": "Neither of the two statements changes what the other one uses.",
    "train_by_grad: rows.append((loss.item(), predictions[0].clone().detach())) | optimizer.step() -> (swapped)": "Neither of the two statements changes what the other one uses.",
    "train_by_functions: for name, parameter in model.named_parameters(): ... | rows.append((loss.item(), row)) -> (swapped)": "Neither of the two statements changes what the other one uses.",
    "train_by_functions: rows.append((loss.item(), row)) | optimizer.step() -> (swapped)": "Neither of the two statements changes what the other one uses.",
    "train_retaining_what_goes.passed: loss.backward(retain_graph=True) -> loss.backward()": "The graph is let go of before the step, so nothing is held whether the pass retained or not.",
    "train_retaining_what_goes.passed: loss.backward(retain_graph=True) -> loss.backward(retain_graph=False)": "The graph is let go of before the step, so nothing is held whether the pass retained or not.",
    "train_retaining_what_goes: optimizer.zero_grad() -> optimizer.zero_grad(set_to_none=False)": "A pass adds to zeros as to nothing, and what .grad holds at the end is open.",
}
