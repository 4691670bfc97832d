"""Right and wrong answers to `fit_scale`."""

import copy
from functools import partial

import torch
from torch.nn.functional import cross_entropy

from tests.answers.leaving import gradients_off, leaving, zeroing
from tests.answers.lesson_04_retain_graph.side_effects import frozen, hooked, in_evaluation, reseeded
from tests.answers.near import near
from tests.answers.said import said
from tests.answers.updating import updated


def fit_inside(model, log_scale, optimizer, batches):
    return [updated(optimizer, cross_entropy(log_scale.exp() * model(inputs), targets)) for inputs, targets in batches]


def fit_by_grad(model, log_scale, optimizer, batches):
    leaves = [*model.parameters(), log_scale]

    def step(inputs, targets):
        loss = cross_entropy(model(inputs) * torch.exp(log_scale), targets)
        for leaf, gradient in zip(leaves, torch.autograd.grad(loss, leaves, allow_unused=True), strict=True):
            leaf.grad = gradient
        optimizer.step()
        return float(loss)

    return [step(*batch) for batch in batches]


def fit_layer_by_layer(model, log_scale, optimizer, batches):
    """No call of the model; what its layers return is held until the next batch."""
    losses = []
    for inputs, targets in batches:
        results = [inputs]
        for layer in model:
            results.append(layer.forward(results[-1]))
        losses.append(updated(optimizer, cross_entropy(log_scale.exp() * results[-1], targets)))
    return losses


def fit_by_functions(model, log_scale, optimizer, batches):
    """With torch.func, which takes parameters and scale as arguments."""
    named = dict(model.named_parameters())

    def loss_of(parameters, logarithm, inputs, targets):
        return cross_entropy(logarithm.exp() * torch.func.functional_call(model, parameters, inputs), targets)

    losses = []
    for inputs, targets in batches:
        values = {name: parameter.detach() for name, parameter in named.items()}
        found, loss = torch.func.grad_and_value(loss_of, argnums=(0, 1))(values, log_scale.data, inputs, targets)
        gradients, log_scale.grad = found
        for name, parameter in named.items():
            parameter.grad = gradients[name] if gradients[name].any() else None  # what takes no part has zeros
        losses.append(loss.item())
        optimizer.step()
    return losses


def fit_retaining_what_goes(model, log_scale, optimizer, batches):
    """The graph is gone before the step, whatever the pass retained."""

    def passed(inputs, targets):
        loss = cross_entropy(log_scale.exp() * model(inputs), targets)
        loss.backward(retain_graph=True)
        return loss.item()

    losses = []
    for batch in batches:
        optimizer.zero_grad()
        losses.append(passed(*batch))
        optimizer.step()
    return losses


def fit_by_closure(model, log_scale, optimizer, batches):
    def closure(inputs, targets):
        optimizer.zero_grad()
        loss = cross_entropy(model(inputs) * log_scale.exp(), targets)
        loss.backward()
        return loss

    return [optimizer.step(partial(closure, *batch)).item() for batch in batches]


def fit_zeroing_after(model, log_scale, optimizer, batches):
    optimizer.zero_grad()
    losses = []
    for inputs, targets in batches:
        loss = cross_entropy(log_scale.exp() * model(inputs), targets)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item())
    return losses


def fit_zeroing_between(model, log_scale, optimizer, batches):
    losses = []
    for inputs, targets in batches:
        loss = cross_entropy(log_scale.exp() * model(inputs), targets)
        loss.backward()
        optimizer.zero_grad()
        optimizer.step()
        losses.append(loss.item())
    return losses


def fit_passing_after_the_step(model, log_scale, optimizer, batches):
    losses = []
    for inputs, targets in batches:
        loss = cross_entropy(log_scale.exp() * model(inputs), targets)
        optimizer.zero_grad()
        optimizer.step()
        loss.backward()
        losses.append(loss.item())
    return losses


def fit_losing_the_gradient_of_the_scale(model, log_scale, optimizer, batches):
    losses = []
    for inputs, targets in batches:
        loss = cross_entropy(log_scale.exp() * model(inputs), targets)
        optimizer.zero_grad()
        loss.backward()
        log_scale.grad = None
        optimizer.step()
        losses.append(loss.item())
    return losses


def fit_with_its_own_optimizer(model, log_scale, optimizer, batches):
    own = torch.optim.SGD([*model.parameters(), log_scale], lr=0.4, momentum=0.5, weight_decay=0.1)
    return fit_inside(model, log_scale, own, batches)


def fit_a_copy(model, log_scale, optimizer, batches):
    return fit_inside(copy.deepcopy(model), log_scale, optimizer, batches)


def fitter(
    scale_of=lambda log_scale: log_scale.exp(),
    once=False,
    clear=lambda model, optimizer: optimizer.zero_grad(),
    **options,
):
    """The loop with one thing wrong."""

    def fit_scale(model, log_scale, optimizer, batches):
        losses, first = [], scale_of(log_scale)
        for inputs, targets in batches:
            scale = first if once else scale_of(log_scale)
            loss = cross_entropy(scale * model(inputs), targets)
            clear(model, optimizer)
            loss.backward(**options)
            optimizer.step()
            losses.append(loss.item())
        return losses

    return fit_scale


