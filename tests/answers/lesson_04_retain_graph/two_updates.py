"""Right and wrong answers to `two_updates`."""

import copy
import itertools

import torch
from torch.nn.functional import mse_loss

from tests.answers.leaving import gradients_off, leaving
from tests.answers.lesson_04_retain_graph.side_effects import frozen, hooked, in_evaluation
from tests.answers.near import near
from tests.answers.said import said


def losses_of(h, heads, targets):
    return [mse_loss(head(h), target) for head, target in zip(heads, targets, strict=True)]


def step_with(optimizer, parameters, gradients):
    for parameter, gradient in zip(parameters, gradients, strict=True):
        parameter.grad = gradient
    optimizer.step()


def updates_by_grad(trunk, heads, optimizers, inputs, targets):
    first, second = losses_of(trunk(inputs), heads, targets)
    mine, its = ([*trunk.parameters(), *head.parameters()] for head in heads)
    gradients = torch.autograd.grad(first, mine, retain_graph=True)
    others = torch.autograd.grad(second, its)
    for step in zip(optimizers, (mine, its), (gradients, others), strict=True):
        step_with(*step)
    return [first.item(), second.item()]


def updates_by_backward(trunk, heads, optimizers, inputs, targets):
    """Two backward passes, the trunk's gradients of the second set aside while the first optimizer steps."""
    for optimizer in optimizers:
        optimizer.zero_grad()
    first, second = losses_of(trunk(inputs), heads, targets)
    second.backward(retain_graph=True)
    aside = [parameter.grad for parameter in trunk.parameters()]
    for parameter in trunk.parameters():
        parameter.grad = None
    first.backward()
    one, other = optimizers
    one.step()
    step_with(other, trunk.parameters(), aside)
    return float(first), float(second)


def updates_by_difference(trunk, heads, optimizers, inputs, targets):
    """The second pass adds; the first gradient is subtracted."""
    for part in [trunk, *heads]:
        part.zero_grad()
    one, two = losses_of(trunk(inputs), heads, targets)
    one.backward(retain_graph=True)
    first = [parameter.grad.clone() for parameter in trunk.parameters()]
    two.backward()
    second = [parameter.grad - gradient for parameter, gradient in zip(trunk.parameters(), first, strict=True)]
    for optimizer, gradients in zip(optimizers, (first, second), strict=True):
        step_with(optimizer, trunk.parameters(), gradients)
    return [one.item(), two.item()]


def updates_in_a_batch(trunk, heads, optimizers, inputs, targets):
    """One pass for both gradients."""
    losses = losses_of(trunk(inputs), heads, targets)
    leaves = [parameter for part in (trunk, *heads) for parameter in part.parameters()]
    found = torch.autograd.grad(torch.stack(losses), leaves, torch.eye(2), is_grads_batched=True)
    gradients = dict(zip(leaves, found, strict=True))
    for number, (head, optimizer) in enumerate(zip(heads, optimizers, strict=True)):
        own = [*trunk.parameters(), *head.parameters()]
        step_with(optimizer, own, [gradients[parameter][number] for parameter in own])
    return [loss.item() for loss in losses]


def updates_from_two_cuts(trunk, heads, optimizers, inputs, targets):
    """Each head works on a cut of its own, and hands its seed to the trunk."""
    h, losses, found = trunk(inputs), [], []
    for number, (head, target) in enumerate(zip(heads, targets, strict=True)):
        head.zero_grad()
        cut = h.detach().requires_grad_()
        loss = mse_loss(head(cut), target)
        loss.backward()
        found.append(torch.autograd.grad(h, list(trunk.parameters()), cut.grad, retain_graph=number == 0))
        losses.append(loss.item())
    for optimizer, gradients in zip(optimizers, found, strict=True):
        step_with(optimizer, trunk.parameters(), gradients)
    return losses


