"""Right and wrong answers to the exercises of lesson 04."""

import copy

import torch
from torch.nn.functional import cross_entropy, mse_loss

SECOND = {
    "separate": True,
    "first_retains": False,
    "second_retains": True,
    "in_one_pass": False,
    "a_third_pass": True,
    "stops_at_h": False,
    "a_again": True,
    "forward_again": False,
    "create_graph": False,
    "written_exp": False,
    "written_sin": True,
}

BYTES = {
    "nothing": 1200,
    "a_frees": 400,
    "a_retains": 1200,
    "a_retains_b_frees": 800,
    "b_retains_a_frees": 400,
    "in_one_pass": 0,
    "down_to_h": 800,
    "without_a": 800,
}


def leaving(answer, change):
    """The right answer, and a change that stays when it is done."""

    def with_a_trace(*given):
        returned = answer(*given)
        change(*given)
        return returned

    return with_a_trace


def gradients_off(*given):
    torch.set_grad_enabled(False)


def in_evaluation(model, *given):
    model.eval()


def frozen(model, *given):
    model.requires_grad_(False)


def hooked(model, *given):
    model.register_forward_hook(lambda *given: None)


def reseeded(*given):
    torch.manual_seed(0)


# one_pass


def one_pass_of_the_sum(losses, weights):
    sum(weight * loss for loss, weight in zip(losses, weights, strict=True)).backward()


def one_pass_by_seeds(losses, weights):
    torch.autograd.backward(losses, [torch.tensor(weight) for weight in weights])


def one_pass_of_a_stack(losses, weights):
    return torch.stack(losses).dot(torch.tensor(weights)).backward()


def one_pass_for_each_only_once(losses, weights):
    """A loss that is listed twice counts once."""
    sum(weight * loss for loss, weight in dict(zip(losses, weights, strict=True)).items()).backward()


def one_pass_and_one_to_free(losses, weights):
    total = sum(weight * loss for loss, weight in zip(losses, weights, strict=True))
    total.backward(retain_graph=True)
    torch.autograd.grad(total, leaves_behind(losses))


def several_passes(losses, weights):
    for number, (loss, weight) in enumerate(zip(losses, weights, strict=True), 1):
        (weight * loss).backward(retain_graph=number < len(losses))


def leaves_behind(losses):
    nodes, seen = [loss.grad_fn for loss in losses], set()
    for node in nodes:
        for before, _ in node.next_functions:
            if before is not None and before not in seen:
                seen.add(before)
                nodes.append(before)
    return [node.variable for node in dict.fromkeys(nodes) if hasattr(node, "variable")]


def one_pass_replacing(losses, weights):
    leaves = leaves_behind(losses)
    total = sum(weight * loss for loss, weight in zip(losses, weights, strict=True))
    for leaf, gradient in zip(leaves, torch.autograd.grad(total, leaves), strict=True):
        leaf.grad = gradient


def one_pass_adding(losses, weights):
    leaves = leaves_behind(losses)
    total = sum(weight * loss for loss, weight in zip(losses, weights, strict=True))
    for leaf, gradient in zip(leaves, torch.autograd.grad(total, leaves), strict=True):
        leaf.grad = gradient if leaf.grad is None else leaf.grad + gradient


def one_pass_retaining(losses, weights):
    sum(weight * loss for loss, weight in zip(losses, weights, strict=True)).backward(retain_graph=True)


def one_pass_recorded(losses, weights):
    sum(weight * loss for loss, weight in zip(losses, weights, strict=True)).backward(create_graph=True)


def one_pass_and_an_empty_list(losses, weights):
    total = 0
    while losses:
        total = total + weights.pop() * losses.pop()
    total.backward()


# loss_gradients


def gradients_by_grad(losses, parameters):
    last = len(losses) - 1
    return [torch.autograd.grad(loss, parameters, retain_graph=n < last) for n, loss in enumerate(losses)]