def fit_clearing_after(model, log_scale, optimizer, batches, scale_of=torch.exp):
    losses = []
    for inputs, targets in batches:
        loss = cross_entropy(scale_of(log_scale) * model(inputs), targets)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item())
    return losses


def fit_without_the_optimizer(model, log_scale, optimizer, batches):
    """The same numbers, by a step of its own."""
    leaves, losses = [*model.parameters(), log_scale], []
    moving = [torch.zeros_like(leaf) for leaf in leaves]
    for inputs, targets in batches:
        loss = cross_entropy(log_scale.exp() * model(inputs), targets)
        gradients = torch.autograd.grad(loss, leaves, allow_unused=True)
        for leaf, gradient, velocity in zip(leaves, gradients, moving, strict=True):
            if gradient is not None:
                velocity.mul_(0.5).add_(gradient + 0.1 * leaf.detach())
                leaf.data.sub_(velocity, alpha=0.4)
        losses.append(loss.item())
    return losses


def fit_in_two_passes(model, log_scale, optimizer, batches):
    """A pass for the model and one for the scale."""
    parameters, losses = list(model.parameters()), []
    for inputs, targets in batches:
        loss = cross_entropy(log_scale.exp() * model(inputs), targets)
        optimizer.zero_grad()
        loss.backward(retain_graph=True, inputs=parameters)
        loss.backward(inputs=[log_scale])
        optimizer.step()
        losses.append(loss.item())
    return losses


def fit_after_a_look(model, log_scale, optimizer, batches):
    """Runs the model once more for each batch."""
    losses = []
    for inputs, targets in batches:
        with torch.no_grad():
            losses.append(cross_entropy(log_scale.exp() * model.forward(inputs), targets).item())
        optimizer.zero_grad()
        cross_entropy(log_scale.exp() * model(inputs), targets).backward()
        optimizer.step()
    return losses


def fit_without_zeroing(model, log_scale, optimizer, batches):
    losses = []
    for inputs, targets in batches:
        loss = cross_entropy(log_scale.exp() * model(inputs), targets)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def fit_one_step_late(model, log_scale, optimizer, batches):
    losses, scale = [], log_scale.exp()
    for inputs, targets in batches:
        loss = cross_entropy(scale * model(inputs), targets)
        optimizer.zero_grad()
        loss.backward()
        scale = log_scale.exp()
        optimizer.step()
        losses.append(loss.item())
    return losses


def fit_from_two_samples_on(model, log_scale, optimizer, batches):
    """Takes a single sample for too few to learn from."""
    return fit_inside(model, log_scale, optimizer, [batch for batch in batches if len(batch[0]) > 1])


def fit_by_classes(model, log_scale, optimizer, batches):
    """Reads rows as classes where there are as many samples."""
    losses = []
    for inputs, targets in batches:
        scores = model(inputs)
        turned = scores.T if len(scores) == scores.shape[1] else scores
        losses.append(updated(optimizer, cross_entropy(log_scale.exp() * turned, targets)))
    return losses


def fit_and_keep(model, log_scale, optimizer, batches):
    losses = []
    for inputs, targets in batches:
        loss = cross_entropy(log_scale.exp() * model(inputs), targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss)
    return [loss.item() for loss in losses]


def fit_the_near(model, log_scale, optimizer, batches):
    """Hands gradients to the scale, the model's own parameters and those of its direct children."""
    leaves = [*near(model).values(), log_scale]
    losses = []
    for inputs, targets in batches:
        loss = cross_entropy(log_scale.exp() * model(inputs), targets)
        for leaf, gradient in zip(leaves, torch.autograd.grad(loss, leaves, allow_unused=True), strict=True):
            leaf.grad = gradient
        optimizer.step()
        losses.append(loss.item())
    return losses


def fit_beside_old_gradients(model, log_scale, optimizer, batches):
    """Leaves the old gradient of a parameter that takes no part."""
    leaves, losses = [*model.parameters(), log_scale], []
    for inputs, targets in batches:
        loss = cross_entropy(log_scale.exp() * model(inputs), targets)
        for leaf, gradient in zip(leaves, torch.autograd.grad(loss, leaves, allow_unused=True), strict=True):
            leaf.grad = leaf.grad if gradient is None else gradient
        optimizer.step()
        losses.append(loss.item())
    return losses


RIGHT = [
    *(fit_inside, fit_by_grad, fit_by_closure, fit_zeroing_after),
    *(fit_layer_by_layer, fit_by_functions, fit_retaining_what_goes),
]