def updates_without_zeroing(trunk, heads, optimizers, inputs, targets):
    """The trunk's gradients are held apart, the heads' pile up from call to call."""
    h = trunk(inputs)
    losses = [mse_loss(head(h), target) for head, target in zip(heads, targets, strict=True)]
    found = []
    for number, loss in enumerate(losses):
        trunk.zero_grad()
        loss.backward(retain_graph=number == 0)
        found.append([parameter.grad for parameter in trunk.parameters()])
    for optimizer, gradients in zip(optimizers, found, strict=True):
        for parameter, gradient in zip(trunk.parameters(), gradients, strict=True):
            parameter.grad = gradient
        optimizer.step()
    return [loss.item() for loss in losses]


def updates_in_pieces(trunk, heads, optimizers, inputs, targets):
    """A pass for each parameter of a head, and one for the trunk."""
    h, losses, found = trunk(inputs), [], []
    for number, (head, target) in enumerate(zip(heads, targets, strict=True)):
        cut = h.detach().requires_grad_()
        loss = mse_loss(head(cut), target)
        for parameter in head.parameters():
            (parameter.grad,) = torch.autograd.grad(loss, parameter, retain_graph=True)
        (seed,) = torch.autograd.grad(loss, cut)
        found.append(torch.autograd.grad(h, list(trunk.parameters()), seed, retain_graph=number == 0))
        losses.append(loss.item())
    for optimizer, gradients in zip(optimizers, found, strict=True):
        step_with(optimizer, trunk.parameters(), gradients)
    return losses


def updates_with_a_spare_pass(trunk, heads, optimizers, inputs, targets):
    h = trunk(inputs)
    losses = [mse_loss(head(h), target) for head, target in zip(heads, targets, strict=True)]
    lists = [[*trunk.parameters(), *head.parameters()] for head in heads]
    found = [torch.autograd.grad(loss, own, retain_graph=True) for loss, own in zip(losses, lists, strict=True)]
    sum(losses).backward()  # only to free
    for parameters, gradients, optimizer in zip(lists, found, optimizers, strict=True):
        for parameter, gradient in zip(parameters, gradients, strict=True):
            parameter.grad = gradient
        optimizer.step()
    return [loss.item() for loss in losses]


def updates_by_forward(trunk, heads, optimizers, inputs, targets):
    """No call of a module; the losses are let go of, with graphs that were retained."""

    def found():
        h = trunk.forward(inputs)
        for head, target in zip(heads, targets, strict=True):
            loss = mse_loss(head.forward(h), target)
            own = [*trunk.parameters(), *head.parameters()]
            yield own, torch.autograd.grad(loss, own, retain_graph=True), loss.item()

    rows = list(found())
    for optimizer, (own, gradients, _) in zip(optimizers, rows, strict=True):
        step_with(optimizer, own, gradients)
    return [loss for _, _, loss in rows]


def updates_on_top(trunk, heads, optimizers, inputs, targets, clear_heads=True):
    """The second optimizer finds the first loss's gradient in the trunk, too."""
    h = trunk(inputs)
    losses = [mse_loss(head(h), target) for head, target in zip(heads, targets, strict=True)]
    trunk.zero_grad()
    if clear_heads:
        for head in heads:
            head.zero_grad()
    losses[0].backward(retain_graph=True)
    first = [parameter.grad.clone() for parameter in trunk.parameters()]
    losses[1].backward()
    both = [parameter.grad for parameter in trunk.parameters()]
    for optimizer, gradients in zip(optimizers, (first, both), strict=True):
        for parameter, gradient in zip(trunk.parameters(), gradients, strict=True):
            parameter.grad = gradient
        optimizer.step()
    return [loss.item() for loss in losses]


def updates_by_hidden_forwards(trunk, heads, optimizers, inputs, targets):
    """A forward for each loss, where no hook sees it."""
    losses = [mse_loss(head(trunk.forward(inputs)), target) for head, target in zip(heads, targets, strict=True)]
    lists = [[*trunk.parameters(), *head.parameters()] for head in heads]
    found = [torch.autograd.grad(loss, own) for loss, own in zip(losses, lists, strict=True)]
    for parameters, gradients, optimizer in zip(lists, found, optimizers, strict=True):
        for parameter, gradient in zip(parameters, gradients, strict=True):
            parameter.grad = gradient
        optimizer.step()
    return [loss.item() for loss in losses]


