"""Right and wrong answers to `gradient_log`."""

import copy
from functools import partial

import torch
from torch import nn

from tests.answers.leaving import gradients_off, leaving
from tests.answers.lesson_08_intermediate_gradients.models import parameters_of
from tests.answers.said import said
from tests.answers.twice import around, gradients_on_a_walk


def linears(model):
    return {name: module for name, module in model.named_modules() if isinstance(module, nn.Linear)}


def log_by_backward_hooks(model, batches, loss_fn):
    norms = {}

    def note(name, module, given, received):
        norms[name] = received[0].norm().item()

    handles = [module.register_full_backward_hook(partial(note, name)) for name, module in linears(model).items()]
    try:
        log = []
        for inputs, targets in batches:
            norms.clear()
            torch.autograd.grad(loss_fn(model(inputs), targets), parameters_of(model))
            log.append({name: norms[name] for name in linears(model)})
        return log
    finally:
        for handle in handles:
            handle.remove()


def log_by_results(model, batches, loss_fn):
    """Hooks for each batch, taken away after its forward; the gradients come from autograd.grad."""
    log = []
    for inputs, targets in batches:
        results = {}
        handles = []
        for name, module in linears(model).items():
            handles.append(module.register_forward_hook(partial(put, results, name)))
        try:
            loss = loss_fn(model(inputs), targets)
        finally:
            for handle in handles:
                handle.remove()
        gradients = torch.autograd.grad(loss, list(results.values()))
        log.append({name: float(g.norm()) for name, g in zip(results, gradients, strict=True)})
    return log


def put(results, name, module, given, result):
    results[name] = result


def log_with(convert=float, of=1, pile=False, late=False, backward=False, finish=True, keep=None, kind=BaseException):
    """The first right answer with one thing wrong."""

    def gradient_log(model, batches, loss_fn):
        log, handles, kept = [], [], []
        norms = {}

        def register():
            for name, module in linears(model).items():
                if late:
                    handles.append(
                        module.register_full_backward_hook(lambda m, *g: norms.update({name: convert(g[of][0].norm())}))  # noqa: B023
                    )
                else:
                    handles.append(
                        module.register_full_backward_hook(
                            lambda m, *g, name=name: norms.update({name: convert(g[of][0].norm())})
                        )
                    )

        try:
            if not pile:
                register()
            for inputs, targets in batches:
                if pile:
                    register()
                norms.clear()
                if of == 0:
                    inputs = inputs.clone().requires_grad_()
                loss = loss_fn(model(inputs), targets)
                if keep:
                    kept.append(loss)
                if backward:
                    loss.backward()
                else:
                    torch.autograd.grad(loss, [*parameters_of(model), *([inputs] if of == 0 else [])])
                log.append(dict(norms))
        except kind:
            if finish:
                [handle.remove() for handle in handles]
            raise
        [handle.remove() for handle in handles]
        return log

    return gradient_log


def broken_gradient_log(model, batches, loss_fn):
    """As the exercise gives it: many things wrong at once."""
    log = []
    for inputs, targets in batches:
        norms = {}
        for name, module in model.named_modules():
            if isinstance(module, nn.Linear):

                def meet(module, given, output):
                    output.register_hook(lambda gradient: norms.update({name: gradient.norm()}))  # noqa: B023

                module.register_forward_hook(meet)
        loss_fn(model(inputs), targets).backward()
        log.append(norms)
    return log


def log_with_two_passes(model, batches, loss_fn):
    """The second right answer, and a pass before its own."""

    def passing(output, targets):
        loss = loss_fn(output, targets)
        torch.autograd.grad(loss, parameters_of(model), retain_graph=True)
        return loss

    return log_by_results(model, batches, passing)


