"""Right and wrong answers to `fit_best`."""

import copy

import torch
from torch.nn.functional import mse_loss

from tests.answers.leaving import clipping, zeroing
from tests.answers.lesson_09_practical_checklist.side_effects import MESSES, guarded, leaving, slips
from tests.answers.near import near, near_buffers
from tests.answers.said import said


def best(
    state=lambda model: copy.deepcopy(model.state_dict()),
    keep=float,
    back=True,
    silent=True,
    evaluate=True,
    back_at_end=True,
    better=lambda loss, least: loss < least,
    clear="before",
):
    def fit_best(model, optimizer, batches, validation, epochs):
        best_loss, best_state, history = None, None, []
        for _ in range(epochs):
            if back:
                model.train()
            for inputs, targets in batches:
                if clear == "before":
                    optimizer.zero_grad()
                mse_loss(model(inputs), targets).backward()
                optimizer.step()
                if clear == "after":
                    optimizer.zero_grad()
            if evaluate:
                model.eval()
            inputs, targets = validation
            with torch.set_grad_enabled(not silent):
                loss = mse_loss(model(inputs), targets)
            history.append(keep(loss))
            if best_loss is None or better(loss, best_loss):
                best_loss, best_state = keep(loss), state(model)
        if back_at_end:
            model.train()
        return best_state, best_loss, history

    return fit_best


def best_by_index(model, optimizer, batches, validation, epochs):
    @torch.no_grad()
    def validate():
        model.eval()
        try:
            return mse_loss(model(validation[0]), validation[1]).item()
        finally:
            model.train()

    states, history = [], []
    model.train()
    for _ in range(epochs):
        for inputs, targets in batches:
            optimizer.zero_grad()
            mse_loss(model(inputs), targets).backward()
            optimizer.step()
        history.append(validate())
        states.append({name: tensor.clone() for name, tensor in model.state_dict().items()})
    index = history.index(min(history))
    return states[index], history[index], history


RIGHT = [best(), best_by_index]


def best_loaded(model, *given):
    found = best()(model, *given)
    model.load_state_dict(found[0])
    return found


def best_validated_first(model, optimizer, batches, validation, epochs):
    best_loss, best_state, history = float("inf"), None, []
    for _ in range(epochs):
        model.eval()
        with torch.no_grad():
            history.append(mse_loss(model(validation[0]), validation[1]).item())
        if history[-1] < best_loss:
            best_loss, best_state = history[-1], copy.deepcopy(model.state_dict())
        model.train()
        for inputs, targets in batches:
            optimizer.zero_grad()
            mse_loss(model(inputs), targets).backward()
            optimizer.step()
    return best_state, best_loss, history


MISCONCEIVED = {
    "zeros for old gradients": zeroing(best()),
    "the last of equals": best(better=lambda loss, least: loss <= least),
    "the best is loaded": best_loaded,
    "validated first": best_validated_first,
    "the model's own tensors": best(state=lambda model: model.state_dict()),
    "evaluation mode stays": best(back=False),
    "validation with a graph": best(silent=False),
    "losses with graphs": best(silent=False, keep=lambda loss: loss),
    "never cleared": best(clear="never"),
    "gradients from before": best(clear="after"),
    "parameters only": best(state=lambda model: {name: p.detach().clone() for name, p in model.named_parameters()}),
}


def best_of_own_tensors_at_the_end(model, optimizer, batches, validation, epochs):
    """Copies the state when the next epoch begins: the last one's is the model's own."""
    state, loss, history = best()(model, optimizer, batches, validation, epochs)
    return (model.state_dict() if loss == history[-1] and history.index(loss) == epochs - 1 else state), loss, history


def turning(mode, before):
    """A part of the model, which has no numbers, is in another mode than the rest while that is in one mode."""

    def fit_best(model, optimizer, batches, validation, epochs):
        def turn(module, given):
            if module.training is before:
                module[2].train(mode)

        handle = model.register_forward_pre_hook(turn)
        try:
            return best()(model, optimizer, batches, validation, epochs)
        finally:
            handle.remove()

    return fit_best


def best_with_graphs(model):
    with torch.enable_grad():
        return {name: tensor.clone() for name, tensor in model.state_dict(keep_vars=True).items()}


SLIPS = slips(best())
LEFT = [leaving(best(), mess) for mess in MESSES]


def best_below(bound):
    """A run whose losses all are large has no best model."""

    def fit_best(*given):
        state, loss, history = best()(*given)
        return (state, loss, history) if loss < bound else (None, bound, history)

    return fit_best


def best_slowing_down(model, optimizer, *given):
    """Leaves the optimizer at half its rate."""
    found = best()(model, optimizer, *given)
    for group in optimizer.param_groups:
        group["lr"] /= 2
    return found