def updates_recorded(trunk, heads, optimizers, inputs, targets):
    """The first gradients have graphs of their own."""
    losses = losses_of(trunk(inputs), heads, targets)
    lists = [[*trunk.parameters(), *head.parameters()] for head in heads]
    found = [torch.autograd.grad(losses[0], lists[0], create_graph=True), torch.autograd.grad(losses[1], lists[1])]
    for step in zip(optimizers, lists, found, strict=True):
        step_with(*step)
    return [loss.item() for loss in losses]


def updates_in_the_other_order(trunk, heads, optimizers, inputs, targets):
    swapped = updates_by_grad(trunk, heads[::-1], optimizers[::-1], inputs, targets[::-1])
    return swapped[::-1]


def updates_mixed(trunk, heads, optimizers, inputs, targets):
    h = trunk(inputs)
    losses = [mse_loss(head(h), target) for head, target in zip(heads, targets, strict=True)]
    for optimizer in optimizers:
        optimizer.zero_grad()
    losses[0].backward(retain_graph=True)
    losses[1].backward()
    for optimizer in optimizers:
        optimizer.step()
    return [loss.item() for loss in losses]


def updates_of_the_sum(trunk, heads, optimizers, inputs, targets):
    h = trunk(inputs)
    losses = [mse_loss(head(h), target) for head, target in zip(heads, targets, strict=True)]
    for optimizer in optimizers:
        optimizer.zero_grad()
    sum(losses).backward()
    for optimizer in optimizers:
        optimizer.step()
    return [loss.item() for loss in losses]


def updates_never_cleared(trunk, heads, optimizers, inputs, targets):
    """Two passes and two steps, and .grad holds all that ever came."""
    losses = losses_of(trunk(inputs), heads, targets)
    losses[0].backward(retain_graph=True)
    losses[1].backward()
    for optimizer in optimizers:
        optimizer.step()
    return [loss.item() for loss in losses]


def updates_with_new_weights(trunk, heads, optimizers, inputs, targets):
    first = [mse_loss(head(trunk(inputs)), target) for head, target in zip(heads, targets, strict=True)]
    optimizers[0].zero_grad()
    first[0].backward()
    optimizers[0].step()
    optimizers[1].zero_grad()
    mse_loss(heads[1](trunk(inputs)), targets[1]).backward()
    optimizers[1].step()
    return [loss.item() for loss in first]


def updates_retained(trunk, heads, optimizers, inputs, targets):
    h = trunk(inputs)
    losses = [mse_loss(head(h), target) for head, target in zip(heads, targets, strict=True)]
    lists = [[*trunk.parameters(), *head.parameters()] for head in heads]
    found = [torch.autograd.grad(loss, own, retain_graph=True) for loss, own in zip(losses, lists, strict=True)]
    for parameters, gradients, optimizer in zip(lists, found, optimizers, strict=True):
        for parameter, gradient in zip(parameters, gradients, strict=True):
            parameter.grad = gradient
        optimizer.step()
    return [loss.item() for loss in losses]


def updates_broken(trunk, heads, optimizers, inputs, targets):
    h = trunk(inputs)
    losses = [mse_loss(head(h), target) for head, target in zip(heads, targets, strict=True)]
    for loss, optimizer in zip(losses, optimizers, strict=True):
        optimizer.zero_grad()
        loss.backward(retain_graph=True)
        optimizer.step()
    return [loss.item() for loss in losses]


def updates_on_a_copy(trunk, heads, optimizers, inputs, targets):
    twin = copy.deepcopy(trunk)
    return updates_by_grad(twin, heads, optimizers, inputs, targets)


def updates_with_the_trunk_cut(trunk, heads, optimizers, inputs, targets):
    """The second loss trains its head alone."""
    h = trunk(inputs)
    losses = [mse_loss(heads[0](h), targets[0]), mse_loss(heads[1](h.detach()), targets[1])]
    for loss, optimizer in zip(losses, optimizers, strict=True):
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return [loss.item() for loss in losses]


def updates_and_in_the_end(change):
    """Right, until the third call of a case changes more."""
    calls = itertools.count(1)

    def updates(trunk, heads, *given):
        losses = updates_by_grad(trunk, heads, *given)
        if next(calls) % 3 == 0:
            change(trunk, heads)
        return losses

    return updates