def log_keeping_graphs(model, batches, loss_fn):
    log = []
    for inputs, targets in batches:
        results = {}
        handles = [module.register_forward_hook(partial(put, results, name)) for name, module in linears(model).items()]
        try:
            loss = loss_fn(model(inputs), targets)
        finally:
            for handle in handles:
                handle.remove()
        gradients = torch.autograd.grad(loss, list(results.values()), retain_graph=True)
        log.append({name: float(g.norm()) for name, g in zip(results, gradients, strict=True)})
    return log


def log_swallowing(model, batches, loss_fn):
    try:
        return log_by_results(model, batches, loss_fn)
    except Exception:
        return []


def log_by(
    norm=torch.norm, chosen=lambda name, module: isinstance(module, nn.Linear), named=lambda model, results: results
):
    """A log with another norm, of other layers, or with other names."""

    def gradient_log(model, batches, loss_fn):
        log, layers = [], {name: it for name, it in model.named_modules() if chosen(name, it)}
        for inputs, targets in batches:
            results = {}
            handles = [it.register_forward_hook(partial(put, results, name)) for name, it in layers.items()]
            try:
                loss = loss_fn(model(inputs), targets)
            finally:
                for handle in handles:
                    handle.remove()
            gradients = torch.autograd.grad(loss, list(results.values())) if results else ()
            log.append({name: norm(it).item() for name, it in zip(named(model, results), gradients, strict=True)})
        return log

    return gradient_log


def log_losing_gradients(model, batches, loss_fn):
    """Puts `.grad` back when all went well."""
    old = [parameter.grad for parameter in model.parameters()]
    model.zero_grad()
    log = log_with(backward=True)(model, batches, loss_fn)
    for parameter, gradient in zip(model.parameters(), old, strict=True):
        parameter.grad = gradient
    return log


def log_stopping_at(kind):
    """Ends the log where a loss raises an error of one kind."""

    def gradient_log(model, batches, loss_fn):
        log = []
        for batch in batches:
            try:
                log += log_by_results(model, [batch], loss_fn)
            except kind:
                break
        return log

    return gradient_log


def log_in_one_dict(model, batches, loss_fn):
    norms, log = {}, []
    handles = [
        module.register_full_backward_hook(lambda m, *g, name=name: norms.update({name: g[1][0].norm().item()}))
        for name, module in linears(model).items()
    ]
    try:
        for inputs, targets in batches:
            torch.autograd.grad(loss_fn(model(inputs), targets), parameters_of(model))
            log.append(norms)
    finally:
        for handle in handles:
            handle.remove()
    return log


RIGHT = [log_by_backward_hooks, log_by_results]

MISCONCEIVED = {
    "hooks pile up": log_with(pile=True),
    "the name of the last layer": log_with(late=True),
    "one dict for all batches": log_in_one_dict,
    "the gradient of the input": log_with(of=0),
    "gradients left behind": log_with(backward=True),
    "tensors in the log": log_with(convert=lambda norm: norm),
}

log_without_finally = log_with(finish=False)

ONE_SLIP = {
    "passes": log_with_two_passes,
    "kept": log_keeping_graphs,
    "raises": log_swallowing,
    "graphs": log_with(keep=True),
    "mode": leaving(log_by_results, gradients_off),
    "runs": lambda model, batches, loss_fn: log_by_backward_hooks(copy.deepcopy(model), batches, loss_fn),
}


def log_clearing_backward_hooks(model, batches, loss_fn):
    """Takes away the author's hooks of that kind, too."""
    try:
        return log_with(finish=False)(model, batches, loss_fn)
    finally:
        for module in linears(model).values():
            module._backward_hooks.clear()


def log_with_passes_at_the_end(model, batches, loss_fn):
    """Makes all losses first."""
    norms, log = {}, []
    handles = [
        module.register_full_backward_hook(lambda m, *g, name=name: norms.update({name: g[1][0].norm().item()}))
        for name, module in linears(model).items()
    ]
    try:
        for loss in [loss_fn(model(inputs), targets) for inputs, targets in batches]:
            torch.autograd.grad(loss, parameters_of(model))
            log.append(dict(norms))
    finally:
        for handle in handles:
            handle.remove()
    return log


