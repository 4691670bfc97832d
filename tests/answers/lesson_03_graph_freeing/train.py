"""Right and wrong answers to `train`."""

import torch
from torch import nn

from tests.answers.leaving import clipping, leaving
from tests.answers.lesson_03_graph_freeing.training import (
    in_columns,
    train_by_functions,
    train_by_grad,
    train_in_a_function,
    train_retaining_what_goes,
    train_with_a_closure,
    train_with_floats,
)
from tests.answers.near import clearing_near
from tests.answers.said import said
from tests.answers.updating import updated


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
            if when == "zeros":
                optimizer.zero_grad(set_to_none=False)
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
            model.parameters(), torch.autograd.grad(loss, list(model.parameters()), allow_unused=True), strict=True
        ):
            if gradient is not None:
                parameter.data -= 0.2 * (gradient + 0.1 * parameter.data)
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


def train_with_a_tensor_of_totals(model, optimizer, batches):
    """Adds the losses up in float32, as the given loop does."""
    rows, total = [], torch.zeros(())
    for inputs, targets in batches:
        predictions = model(inputs)
        loss = nn.functional.mse_loss(predictions, targets)
        rows.append((updated(optimizer, loss), predictions[0].detach().clone()))
        total += loss.detach()
    losses, _, samples = in_columns(rows)
    return losses, (total / len(losses)).item(), samples


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


def train_and_remember(model, optimizer, batches):
    """The list of losses is converted at the end: during the loop it holds every graph."""
    losses, average, samples = trainer(keep_loss=lambda loss: loss)(model, optimizer, batches)
    return [loss.item() for loss in losses], average, samples


def train_from_two_samples_on(model, optimizer, batches):
    """Takes a single sample for too few to learn from."""
    return train_with_floats(model, optimizer, [batch for batch in batches if len(batch[0]) > 1])


def train_squeezing(model, optimizer, batches):
    """The row of a single sample has no place for the samples."""
    rows = []
    for inputs, targets in batches:
        predictions = model(inputs).squeeze()
        loss = updated(optimizer, nn.functional.mse_loss(predictions, targets.squeeze()))
        rows.append((loss, predictions[0].detach().clone()))
    return in_columns(rows)


def altered(change):
    """The right training, and something else returned."""
    return lambda *given: change(*train_with_floats(*given))


HELD = []


def train_and_hold(what):
    """Something of the last batch stays alive outside."""

    def train(model, optimizer, batches):
        rows = []
        for inputs, targets in batches:
            predictions = model(inputs)
            loss = nn.functional.mse_loss(predictions, targets)
            rows.append((updated(optimizer, loss), predictions[0].detach().clone()))
        HELD[:] = [loss if what == "graph" else predictions.detach()]
        return in_columns(rows)

    return train


RIGHT = [
    *(train_with_floats, train_in_a_function, train_with_a_closure),
    *(train_by_grad, train_by_functions, train_retaining_what_goes, train_with_a_tensor_of_totals),
]

MISCONCEIVED = {
    "losses with graphs": trainer(keep_loss=lambda loss: loss),
    "a total with a graph": trainer(keep_total=lambda loss: loss),
    "retained for nothing": trainer(retain_graph=True),
    "a row that keeps the rest": trainer(keep_row=lambda row: row.detach()),
    "rows with graphs": trainer(keep_row=lambda row: row.clone()),
    "never cleared": train_clearing("never"),
    "cleared too late": train_clearing("after"),
    "zeros for no gradient": train_clearing("zeros"),
}

ROW_OF_A_COPY = trainer(keep_row=lambda row: row._base.detach().clone()[0])

WRONG = [
    clearing_near(train_with_floats),
    clipping(train_with_floats),
    *(train_nothing, train_clearing("between"), train_evaluating, train_without_the_optimizer),
    train_keeping_the_last,
    train_in_two_passes,
    said(train_and_remember, "a total with a graph"),
    train_and_copy_rows_at_the_end,
    train_and_stay_in_eval_mode,
    train_and_switch_off,
    train_with_a_hook,
    ROW_OF_A_COPY,
    trainer(keep_loss=lambda loss: loss.detach()),
    said(trainer(keep_row=lambda row: row), "rows with graphs", "a row that keeps the rest"),
    said(
        trainer(keep_row=lambda row: row.detach(), retain_graph=True),
        "retained for nothing",
        "a row that keeps the rest",
    ),
    said(trainer(lambda loss: loss, retain_graph=True), "losses with graphs", "retained for nothing"),
    clipping(train_with_floats, longest=1e4),
    *(train_from_two_samples_on, train_squeezing),
    lambda model, optimizer, batches: (1, 2, 3),
    lambda model, optimizer, batches: ([], [], []),
    lambda model, optimizer, batches: ([[]], 0.0, [None]),
    altered(lambda losses, average, samples: ([loss + 1 for loss in losses], average, samples)),
    altered(lambda losses, average, samples: (losses, torch.tensor(average), samples)),
    altered(lambda losses, average, samples: (losses, average + 1, samples)),
    altered(lambda losses, average, samples: (losses, average, [2 * sample for sample in samples])),
    leaving(train_with_floats, lambda model, *given: model[0].weight.data.mul_(2)),
    leaving(train_with_floats, lambda model, *given: model[-1].forward(torch.ones(1, 9).to(model[0].weight)) is None),
    leaving(train_with_floats, lambda *given: torch.ones(1, requires_grad=True).sum().backward()),
    train_and_hold("graph"),
    train_and_hold("predictions"),
]