def more(part):
    next(part.parameters()).data.mul_(2)


def updates_taking_the_optimizers_out(trunk, heads, optimizers, inputs, targets):
    losses = updates_by_grad(trunk, heads, optimizers, inputs, targets)
    optimizers.clear()
    return losses


def updates_clipped(trunk, heads, optimizers, inputs, targets):
    """Each step shortens long gradients first."""
    hooks = [optimizer.register_step_pre_hook(shorten) for optimizer in optimizers]
    losses = updates_by_grad(trunk, heads, optimizers, inputs, targets)
    for hook in hooks:
        hook.remove()
    return losses


def shorten(optimizer, *given):
    torch.nn.utils.clip_grad_norm_([p for group in optimizer.param_groups for p in group["params"]], 1e4)


def updates_with_squares_turned(trunk, heads, optimizers, inputs, targets):
    """Takes rows for columns where a target has as many of both."""
    turned = [target.T if len(target) == target.shape[1] else target for target in targets]
    return updates_by_grad(trunk, heads, optimizers, inputs, turned)


def updates_from_two_samples_on(trunk, heads, optimizers, inputs, targets):
    """Takes a single sample for too few to learn from."""
    if len(inputs) > 1:
        return updates_by_grad(trunk, heads, optimizers, inputs, targets)
    return [loss.item() for loss in losses_of(trunk(inputs), heads, targets)]


def updates_of_the_near(trunk, heads, optimizers, inputs, targets):
    """Hands gradients to the direct children of the trunk and the heads."""
    losses = losses_of(trunk(inputs), heads, targets)
    sets = [[*near(trunk).values(), *near(head).values()] for head in heads]
    found = [torch.autograd.grad(*pair, retain_graph=pair[0] is losses[0]) for pair in zip(losses, sets, strict=True)]
    for step in zip(optimizers, sets, found, strict=True):
        step_with(*step)
    return [loss.item() for loss in losses]


RIGHT = [
    updates_by_grad,
    updates_by_backward,
    updates_by_difference,
    updates_in_a_batch,
    updates_from_two_cuts,
    updates_by_forward,
]

MISCONCEIVED = {
    "gradients mixed": updates_mixed,
    "the second loss cut off": updates_with_the_trunk_cut,
    "a forward with new weights": updates_with_new_weights,
    "retained to the end": updates_retained,
    "the first gradient left over": updates_on_top,
    "heads never cleared": updates_without_zeroing,
    "nothing cleared": updates_never_cleared,
}

WRONG = [
    *(leaving(updates_by_grad, change) for change in (gradients_off, in_evaluation, frozen, hooked)),
    updates_of_the_near,
    said(
        lambda *given: updates_on_top(*given, clear_heads=False), "the first gradient left over", "heads never cleared"
    ),
    updates_by_hidden_forwards,
    updates_recorded,
    updates_in_the_other_order,
    updates_with_a_spare_pass,
    said(updates_of_the_sum, "gradients mixed"),
    updates_broken,
    updates_moving_the_trunk := updates_and_in_the_end(lambda trunk, heads: more(trunk)),
    updates_moving_the_first := updates_and_in_the_end(lambda trunk, heads: more(heads[0])),
    updates_moving_the_second := updates_and_in_the_end(lambda trunk, heads: more(heads[1])),
    updates_doubled := lambda *given: [2 * loss for loss in updates_by_grad(*given)],
    updates_taking_the_optimizers_out,
    updates_on_a_copy,
    lambda trunk, heads, optimizers, inputs, targets: updates_by_grad(trunk, heads, optimizers[::-1], inputs, targets),
    updates_clipped,
    *(updates_with_squares_turned, updates_from_two_samples_on),
    updates_in_pieces,
]