log_of_plain_ones = log_by(chosen=lambda name, module: type(module) is nn.Linear)

MISCONCEIVED |= {
    "a derived class left out": log_of_plain_ones,
    "hooks of others removed": log_clearing_backward_hooks,
}

WRONG = [
    said(log_of_plain_ones, "a derived class left out"),
    log_by(chosen=lambda name, module: name and isinstance(module, nn.Linear)),
    log_by(named=lambda model, results: linears(model)),
    log_by(norm=lambda gradient: gradient.norm(dim=(0, 1))),
    said(log_losing_gradients, "gradients left behind"),
    *map(log_stopping_at, (RuntimeError, ValueError)),
    *ONE_SLIP.values(),
    said(log_clearing_backward_hooks, "hooks of others removed"),
    log_with(convert=lambda norm: min(norm.item(), 1e3)),
    said(
        broken_gradient_log,
        *("hooks pile up", "the name of the last layer", "gradients left behind", "tensors in the log"),
    ),
    log_without_finally,
    log_stopped := log_with(kind=Exception),
    log_with(convert=lambda norm: norm.item() ** 2),
    lambda model, batches, loss_fn: log_by_backward_hooks(model, list(batches) * 2, loss_fn),
    lambda model, batches, loss_fn: log_by_backward_hooks(model, list(batches)[:1], loss_fn),
    lambda model, batches, loss_fn: log_by_backward_hooks(copy.deepcopy(model), batches, loss_fn)[::-1],
    lambda model, batches, loss_fn: [None for _ in batches],
    lambda model, batches, loss_fn: [{} for _ in batches],
    log_with_passes_at_the_end,
    lambda model, batches, loss_fn: [
        {name: float(loss_fn(model(x), t)) for name in linears(model)} for x, t in batches
    ],
    said(around(log_by_backward_hooks, gradients_on_a_walk), "gradients left behind"),
]

EQUIVALENT = {
    "parameters_of: parameter.requires_grad -> True": '"All parameters require a gradient."',
    "log_by_backward_hooks: norms.clear() -> (dropped)": "Each layer runs in each batch, so each norm is written anew.",
}

GUARDS = {
    "the norm of the loss's gradient at the output of every linear layer": {
        "value": MISCONCEIVED["the gradient of the input"]
    },
    "`loss_fn(model(inputs), targets)`": {"runs": ONE_SLIP["runs"]},
    "While batches run, the number of hooks does not grow.": {"pile": MISCONCEIVED["hooks pile up"]},
    "Afterwards the model has the hooks that it had before and no others": {"model": log_without_finally},
    "even if `loss_fn` raises, or is stopped from the keyboard.": {"model": log_stopped},
    "the `.grad` of its parameters is as before": {
        "model": MISCONCEIVED["gradients left behind"],
        "mode": ONE_SLIP["mode"],
    },
    "That error has to reach the caller.": {"raises": ONE_SLIP["raises"]},
    "One backward pass for each batch is enough.": {"passes": ONE_SLIP["passes"]},
    "It frees what it used": {"kept": ONE_SLIP["kept"]},
    "the graph of the one before may still be there, but none of an earlier one.": {"graphs": ONE_SLIP["graphs"]},
}


def log_of_single_norms(model, batches, loss_fn):
    """Takes the norms in float32, where some overflow."""
    log = log_by_results(model, batches, loss_fn)
    return [{name: torch.tensor(norm, dtype=torch.float32).item() for name, norm in norms.items()} for norms in log]


WRONG += [log_of_single_norms]


def log_putting_the_same_back(model, batches, loss_fn):
    """Keeps the tensors in .grad, to which each pass adds."""
    kept = {parameter: parameter.grad for parameter in model.parameters()}
    try:
        return log_with(backward=True)(model, batches, loss_fn)
    finally:
        for parameter, gradient in kept.items():
            parameter.grad = gradient


MISCONCEIVED["the same tensors put back"] = log_putting_the_same_back