def gradients_from_the_end(losses, parameters):
    rows = {}
    for n in reversed(range(len(losses))):
        rows[n] = list(torch.autograd.grad(losses[n], parameters, retain_graph=n > 0))
    return [rows[n] for n in range(len(losses))]


def gradients_by_backward(losses, parameters):
    before = [parameter.grad for parameter in parameters]
    rows = []
    for n, loss in enumerate(losses, 1):
        for parameter in parameters:
            parameter.grad = None
        loss.backward(retain_graph=n < len(losses), inputs=parameters)
        rows.append([parameter.grad for parameter in parameters])
    for parameter, gradient in zip(parameters, before, strict=True):
        parameter.grad = gradient
    return rows


def gradients_in_a_batch(losses, parameters):
    stacked, seeds = torch.stack(losses), torch.eye(len(losses))
    found = torch.autograd.grad(stacked, parameters, seeds, is_grads_batched=True)
    return [[gradient[n].clone() for gradient in found] for n in range(len(losses))]


def gradients_by_seeds(losses, parameters):
    """One tensor of all losses, and a seed that picks one of them."""
    stacked, last = torch.stack(losses), len(losses) - 1
    seeds = torch.eye(len(losses))
    return tuple(torch.autograd.grad(stacked, parameters, seed, retain_graph=n < last) for n, seed in enumerate(seeds))


def gradients_that_require_one(losses, parameters):
    return [[row.requires_grad_() for row in rows] for rows in gradients_by_grad(losses, parameters)]


def gradients_recorded_but_the_last(losses, parameters):
    last = len(losses) - 1
    return [torch.autograd.grad(loss, parameters, create_graph=n < last) for n, loss in enumerate(losses)]


def gradients_always_retained(losses, parameters):
    return [torch.autograd.grad(loss, parameters, retain_graph=True) for loss in losses]


def gradients_recorded(losses, parameters):
    return [torch.autograd.grad(loss, parameters, create_graph=True) for loss in losses]


def gradients_added_up(losses, parameters):
    rows, kept = [], [(p, p.grad) for p in parameters]
    for parameter in parameters:
        parameter.grad = None
    for n, loss in enumerate(losses, 1):
        loss.backward(retain_graph=n < len(losses), inputs=parameters)
        rows.append([parameter.grad.clone() for parameter in parameters])
    for parameter, gradient in kept:
        parameter.grad = gradient
    return rows


def gradients_left_behind(losses, parameters):
    rows = []
    for n, loss in enumerate(losses, 1):
        for parameter in parameters:
            parameter.grad = None
        loss.backward(retain_graph=n < len(losses), inputs=parameters)
        rows.append([parameter.grad.clone() for parameter in parameters])
    return rows


def gradients_never_retained(losses, parameters):
    return [torch.autograd.grad(loss, parameters) for loss in losses]


def gradients_of_the_sum(losses, parameters):
    rows = torch.autograd.grad(sum(losses), parameters)
    return [rows for _ in losses]


def gradients_through_all(losses, parameters):
    """Touches .grad of the heads."""
    before = [parameter.grad for parameter in parameters]
    rows = []
    for n, loss in enumerate(losses, 1):
        for parameter in parameters:
            parameter.grad = None
        loss.backward(retain_graph=n < len(losses))
        rows.append([parameter.grad for parameter in parameters])
    for parameter, gradient in zip(parameters, before, strict=True):
        parameter.grad = gradient
    return rows


def gradients_by_a_spare_pass(losses, parameters):
    rows = gradients_always_retained(losses, parameters)
    torch.autograd.grad(sum(losses), parameters)  # only to free
    return rows


# fit_scale