EQUIVALENT = {
    "updates_by_grad: first, second = losses_of(trunk(inputs), heads, targets) | mine, its = ([*trunk.parameters(), *head.parameters()] for he... -> (swapped)": "Neither of the two statements changes what the other one uses.",
    "updates_by_backward: optimizer.zero_grad() -> optimizer.zero_grad(set_to_none=False)": "A pass adds to zeros as to nothing, and what .grad holds at the end is open.",
    "updates_by_backward: for optimizer in optimizers: ... | first, second = losses_of(trunk(inputs), heads, targets) -> (swapped)": "Neither of the two statements changes what the other one uses.",
    "updates_by_backward: first.backward() | one, other = optimizers -> (swapped)": "Neither of the two statements changes what the other one uses.",
    "updates_by_difference: part.zero_grad() -> part.zero_grad(set_to_none=False)": "A pass adds to zeros as to nothing, and what .grad holds at the end is open.",
    "updates_by_difference: for part in [trunk, *heads]: ... | one, two = losses_of(trunk(inputs), heads, targets) -> (swapped)": "Neither of the two statements changes what the other one uses.",
    "updates_in_a_batch: losses = losses_of(trunk(inputs), heads, targets) | leaves = [parameter for part in (trunk, *heads) for parameter in par... -> (swapped)": "Neither of the two statements changes what the other one uses.",
    "updates_from_two_cuts: head.zero_grad() -> head.zero_grad(set_to_none=False)": "A pass adds to zeros as to nothing, and what .grad holds at the end is open.",
    "updates_from_two_cuts: loss.backward() -> loss.backward(retain_graph=True)": '"what the trunk still keeps": what a head keeps is open.',
    "updates_from_two_cuts: head.zero_grad() | cut = h.detach().requires_grad_() -> (swapped)": "Neither of the two statements changes what the other one uses.",
    "updates_from_two_cuts: found.append(torch.autograd.grad(h, list(trunk.parameters()), cut.grad, retain_graph=number == 0)) | losses.append(loss.... -> (swapped)": "Neither of the two statements changes what the other one uses.",
    "updates_by_forward.found: loss = mse_loss(head.forward(h), target) | own = [*trunk.parameters(), *head.parameters()] -> (swapped)": "Neither of the two statements changes what the other one uses.",
}

GUARDS = {
    "It returns the two losses as Python floats": {"losses' value": updates_doubled},
    "Both losses come from one forward of the trunk": {"forwards": updates_by_hidden_forwards},
    "`optimizers[0]` steps first, with the gradient of the first loss alone": {
        "order": updates_in_the_other_order,
        "first head": updates_moving_the_first,
    },
    "then `optimizers[1]`, with the gradient of the second loss alone": {"second head": updates_moving_the_second},
    "Both gradients belong to the weights before any step.": {"trunk": updates_moving_the_trunk},
    "In each update at most four passes run": {"all passes": updates_in_pieces},
    "at most two of them through the trunk": {"passes": updates_with_a_spare_pass},
    "when the second optimizer steps, the trunk keeps no bytes": {"kept": updates_retained},
    "No gradient in `.grad` has a graph when an optimizer steps.": {"recorded": updates_recorded},
    "a function leaves modes, flags, hooks": {"left": WRONG[3]},
}


def updates_keeping_no_clones(trunk, heads, optimizers, inputs, targets):
    """What is kept of the first gradient are the tensors in .grad, and the second pass adds to their zeros."""
    for optimizer in optimizers:
        optimizer.zero_grad()
    first, second = losses_of(trunk(inputs), heads, targets)
    first.backward(retain_graph=True)
    kept = [parameter.grad for parameter in trunk.parameters()]
    trunk.zero_grad(set_to_none=False)
    second.backward()
    others = [parameter.grad.clone() for parameter in trunk.parameters()]
    for step in zip(optimizers, (list(trunk.parameters()),) * 2, (kept, others), strict=True):
        step_with(*step)
    return [first.item(), second.item()]


def updates_adding_first(trunk, heads, optimizers, inputs, targets):
    """The first pass adds to .grad, and each step that follows gets what was computed for it."""
    first, second = losses_of(trunk(inputs), heads, targets)
    its = [*trunk.parameters(), *heads[1].parameters()]
    others = torch.autograd.grad(second, its, retain_graph=True)
    first.backward()
    optimizers[0].step()
    step_with(optimizers[1], its, others)
    return [first.item(), second.item()]


MISCONCEIVED |= {
    "the second gradient for both": updates_keeping_no_clones,
    "the first on top of the call before": updates_adding_first,
}