def best_of_falling(model, optimizer, batches, validation, epochs):
    """Takes each epoch for the best that is better than the one before it."""
    losses = []

    def better(loss, least):
        losses.extend([float(loss)] if losses else [float(least), float(loss)])
        return losses[-1] < losses[-2]

    return best(better=better)(model, optimizer, batches, validation, epochs)


def best_by_names(model):
    """Each tensor under one of its names, and buffers that are not part of the state."""
    return {name: it.detach().clone() for name, it in (*model.named_parameters(), *model.named_buffers())}


def best_under_one_name(model):
    once = {it.data_ptr(): name for name, it in reversed(model.state_dict().items())}
    return {name: it.clone() for name, it in model.state_dict().items() if name in once.values()}


def best_in_the_given_mode(model, optimizer, batches, validation, epochs):
    """Trains the first epoch in the mode in which the model comes."""
    given = model, optimizer, batches, validation
    first, rest = best(back=False)(*given, 1), best()(*given, epochs - 1)
    state, loss, _ = min(first, rest, key=lambda ended: ended[1])
    return state, loss, first[2] + rest[2]


WRONG = [
    best(state=lambda model: {name: it.detach().clone() for name, it in (near(model) | near_buffers(model)).items()}),
    *(best_slowing_down, best_of_falling),
    *(best(better=lambda loss, least, by=by: loss < least - by) for by in (1e-4, 1e-8)),
    *SLIPS.values(),
    clipping(best(), 1e4),
    best_below(1e6),
    best(better=lambda loss, least: loss < least * (1 - 1e-6)),
    said(best_of_own_tensors_at_the_end, "the model's own tensors"),
    best_trained_in_part := turning(False, before=True),
    best_validated_in_part := turning(True, before=False),
    best_of_graphs := best(state=best_with_graphs),
    best_and_more := lambda *given: (*best()(*given), 0.0),
    best_to_tensor := lambda *given: (lambda s, loss, h: (s, torch.tensor(loss), h))(*best()(*given)),
    best_of_tensors := lambda *given: (lambda s, loss, h: (s, loss, [torch.tensor(it) for it in h]))(*best()(*given)),
    said(best_loaded, "the best is loaded"),
    best_left_evaluating := best(back_at_end=False),
    said(best(state=lambda model: dict(model.state_dict())), "the model's own tensors"),
    best(state=lambda model: None),
    best(keep=lambda loss: loss),
    best(keep=lambda loss: loss.detach()),
    best(evaluate=False),
    *LEFT,
    best(state=lambda model: {**copy.deepcopy(model.state_dict()), "1.0.0.seen": model[1][0][0].seen}),
    said(
        best(state=lambda model: model.state_dict(), back=False, silent=False, keep=lambda loss: loss),
        *("the model's own tensors", "evaluation mode stays", "losses with graphs"),
    ),
    lambda model, optimizer, batches, validation, epochs: ({}, 0.0, []),
    lambda model, optimizer, batches, validation, epochs: ([1], None, 3),
    best(state=best_by_names),
    best(state=best_under_one_name),
    best_in_the_given_mode,
]

EQUIVALENT = {
    "best.fit_best: model.eval() | inputs, targets = validation -> (swapped)": "Neither line reads what the other one writes.",
    "best.fit_best: history.append(keep(loss)) | if best_loss is None or better(loss, best_loss): ... -> (swapped)": "Neither line reads what the other one writes.",
    "best_by_index.validate: mse_loss(model(validation[0]), validation[1]) -> mse_loss(model(validation[0]), validation[-1])": "There are two of them, so 1 and -1 are the same.",
    "best_by_index: history.append(validate()) | states.append({name: tensor.clone() for name, tensor in model.state_dict().items()}) -> (swapped)": "Neither line reads what the other one writes.",
}

GUARDS = {
    **guarded(SLIPS, hooks=LEFT[4], flags=LEFT[3]),
    "It returns `(best_state, best_loss, history)`": {"parts": best_and_more},
    "all of the model's `state_dict()`": {"state": MISCONCEIVED["parameters only"]},
    "the first of several that are equally good": {"value": MISCONCEIVED["the last of equals"]},
    "in tensors that do not change any more": {"copies": best_of_own_tensors_at_the_end},
    "the validation loss of that epoch, a Python float": {"float": best_to_tensor},
    "the list of all validation losses, Python floats": {"floats": best_of_tensors},
    "The model is in training mode in every training step": {"training mode": best_trained_in_part},
    "and when your function returns": {"modes": best_left_evaluating},
    "in evaluation mode in every validation": {"validation mode": best_validated_in_part},
    "A validation records no graph.": {"recorded": MISCONCEIVED["validation with a graph"]},
    "no graph is alive": {"copied graphs": best_of_graphs},
    "the model holds the numbers of the last epoch": {"value": best_loaded},
}