EQUIVALENT = {
    "train_with_a_tensor_of_totals: rows.append((updated(optimizer, loss), predictions[0].detach().clone())) | total += loss.detach() -> (swapped)": "The loss is computed before the step, and the step does not change it.",
    "train_with_a_tensor_of_totals: total += loss.detach() -> total = total + loss.detach()": "Nothing else refers to the total.",
    "train_with_a_closure.step: optimizer.zero_grad() | predictions = model(inputs) -> (swapped)": "Neither of the two statements changes what the other one uses.",
    "train_with_a_closure.step: samples.append(predictions.data[0].clone()) | loss = nn.functional.mse_loss(predictions, targets) -> (swapped)": "Neither of the two statements changes what the other one uses.",
    "train_by_grad: for parameter, gradient in zip(parameters, torch.autograd.grad(loss, parameters, allow_unused=True), strict=True): ... |... -> (swapped)": "Neither of the two statements changes what the other one uses.",
    "train_by_grad: rows.append((loss.item(), predictions[0].clone().detach())) | optimizer.step() -> (swapped)": "Neither of the two statements changes what the other one uses.",
    "train_by_functions: for name, parameter in model.named_parameters(): ... | rows.append((loss.item(), row)) -> (swapped)": "Neither of the two statements changes what the other one uses.",
    "train_by_functions: rows.append((loss.item(), row)) | optimizer.step() -> (swapped)": "Neither of the two statements changes what the other one uses.",
    "train_retaining_what_goes.passed: loss.backward(retain_graph=True) -> loss.backward()": "The graph is let go of before the step, so nothing is held whether the pass retained or not.",
    "train_retaining_what_goes.passed: loss.backward(retain_graph=True) -> loss.backward(retain_graph=False)": "The graph is let go of before the step, so nothing is held whether the pass retained or not.",
}

# A list of numbers becomes float32, whatever it was.
with_rows_through_lists = trainer(keep_row=lambda row: torch.tensor(row.tolist()))

GUARDS = {
    "which trains in the same way": {"trained": WRONG[-5]},
    "and returns `(losses, average, samples)`: a list of Python floats": {"value": WRONG[-9]},
    "a Python float": {"average type": WRONG[-8], "average": WRONG[-7]},
    "a list of tensors of the same shape and dtype as before": {
        "sample value": WRONG[-6],
        "sample dtype": with_rows_through_lists,
    },
    "each batch takes one forward, one backward pass and one step of `optimizer`,": {
        "forwards": WRONG[-4],
        "passes": WRONG[-3],
        "steps": train_without_the_optimizer,
    },
    "no saved tensors are still held": {"kept": MISCONCEIVED["retained for nothing"]},
    "and no graph or predictions of an earlier batch are alive": {
        "graphs": train_keeping_the_last,
        "predictions on the way": train_and_copy_rows_at_the_end,
    },
    "after your function has returned, no graph is left": {"end": WRONG[-2]},
    "and no memory of the model's predictions": {"predictions": WRONG[-1]},
    "the samples keep their own rows and nothing else": {"rows": ROW_OF_A_COPY},
    "the model stays in training mode.": {"left": train_and_stay_in_eval_mode},
    "A parameter may take no part in the loss; then no step moves it.": {
        "trained": MISCONCEIVED["zeros for no gradient"]
    },
}


def stepping_before_the_pass(model, optimizer, batches):
    """Retains nothing: the pass that uses the graph comes after the step."""
    losses, samples = [], []
    for inputs, targets in batches:
        predictions = model(inputs)
        loss = nn.functional.mse_loss(predictions, targets)
        optimizer.zero_grad()
        optimizer.step()
        loss.backward()
        losses.append(loss.item())
        samples.append(predictions[0].detach().clone())
    return losses, sum(losses) / len(losses), samples


def with_a_run_more(model, optimizer, batches):
    """Runs the model twice for each batch, and keeps nothing of an earlier batch."""
    losses, samples = [], []
    for inputs, targets in batches:
        also = model(inputs)
        predictions = model(inputs)
        loss = nn.functional.mse_loss(predictions, targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        samples.append(predictions[0].detach().clone())
        del also
    return losses, sum(losses) / len(losses), samples


def cutting_rows_off_at_the_end(model, optimizer, batches):
    losses, samples = [], []
    for inputs, targets in batches:
        predictions = model(inputs)
        loss = nn.functional.mse_loss(predictions, targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        samples.append(predictions[0])
    return losses, sum(losses) / len(losses), [row.detach().clone() for row in samples]


WRONG += [stepping_before_the_pass, with_a_run_more, said(cutting_rows_off_at_the_end, "a total with a graph")]


def averaging_over_rows(model, optimizer, batches):
    losses, _, samples = RIGHT[0](model, optimizer, batches)
    sizes = [len(inputs) for inputs, _ in batches]
    return losses, sum(loss * size for loss, size in zip(losses, sizes, strict=True)) / sum(sizes), samples


MISCONCEIVED["an average over rows"] = averaging_over_rows

WRONG += [with_rows_through_lists]


def keeping_all_but_the_last_layer(model, optimizer, batches, hoard=[]):  # noqa: B006
    """Runs the layers before the last a second time, and keeps their graphs."""

    def second(inputs):
        state = torch.get_rng_state()
        hoard.append(model[:-1](inputs))
        torch.set_rng_state(state)
        return inputs

    return RIGHT[0](model, optimizer, [(second(inputs), targets) for inputs, targets in batches])


WRONG += [keeping_all_but_the_last_layer]