MISCONCEIVED = {
    "a stale scale": fitter(once=True, retain_graph=True),
    "the scale made a constant": fitter(lambda log_scale: log_scale.exp().detach()),
    "not the exponential": fitter(lambda log_scale: log_scale),
    "never cleared": fit_without_zeroing,
    "only the model cleared": fitter(clear=lambda model, optimizer: model.zero_grad()),
    "cleared too late": fit_clearing_after,
    "no gradient at the step": fit_zeroing_between,
    "retained for nothing": fitter(retain_graph=True),
}

WRONG = [
    *(leaving(fit_inside, change) for change in (gradients_off, in_evaluation, frozen, hooked, reseeded)),
    fit_the_near,
    leaving(fit_inside, lambda model, log_scale, optimizer, batches: optimizer.param_groups[0].update(lr=0.1)),
    said(fit_passing_after_the_step, "no gradient at the step"),
    said(fit_losing_the_gradient_of_the_scale, "the scale made a constant"),
    fit_with_its_own_optimizer,
    said(fit_a_copy, "no gradient at the step"),
    *(fit_without_the_optimizer, fit_in_two_passes, fit_after_a_look),
    said(
        lambda *given: fit_clearing_after(*given, scale_of=lambda log_scale: log_scale.exp().detach()),
        *("the scale made a constant", "cleared too late"),
    ),
    said(
        lambda *given: fit_clearing_after(*given, scale_of=lambda log_scale: log_scale),
        *("not the exponential", "cleared too late"),
    ),
    said(fitter(lambda log_scale: log_scale, retain_graph=True), "not the exponential", "retained for nothing"),
    fit_one_step_late,
    *(fit_from_two_samples_on, fit_by_classes),
    fitter(lambda log_scale: log_scale.exp().clamp(max=10.0)),
    fit_and_keep,
    fitter(once=True),
    said(fitter(lambda log_scale: log_scale.exp().detach().requires_grad_()), "the scale made a constant"),
    lambda model, log_scale, optimizer, batches: [0.0 for _ in batches],
    lambda *given: [loss + 1 for loss in fit_inside(*given)],
    leaving(fit_inside, lambda model, log_scale, optimizer, batches: log_scale.data.add_(1)),
    leaving(fit_inside, lambda model, log_scale, optimizer, batches: model[0].weight.data.mul_(2)),
    leaving(fit_inside, lambda *given: torch.ones(1, requires_grad=True).sum().backward()),
]

EQUIVALENT = {
    "fit_by_closure.closure: optimizer.zero_grad() | loss = cross_entropy(model(inputs) * log_scale.exp(), targets) -> (swapped)": "Neither of the two statements changes what the other one uses.",
    "fit_zeroing_after: optimizer.zero_grad() -> optimizer.zero_grad(set_to_none=False) #2": "The first clearing made all of them None, and None stays None; what takes part gets a gradient anew.",
    "fit_zeroing_after: optimizer.zero_grad() | losses.append(loss.item()) -> (swapped)": "Neither of the two statements changes what the other one uses.",
    "fit_by_functions: gradients[name].any -> gradients[name].all": "Of what takes part in a loss with a tanh no number of the gradient is zero.",
    "fit_by_functions: log_scale.data -> log_scale": "The step uses the numbers of .grad, whether or not they have a graph.",
    "fit_by_functions: for name, parameter in named.items(): ... | losses.append(loss.item()) -> (swapped)": "Neither of the two statements changes what the other one uses.",
    "fit_by_functions: losses.append(loss.item()) | optimizer.step() -> (swapped)": "Neither of the two statements changes what the other one uses.",
    "fit_retaining_what_goes.passed: loss.backward(retain_graph=True) -> loss.backward()": "The graph is let go of before the step, so nothing is held whether the pass retained or not.",
    "fit_retaining_what_goes.passed: loss.backward(retain_graph=True) -> loss.backward(retain_graph=False)": "The graph is let go of before the step, so nothing is held whether the pass retained or not.",
}

GUARDS = {
    "It returns the list of losses as Python floats.": {"value": WRONG[-4]},
    "both the model and `log_scale` learn": {"log_scale's value": WRONG[-3], "trained": WRONG[-2]},
    "Each batch takes one forward, one backward pass and one step of `optimizer`.": {
        "forwards": fit_after_a_look,
        "passes": WRONG[-1],
        "steps": fit_with_its_own_optimizer,
    },
    "no saved tensors are still held": {"kept": MISCONCEIVED["retained for nothing"]},
    "no graph of an earlier batch is alive": {"graphs": fit_and_keep},
    "a function leaves modes, flags, hooks": {"left": WRONG[3]},
    "A parameter may take no part in the loss; then no step moves it.": {"trained": fit_beside_old_gradients},
}

WRONG.append(fit_beside_old_gradients)

# With zeros for a gradient, weight decay moves what takes no part.
WRONG.append(said(zeroing(fitter()), "zeros for no gradient"))


MISCONCEIVED["zeros for no gradient"] = fitter(clear=lambda model, optimizer: optimizer.zero_grad(set_to_none=False))