def fit_inside(model, log_scale, optimizer, batches):
    losses = []
    for inputs, targets in batches:
        loss = cross_entropy(log_scale.exp() * model(inputs), targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def fit_by_grad(model, log_scale, optimizer, batches):
    leaves = [*model.parameters(), log_scale]

    def step(inputs, targets):
        loss = cross_entropy(model(inputs) * torch.exp(log_scale), targets)
        for leaf, gradient in zip(leaves, torch.autograd.grad(loss, leaves), strict=True):
            leaf.grad = gradient
        optimizer.step()
        return float(loss)

    return [step(*batch) for batch in batches]


def fit_by_closure(model, log_scale, optimizer, batches):
    losses = []
    for inputs, targets in batches:

        def closure(inputs=inputs, targets=targets):
            optimizer.zero_grad(set_to_none=False)
            loss = cross_entropy(model(inputs) * log_scale.exp(), targets)
            loss.backward()
            return loss

        losses.append(optimizer.step(closure).item())
    return losses


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


def fit_with_its_own_optimizer(model, log_scale, optimizer, batches):
    own = torch.optim.SGD([*model.parameters(), log_scale], lr=0.4, momentum=0.5)
    return fit_inside(model, log_scale, own, batches)


def fit_a_copy(model, log_scale, optimizer, batches):
    return fit_inside(copy.deepcopy(model), log_scale, optimizer, batches)


def fitter(scale_of=lambda log_scale: log_scale.exp(), once=False, **options):
    """The loop with one thing wrong."""

    def fit_scale(model, log_scale, optimizer, batches):
        losses, first = [], scale_of(log_scale)
        for inputs, targets in batches:
            scale = first if once else scale_of(log_scale)
            loss = cross_entropy(scale * model(inputs), targets)
            optimizer.zero_grad()
            loss.backward(**options)
            optimizer.step()
            losses.append(loss.item())
        return losses

    return fit_scale


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


def fit_and_keep(model, log_scale, optimizer, batches):
    losses = []
    for inputs, targets in batches:
        loss = cross_entropy(log_scale.exp() * model(inputs), targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss)
    return [loss.item() for loss in losses]


# train_chunks


def chunks_detached_after(lstm, readout, optimizer, chunks, state):
    losses = []
    for inputs, targets in chunks:
        outputs, state = lstm(inputs, state)
        state = tuple(part.detach() for part in state)
        loss = mse_loss(readout(outputs), targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses, state


def chunks_detached_before(lstm, readout, optimizer, chunks, state):
    losses = []
    for inputs, targets in chunks:
        h, c = state
        outputs, state = lstm(inputs, hx=(h.detach(), c.detach()))
        optimizer.zero_grad()
        loss = torch.mean((readout(outputs) - targets) ** 2)
        loss.backward()
        optimizer.step()
        losses += [float(loss)]
    h, c = state
    return [losses, (h.data, c.data)]


def chunks_by_copies(lstm, readout, optimizer, chunks, state):
    """New tensors from the numbers, and passes that put gradients where the optimizer looks."""
    parameters = [*lstm.parameters(), *readout.parameters()]
    losses = []
    for inputs, targets in chunks:
        outputs, end = lstm(inputs, state)
        loss = mse_loss(readout(outputs), targets)
        for parameter, gradient in zip(parameters, torch.autograd.grad(loss, parameters), strict=True):
            parameter.grad = gradient
        optimizer.step()
        with torch.no_grad():
            state = tuple(part.clone() for part in end)
        losses.append(loss.item())
    return losses, state


def chunks_detached_in_place(lstm, readout, optimizer, chunks, state):
    losses = []
    for inputs, targets in chunks:
        outputs, state = lstm(inputs, state)
        loss = mse_loss(readout(outputs), targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        for part in state:
            part.detach_()
    return losses, state


def chunks_zeroing_between(lstm, readout, optimizer, chunks, state):
    losses = []
    for inputs, targets in chunks:
        outputs, state = lstm(inputs, detach_both(state, None))
        loss = mse_loss(readout(outputs), targets)
        loss.backward()
        optimizer.zero_grad()
        optimizer.step()
        losses.append(loss.item())
    return losses, detach_both(state, None)


def chunks_moment_by_moment(lstm, readout, optimizer, chunks, state):
    """The state is cut after each moment."""
    losses = []
    for inputs, targets in chunks:
        outputs = []
        for moment in inputs.split(1, dim=1):
            output, state = lstm(moment, detach_both(state, None))
            outputs.append(output)
        loss = mse_loss(readout(torch.cat(outputs, dim=1)), targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses, detach_both(state, None)


def chunks_with_states_of_the_new_weights(lstm, readout, optimizer, chunks, state):
    losses = []
    for inputs, targets in chunks:
        outputs, _ = lstm(inputs, state)
        loss = mse_loss(readout(outputs), targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        with torch.no_grad():
            _, state = lstm(inputs, state)
    return losses, state


def chunker(carry, through=lambda outputs: outputs, finish=lambda state: state, **options):
    """The loop with one thing wrong."""

    def train_chunks(lstm, readout, optimizer, chunks, state):
        losses, first = [], state
        for inputs, targets in chunks:
            outputs, state = lstm(inputs, state)
            loss = mse_loss(readout(through(outputs)), targets)
            optimizer.zero_grad()
            loss.backward(**options)
            optimizer.step()
            losses.append(loss.item())
            last, state = state, carry(state, first)
        return losses, finish(tuple(part.detach() for part in last))

    return train_chunks


def detach_both(state, first):
    return tuple(part.detach() for part in state)


def chunks_returned_with_graph(lstm, readout, optimizer, chunks, state):
    losses = []
    for inputs, targets in chunks:
        outputs, state = lstm(inputs, tuple(part.detach() for part in state))
        loss = mse_loss(readout(outputs), targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses, state


def chunks_in_one_pass(lstm, readout, optimizer, chunks, state):
    losses, total = [], 0
    for inputs, targets in chunks:
        outputs, state = lstm(inputs, state)
        loss = mse_loss(readout(outputs), targets)
        total = total + loss
        losses.append(loss.item())
    optimizer.zero_grad()
    total.backward()
    optimizer.step()
    return losses, detach_both(state, None)


def chunks_with_fresh_states(lstm, readout, optimizer, chunks, state):
    """Runs the whole sequence again for each state."""
    losses, done = [], []
    for inputs, targets in chunks:
        with torch.no_grad():
            now = state
            for before in done:
                _, now = lstm(before, now)
        outputs, end = lstm(inputs, now)
        loss = mse_loss(readout(outputs), targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        done.append(inputs)
    return losses, detach_both(end, None)


# two_updates


def updates_by_grad(trunk, heads, optimizers, inputs, targets):
    h = trunk(inputs)
    losses = [mse_loss(head(h), target) for head, target in zip(heads, targets, strict=True)]
    lists = [[*trunk.parameters(), *head.parameters()] for head in heads]
    first = torch.autograd.grad(losses[0], lists[0], retain_graph=True)
    second = torch.autograd.grad(losses[1], lists[1])
    for parameters, gradients, optimizer in zip(lists, (first, second), optimizers, strict=True):
        for parameter, gradient in zip(parameters, gradients, strict=True):
            parameter.grad = gradient
        optimizer.step()
    return [loss.item() for loss in losses]


def updates_by_backward(trunk, heads, optimizers, inputs, targets):
    """Two backward passes, the trunk's gradients of the second set aside while the first optimizer steps."""
    h = trunk(inputs)
    loss_a, loss_b = (mse_loss(head(h), target) for head, target in zip(heads, targets, strict=True))
    for optimizer in optimizers:
        optimizer.zero_grad()
    loss_b.backward(retain_graph=True)
    aside = [parameter.grad for parameter in trunk.parameters()]
    for parameter in trunk.parameters():
        parameter.grad = None
    loss_a.backward()
    optimizers[0].step()
    for parameter, gradient in zip(trunk.parameters(), aside, strict=True):
        parameter.grad = gradient
    optimizers[1].step()
    return float(loss_a), float(loss_b)


def updates_by_difference(trunk, heads, optimizers, inputs, targets):
    """The second pass adds; the first gradient is subtracted."""
    h = trunk(inputs)
    losses = [mse_loss(head(h), target) for head, target in zip(heads, targets, strict=True)]
    trunk.zero_grad()
    for head in heads:
        head.zero_grad()
    losses[0].backward(retain_graph=True)
    first = [parameter.grad.clone() for parameter in trunk.parameters()]
    losses[1].backward()
    both = [parameter.grad.clone() for parameter in trunk.parameters()]
    for parameter, gradient in zip(trunk.parameters(), first, strict=True):
        parameter.grad = gradient
    optimizers[0].step()
    for parameter, gradient, total in zip(trunk.parameters(), first, both, strict=True):
        parameter.grad = total - gradient
    optimizers[1].step()
    return [loss.item() for loss in losses]


def updates_in_a_batch(trunk, heads, optimizers, inputs, targets):
    """One pass for both gradients."""
    h = trunk(inputs)
    losses = [mse_loss(head(h), target) for head, target in zip(heads, targets, strict=True)]
    owned = [list(part.parameters()) for part in (trunk, *heads)]
    leaves = [parameter for part in owned for parameter in part]
    found = torch.autograd.grad(torch.stack(losses), leaves, torch.eye(2), is_grads_batched=True)
    gradients = dict(zip(leaves, found, strict=True))
    for number, optimizer in enumerate(optimizers):
        for parameter in [*owned[0], *owned[1 + number]]:
            parameter.grad = gradients[parameter][number].clone()
        optimizer.step()
    return [loss.item() for loss in losses]


def updates_from_two_cuts(trunk, heads, optimizers, inputs, targets):
    """Each head works on a cut of its own, and hands its seed to the trunk."""
    h, losses, found = trunk(inputs), [], []
    for number, (head, target) in enumerate(zip(heads, targets, strict=True)):
        cut = h.detach().requires_grad_()
        head.zero_grad()
        loss = mse_loss(head(cut), target)
        loss.backward()
        losses.append(loss.item())
        found.append(torch.autograd.grad(h, list(trunk.parameters()), cut.grad, retain_graph=number == 0))
    for optimizer, gradients in zip(optimizers, found, strict=True):
        for parameter, gradient in zip(trunk.parameters(), gradients, strict=True):
            parameter.grad = gradient
        optimizer.step()
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


def updates_two_forwards(trunk, heads, optimizers, inputs, targets):
    losses = [mse_loss(head(trunk(inputs)), target) for head, target in zip(heads, targets, strict=True)]
    lists = [[*trunk.parameters(), *head.parameters()] for head in heads]
    found = [torch.autograd.grad(loss, own) for loss, own in zip(losses, lists, strict=True)]
    for parameters, gradients, optimizer in zip(lists, found, optimizers, strict=True):
        for parameter, gradient in zip(parameters, gradients, strict=True):
            parameter.grad = gradient
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


# split_at_trunk


def split_by_a_leaf(trunk, heads, inputs):
    h = trunk(inputs)
    cut = h.detach().requires_grad_()
    losses = []
    for head in heads:
        loss = head(cut)
        loss.backward()
        losses.append(loss.item())
    h.backward(cut.grad)
    return losses


def split_by_grad(trunk, heads, inputs):
    """Each head's pass stops at h, which stays in the graph."""
    h = trunk(inputs)
    arrived, losses = torch.zeros_like(h), []
    for head in heads:
        parameters = list(head.parameters())
        loss = head(h)
        mine, *own = torch.autograd.grad(loss, [h, *parameters])
        for parameter, gradient in zip(parameters, own, strict=True):
            parameter.grad = gradient if parameter.grad is None else parameter.grad + gradient
        arrived += mine
        losses.append(float(loss))
    torch.autograd.backward(h, arrived)
    return losses


def split_with_inputs(trunk, heads, inputs):
    h = trunk(inputs)
    h.retain_grad()
    losses = []
    for head in heads:
        loss = head(h)
        loss.backward(inputs=[h, *head.parameters()])
        losses.append(loss.item())
    arrived, h.grad = h.grad, None
    h.backward(arrived)
    return tuple(losses)


def split_with_a_cut_each(trunk, heads, inputs):
    h, arrived, losses = trunk(inputs), 0, []
    for head in heads:
        cut = h.detach().clone().requires_grad_()
        loss = head(cut)
        loss.backward()
        arrived = arrived + cut.grad
        losses.append(loss.item())
    (h * arrived).sum().backward()
    return losses


def splitter(joined=True, **options):
    def split_at_trunk(trunk, heads, inputs):
        h = trunk(inputs)
        cut = h.detach().requires_grad_()
        losses = []
        for head in heads:
            loss = head(cut)
            loss.backward(**options)
            losses.append(loss.item())
        if joined:
            h.backward(cut.grad)
        return losses

    return split_at_trunk


def heads_through_the_trunk(trunk, heads, inputs):
    h, losses = trunk(inputs), []
    for number, head in enumerate(heads, 1):
        loss = head(h)
        loss.backward(retain_graph=number < len(heads))
        losses.append(loss.item())
    return losses


def heads_at_once(trunk, heads, inputs):
    h = trunk(inputs)
    losses = [head(h) for head in heads]
    sum(losses).backward()
    return [loss.item() for loss in losses]


def split_late(trunk, heads, inputs):
    """Cut, but all heads run before the first pass."""
    h = trunk(inputs)
    cut = h.detach().requires_grad_()
    losses = [head(cut) for head in heads]
    for loss in losses:
        loss.backward()
    h.backward(cut.grad)
    return [loss.item() for loss in losses]


def split_keeping_one(trunk, heads, inputs):
    """Only the last head's gradient is handed on."""
    h, losses = trunk(inputs), []
    for head in heads:
        cut = h.detach().requires_grad_()
        loss = head(cut)
        loss.backward()
        losses.append(loss.item())
    h.backward(cut.grad)
    return losses


def split_with_checkpoints(trunk, heads, inputs):
    """Heads are recomputed."""
    from torch.utils.checkpoint import checkpoint

    h = trunk(inputs)
    losses = [checkpoint(head, h, use_reentrant=False) for head in heads]
    sum(losses).backward()
    return [loss.item() for loss in losses]


def split_twice_forward(trunk, heads, inputs):
    with torch.no_grad():
        cut = trunk(inputs)
    cut.requires_grad_()
    losses = []
    for head in heads:
        loss = head(cut)
        loss.backward()
        losses.append(loss.item())
    trunk(inputs).backward(cut.grad)
    return losses


def split_after_zeroing(trunk, heads, inputs):
    trunk.zero_grad()
    return split_by_a_leaf(trunk, heads, inputs)


def split_replacing(trunk, heads, inputs):
    """The trunk's gradients replace what .grad held."""
    h = trunk(inputs)
    cut = h.detach().requires_grad_()
    losses = []
    for head in heads:
        loss = head(cut)
        loss.backward()
        losses.append(loss.item())
    parameters = list(trunk.parameters())
    for parameter, gradient in zip(parameters, torch.autograd.grad(h, parameters, cut.grad), strict=True):
        parameter.grad = gradient
    return losses


RIGHT = {
    "predict_second_pass": [SECOND, {name: torch.tensor(value) for name, value in SECOND.items()}],
    "predict_kept_bytes": [BYTES, {name: float(value) for name, value in BYTES.items()}],
    "one_pass": [one_pass_of_the_sum, one_pass_by_seeds, one_pass_of_a_stack, one_pass_adding],
    "loss_gradients": [
        gradients_by_grad,
        gradients_from_the_end,
        gradients_by_backward,
        gradients_in_a_batch,
        gradients_by_seeds,
    ],
    "fit_scale": [fit_inside, fit_by_grad, fit_by_closure, fit_zeroing_after],
    "train_chunks": [chunks_detached_after, chunks_detached_before, chunks_by_copies, chunks_detached_in_place],
    "two_updates": [
        updates_by_grad,
        updates_by_backward,
        updates_by_difference,
        updates_in_a_batch,
        updates_from_two_cuts,
    ],
    "split_at_trunk": [split_by_a_leaf, split_by_grad, split_with_inputs, split_with_a_cut_each],
}

MISCONCEIVED = {
    ("predict_second_pass", "the flag of the later pass"): {**SECOND, "first_retains": True, "second_retains": False},
    ("predict_second_pass", "retained for good"): {**SECOND, "a_third_pass": False},
    ("predict_second_pass", "every pass frees all"): {**SECOND, "stops_at_h": True, "forward_again": True},
    ("predict_second_pass", "any write"): {**SECOND, "written_exp": True},
    ("predict_kept_bytes", "the last pass clears all"): {**BYTES, "a_retains_b_frees": 0, "b_retains_a_frees": 0},
    ("predict_kept_bytes", "counted by node"): {**BYTES, "nothing": 1600, "a_retains": 1600},
    ("predict_kept_bytes", "h survives"): {**BYTES, "a_frees": 800, "b_retains_a_frees": 800},
    ("one_pass", "a pass for each loss"): several_passes,
    ("one_pass", "weights left out"): lambda losses, weights: sum(losses).backward(),
    ("one_pass", "old gradients lost"): one_pass_replacing,
    ("one_pass", "retained for nothing"): one_pass_retaining,
    ("loss_gradients", "retained to the end"): gradients_always_retained,
    ("loss_gradients", "added up"): gradients_added_up,
    ("loss_gradients", "traces in .grad"): gradients_left_behind,
    ("loss_gradients", "create_graph to keep the graph"): gradients_recorded,
    ("fit_scale", "a stale scale"): fitter(once=True, retain_graph=True),
    ("fit_scale", "the scale made a constant"): fitter(lambda log_scale: log_scale.exp().detach()),
    ("fit_scale", "retained for nothing"): fitter(retain_graph=True),
    ("train_chunks", "the state thrown away"): chunker(lambda state, first: None),
    ("train_chunks", "the first state again"): chunker(lambda state, first: first),
    ("train_chunks", "cut inside the chunk"): chunker(detach_both, lambda outputs: outputs.detach()),
    ("train_chunks", "retained for nothing"): chunker(detach_both, retain_graph=True),
    ("two_updates", "gradients mixed"): updates_mixed,
    ("two_updates", "a forward with new weights"): updates_with_new_weights,
    ("two_updates", "retained to the end"): updates_retained,
    ("split_at_trunk", "through the trunk each time"): heads_through_the_trunk,
    ("split_at_trunk", "all heads at once"): heads_at_once,
    ("split_at_trunk", "cut and not joined"): splitter(joined=False),
}

WRONG = {
    "predict_second_pass": [dict.fromkeys(SECOND, True), dict.fromkeys(SECOND, False), list(SECOND.values())],
    "predict_kept_bytes": [dict.fromkeys(BYTES, 0), dict.fromkeys(BYTES, 1200), {**BYTES, "without_a": 1200}],
    "one_pass": [
        leaving(one_pass_of_the_sum, gradients_off),
        leaving(one_pass_of_the_sum, reseeded),
        leaving(one_pass_of_the_sum, lambda losses, weights: losses[0].register_hook(lambda gradient: None)),
        one_pass_and_an_empty_list,
        one_pass_recorded,
        one_pass_for_each_only_once,
        one_pass_and_one_to_free,
        lambda losses, weights: torch.stack(losses).mean().backward(),
        lambda losses, weights: (one_pass_of_the_sum(losses[:1], weights), None)[1],
        lambda losses, weights: sum(w * loss.item() for loss, w in zip(losses, weights, strict=True)),
        lambda losses, weights: sum(w * loss for loss, w in zip(losses, weights, strict=True)),
    ],
    "loss_gradients": [
        leaving(gradients_by_grad, gradients_off),
        leaving(gradients_by_grad, lambda losses, parameters: parameters[0].requires_grad_(False)),
        leaving(gradients_by_grad, lambda losses, parameters: parameters[0].register_hook(lambda gradient: None)),
        gradients_that_require_one,
        gradients_recorded_but_the_last,
        gradients_never_retained,
        gradients_of_the_sum,
        gradients_through_all,
        gradients_by_a_spare_pass,
        lambda losses, parameters: gradients_by_grad(losses, parameters)[::-1],
        lambda losses, parameters: list(zip(*gradients_by_grad(losses, parameters), strict=True)),
        lambda losses, parameters: [torch.cat([g.flatten() for g in r]) for r in gradients_by_grad(losses, parameters)],
    ],
    "fit_scale": [
        *(leaving(fit_inside, change) for change in (gradients_off, in_evaluation, frozen, hooked, reseeded)),
        leaving(fit_inside, lambda model, log_scale, optimizer, batches: optimizer.param_groups[0].update(lr=0.1)),
        fit_zeroing_between,
        fit_with_its_own_optimizer,
        fit_a_copy,
        fit_without_zeroing,
        fit_one_step_late,
        fit_and_keep,
        fitter(once=True),
        fitter(lambda log_scale: log_scale),
        fitter(lambda log_scale: log_scale.exp().detach().requires_grad_()),
        lambda model, log_scale, optimizer, batches: [0.0 for _ in batches],
    ],
    "train_chunks": [
        *(leaving(chunks_detached_after, change) for change in (gradients_off, in_evaluation, frozen, hooked)),
        chunks_zeroing_between,
        chunks_moment_by_moment,
        chunks_with_states_of_the_new_weights,
        chunks_returned_with_graph,
        chunks_in_one_pass,
        chunks_with_fresh_states,
        chunker(lambda state, first: state),
        chunker(lambda state, first: state, retain_graph=True),
        chunker(lambda state, first: (state[0].detach(), state[1]), retain_graph=True),
        chunker(lambda state, first: (state[0].detach(), state[1])),
        chunker(lambda state, first: (state[0].detach(), first[1])),
        chunker(detach_both, finish=lambda state: state[0]),
        chunker(lambda state, first: tuple(torch.zeros_like(part) for part in state)),
    ],
    "two_updates": [
        *(leaving(updates_by_grad, change) for change in (gradients_off, in_evaluation, frozen, hooked)),
        updates_without_zeroing,
        updates_with_a_spare_pass,
        updates_of_the_sum,
        updates_broken,
        updates_two_forwards,
        updates_on_a_copy,
        updates_with_the_trunk_cut,
        lambda trunk, heads, optimizers, inputs, targets: updates_by_grad(
            trunk, heads, optimizers[::-1], inputs, targets
        ),
    ],
    "split_at_trunk": [
        *(leaving(split_by_a_leaf, change) for change in (gradients_off, in_evaluation, frozen, hooked)),
        leaving(split_by_a_leaf, lambda trunk, heads, inputs: heads.reverse()),
        split_after_zeroing,
        split_replacing,
        split_late,
        split_keeping_one,
        split_with_checkpoints,
        split_twice_forward,
        splitter(retain_graph=True),
        lambda trunk, heads, inputs: (split_by_a_leaf(trunk, heads, inputs), trunk)[0][:-1],
        lambda trunk, heads, inputs: [torch.tensor(loss) for loss in split_by_a_leaf(trunk, heads, inputs)],
        lambda trunk, heads, inputs: split_by_a_leaf(trunk, heads, inputs.detach()),
    ],
}
