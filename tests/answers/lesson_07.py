"""Right and wrong answers to the exercises of lesson 07."""

import copy
import itertools

import torch
from torch import nn
from torch.func import functional_call, grad, vmap
from torch.nn.functional import cross_entropy
from torch.nn.utils import clip_grad_norm_, clip_grad_value_, get_total_norm

GRADS = {
    "fresh": None,
    "twice": 7.0,
    "two_uses": 5.0,
    "times_zero": 0.0,
    "unused": None,
    "by_grad": None,
    "stepped": 3.0,
    "cleared": None,
    "cleared_then": 4.0,
    "filled": 0.0,
    "filled_fresh": None,
    "frozen": 3.0,
    "kept_added": 7.0,
    "kept_cleared": 3.0,
    "kept_filled": 0.0,
}

MOVES = {
    "sgd_none": False,
    "sgd_zero": False,
    "momentum_none": False,
    "momentum_zero": True,
    "decay_none": False,
    "decay_zero": True,
    "adam_none": False,
    "adam_zero": True,
    "adam_fresh_zero": False,
    "adamw_fresh_zero": True,
    "frozen_left": True,
    "frozen_none": False,
}


# train_in_windows


def windows_cleared_after_the_step(model, optimizer, micro_batches, every):
    losses, total = [], 0.0
    optimizer.zero_grad()
    for number, (inputs, targets) in enumerate(micro_batches, start=1):
        loss = cross_entropy(model(inputs), targets) / every
        loss.backward()
        total += loss.item()
        if number % every == 0:
            optimizer.step()
            optimizer.zero_grad()
            losses.append(total)
            total = 0.0
    return losses


def windows_cleared_before_the_first(model, optimizer, micro_batches, every):
    """In nested loops, with zeros in place of None."""
    losses = []
    for start in range(0, len(micro_batches), every):
        model.zero_grad(set_to_none=False)
        parts = []
        for inputs, targets in micro_batches[start : start + every]:
            loss = cross_entropy(model(inputs), targets)
            (loss / every).backward()
            parts.append(loss.item())
        optimizer.step()
        losses.append(sum(parts) / len(parts))
    return losses


def windows_divided_at_the_step(model, optimizer, micro_batches, every):
    losses, parts = [], []
    for number, (inputs, targets) in enumerate(micro_batches):
        if number % every == 0:
            optimizer.zero_grad()
        loss = cross_entropy(model(inputs), targets)
        loss.backward()
        parts.append(loss.detach())
        if (number + 1) % every == 0:
            for parameter in model.parameters():
                if parameter.grad is not None:
                    parameter.grad /= every
            optimizer.step()
            losses.append(float(sum(parts)) / every)
            parts = []
    return losses


def window_loop(
    clear=lambda number, every: number % every == 0,
    scale=lambda loss, every: loss / every,
    step=lambda number, every: (number + 1) % every == 0,
    **options,
):
    """A loop with one thing wrong."""

    def train(model, optimizer, micro_batches, every):
        losses, total = [], 0.0
        for number, (inputs, targets) in enumerate(micro_batches):
            if clear(number, every):
                optimizer.zero_grad()
            loss = cross_entropy(model(inputs), targets)
            scale(loss, every).backward(**options)
            total += loss.item() / every
            if step(number, every):
                optimizer.step()
            if (number + 1) % every == 0:
                losses.append(total)
                total = 0.0
        return losses

    return train


def broken_windows(model, optimizer, micro_batches, every):
    losses = []
    for number, (inputs, targets) in enumerate(micro_batches, start=1):
        optimizer.zero_grad()
        loss = cross_entropy(model(inputs), targets)
        loss.backward()
        if number % every == 0:
            optimizer.step()
            losses.append(loss.item())
    return losses


def windows_without_the_first_clear(model, optimizer, micro_batches, every):
    return window_loop(clear=lambda number, every: number % every == 0 and number > 0)(
        model, optimizer, micro_batches, every
    )


def windows_as_one_batch(model, optimizer, micro_batches, every):
    losses = []
    for start in range(0, len(micro_batches), every):
        inputs, targets = (torch.cat(parts) for parts in zip(*micro_batches[start : start + every], strict=True))
        optimizer.zero_grad()
        loss = cross_entropy(model(inputs), targets)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def windows_in_one_pass(model, optimizer, micro_batches, every):
    losses = []
    for start in range(0, len(micro_batches), every):
        optimizer.zero_grad()
        loss = sum(cross_entropy(model(x), y) for x, y in micro_batches[start : start + every]) / every
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


# accumulate


def accumulate_by_share(model, micro_batches):
    model.zero_grad()
    count = sum(len(targets) for _, targets in micro_batches)
    total = 0.0
    for inputs, targets in micro_batches:
        loss = cross_entropy(model(inputs), targets) * len(targets) / count
        loss.backward()
        total += loss.item()
    return total


def accumulate_sums(model, micro_batches):
    """Sums of losses first, one division of gradients at the end."""
    for parameter in model.parameters():
        parameter.grad = None
    count, total = 0, 0.0
    for inputs, targets in micro_batches:
        loss = cross_entropy(model(inputs), targets, reduction="sum")
        loss.backward()
        count += len(inputs)
        total += loss.item()
    for parameter in model.parameters():
        if parameter.grad is not None:
            parameter.grad.div_(count)
    return total / count


def accumulate_by_grad(model, micro_batches):
    """autograd.grad, added up by hand."""
    model.zero_grad()
    return accumulate_where_live(model, micro_batches)


def accumulate_where_live(model, micro_batches):
    """Leaves old gradients in parameters that are frozen."""
    live = [(name, p) for name, p in model.named_parameters() if p.requires_grad]
    sums, count, total = [None] * len(live), sum(len(x) for x, _ in micro_batches), 0.0
    for inputs, targets in micro_batches:
        loss = cross_entropy(model(inputs), targets, reduction="sum") / count
        parts = torch.autograd.grad(loss, [p for _, p in live], allow_unused=True)
        sums = [part if old is None else old if part is None else old + part for old, part in zip(sums, parts)]  # noqa: B905
        total += float(loss.detach())
    for (_, parameter), value in zip(live, sums, strict=True):
        parameter.grad = value
    return total


def accumulator(weight, clear=True, **options):
    """An accumulation with one thing wrong."""

    def accumulate(model, micro_batches):
        if clear:
            model.zero_grad()
        count, total = sum(len(targets) for _, targets in micro_batches), 0.0
        for inputs, targets in micro_batches:
            loss = cross_entropy(model(inputs), targets)
            (loss * weight(len(targets), count, len(micro_batches))).backward(**options)
            total += loss.item() * len(targets) / count
        return total

    return accumulate


def share(size, count, number):
    return size / count


def accumulate_in_one_graph(model, micro_batches):
    model.zero_grad()
    count = sum(len(targets) for _, targets in micro_batches)
    loss = sum(cross_entropy(model(x), y, reduction="sum") for x, y in micro_batches) / count
    loss.backward()
    return loss.item()


def accumulate_one_batch(model, micro_batches):
    model.zero_grad()
    inputs, targets = (torch.cat(parts) for parts in zip(*micro_batches, strict=True))
    loss = cross_entropy(model(inputs), targets)
    loss.backward()
    return loss.item()


def accumulate_one_by_one(model, micro_batches):
    return accumulate_by_share(model, [(x[None], y[None]) for xs, ys in micro_batches for x, y in zip(xs, ys)])  # noqa: B905


def accumulate_and_step(model, micro_batches):
    total = accumulate_by_share(model, micro_batches)
    torch.optim.SGD(model.parameters(), lr=0.1).step()
    return total


def accumulate_with_zeros(model, micro_batches):
    total = accumulate_by_share(model, micro_batches)
    for parameter in model.parameters():
        if parameter.grad is None:
            parameter.grad = torch.zeros_like(parameter)
    return total


def accumulate_thawed(model, micro_batches):
    model.requires_grad_(True)
    return accumulate_by_share(model, micro_batches)


def accumulate_in_eval(model, micro_batches):
    model.eval()
    return accumulate_by_share(model, micro_batches)


def accumulate_filling_zeros(model, micro_batches):
    """Old gradients of parameters that take no part become zeros, not None."""
    model.zero_grad(set_to_none=False)
    return accumulator(share, clear=False)(model, micro_batches)


def seeded(answer):
    """The right answer, with the random numbers of everybody else started anew."""

    def run(*given):
        torch.manual_seed(0)
        return answer(*given)

    return run


def windows_on_inputs_that_require(model, optimizer, micro_batches, every):
    for inputs, _ in micro_batches:
        inputs.requires_grad_()
    return windows_cleared_after_the_step(model, optimizer, micro_batches, every)


def windows_that_change_inputs(model, optimizer, micro_batches, every):
    losses = windows_cleared_after_the_step(model, optimizer, micro_batches, every)
    for inputs, _ in micro_batches:
        inputs.zero_()
    return losses


# train_clipped


def clipped_once(model, optimizer, scheduler, windows, max_norm):
    norms = []
    for window in windows:
        optimizer.zero_grad()
        for inputs, targets in window:
            loss = cross_entropy(model(inputs), targets) / len(window)
            loss.backward()
        norm = clip_grad_norm_(model.parameters(), max_norm)
        optimizer.step()
        scheduler.step()
        norms.append(norm.item())
    return norms


def clipped_by_hand(model, optimizer, scheduler, windows, max_norm):
    norms = []
    model.zero_grad()
    for window in windows:
        for inputs, targets in window:
            cross_entropy(model(inputs), targets).div(len(window)).backward()
        parts = [p.grad for p in model.parameters() if p.grad is not None]
        norm = sum(float((part**2).sum()) for part in parts) ** 0.5
        if norm > max_norm:
            for part in parts:
                part *= max_norm / norm
        norms.append(norm)
        optimizer.step()
        optimizer.zero_grad()
        scheduler.step()
    return norms


def clipper(inner=None, before=None, after=None, weight=True, inner_schedule=False, first=False, **options):
    """A loop with one thing wrong. `inner`, `before`, `after` are ways to clip at three places."""

    def train(model, optimizer, scheduler, windows, max_norm):
        norms = []
        for window in windows:
            optimizer.zero_grad()
            for inputs, targets in window:
                loss = cross_entropy(model(inputs), targets)
                (loss / len(window) if weight else loss).backward(**options)
                if inner:
                    inner(model.parameters(), max_norm)
                if inner_schedule:
                    scheduler.step()
            norms.append(get_total_norm([p.grad for p in model.parameters() if p.grad is not None]).item())
            if before:
                before(model.parameters(), max_norm)
            if first:
                scheduler.step()
            optimizer.step()
            if after:
                after(model.parameters(), max_norm)
            if not (inner_schedule or first):
                scheduler.step()
        return norms

    return train


def clip_each(parameters, max_norm):
    for parameter in parameters:
        clip_grad_norm_([parameter], max_norm)


def clipped_with_steps_inside(model, optimizer, scheduler, windows, max_norm):
    norms = []
    for window in windows:
        norm = None
        for inputs, targets in window:
            optimizer.zero_grad()
            cross_entropy(model(inputs), targets).backward()
            norm = clip_grad_norm_(model.parameters(), max_norm)
            optimizer.step()
        scheduler.step()
        norms.append(norm.item())
    return norms


def clipped_norms_after(model, optimizer, scheduler, windows, max_norm):
    return [min(norm, max_norm) for norm in clipped_once(model, optimizer, scheduler, windows, max_norm)]


# step_in_backward


def step_by_hook(model, lr):
    def step(parameter):
        with torch.no_grad():
            parameter -= lr * parameter.grad
        parameter.grad = None

    return [p.register_post_accumulate_grad_hook(step) for p in model.parameters() if p.requires_grad]


def step_by_optimizers(model, lr):
    """One optimizer for each parameter, as in PyTorch's tutorial."""
    optimizers = {p: torch.optim.SGD([p], lr=lr) for p in model.parameters() if p.requires_grad}

    def step(parameter):
        optimizers[parameter].step()
        optimizers[parameter].zero_grad()

    handles = []
    for parameter in optimizers:
        handles.append(parameter.register_post_accumulate_grad_hook(step))
    return tuple(handles)


def step_by_node_hooks(model, lr):
    """Hooks on the AccumulateGrad nodes. The nodes are kept alive by the hooks' own function."""
    handles = []
    for parameter in model.parameters():
        if not parameter.requires_grad:
            continue
        node = torch.autograd.graph.get_gradient_edge(parameter).node

        def step(inputs, outputs, parameter=parameter, node=node):
            parameter.data.add_(parameter.grad, alpha=-lr)
            parameter.grad = None

        handles.append(node.register_hook(step))
    return handles


def hooked(hook, choose=lambda p: p.requires_grad, register="register_post_accumulate_grad_hook"):
    """Hooks with one thing wrong."""

    def step_in_backward(model, lr):
        return [
            getattr(p, register)(lambda arrived, p=p: hook(p, lr, arrived)) for p in model.parameters() if choose(p)
        ]

    return step_in_backward


def move(p, lr, arrived):
    with torch.no_grad():
        p -= lr * p.grad


def move_and_free(p, lr, arrived):
    move(p, lr, arrived)
    p.grad = None


def move_and_zero(p, lr, arrived):
    move(p, lr, arrived)
    p.grad.zero_()


def only_free(p, lr, arrived):
    (p - lr * p.grad).detach()
    p.grad = None


def move_by_arrival(p, lr, arrived):
    with torch.no_grad():
        p -= lr * arrived


def step_at_the_end(model, lr):
    """Waits until all gradients are there."""
    live = [p for p in model.parameters() if p.requires_grad]

    def step(parameter):
        if sum(p.grad is not None for p in live) == 2:
            for p in live:
                if p.grad is not None:
                    move_and_free(p, lr, None)

    return [p.register_post_accumulate_grad_hook(step) for p in live]


def step_keeping_gradients(model, lr):
    """Nothing waits in .grad, and all gradients wait in a list."""
    kept = []

    def step(parameter):
        kept.append(parameter.grad)
        move_and_free(parameter, lr, None)

    return [p.register_post_accumulate_grad_hook(step) for p in model.parameters() if p.requires_grad]


def step_after_the_pass(model, lr):
    """Gradients wait in a dict, and all parameters move when the pass is over."""
    kept = {}

    def move_all():
        with torch.no_grad():
            for parameter, gradient in kept.items():
                parameter -= lr * gradient
        kept.clear()

    def step(parameter):
        if not kept:
            torch.autograd.Variable._execution_engine.queue_callback(move_all)
        kept[parameter] = parameter.grad
        parameter.grad = None

    return [p.register_post_accumulate_grad_hook(step) for p in model.parameters() if p.requires_grad]


def step_in_all_names(model, lr):
    """Twice for a layer with two names: the second hook finds no gradient."""
    return [
        p.register_post_accumulate_grad_hook(lambda p: move_and_free(p, lr, None) if p.grad is not None else None)
        for _, p in model.named_parameters(remove_duplicate=False)
        if p.requires_grad
    ]


def step_for_ever(model, lr):
    handles = step_by_hook(model, lr)
    return [p.register_post_accumulate_grad_hook(lambda p: None) for p in model.parameters() if p.requires_grad] + (
        handles[:0]
    )


def step_without_handles(model, lr):
    step_by_hook(model, lr)


def step_by_new_parameters(model, lr):
    def step(parameter):
        for name, p in list(model.named_parameters()):
            if p is parameter:
                owner = model.get_submodule(name.rpartition(".")[0])
                setattr(owner, name.rpartition(".")[2], nn.Parameter(p.detach() - lr * p.grad))
        parameter.grad = None

    return [p.register_post_accumulate_grad_hook(step) for p in model.parameters() if p.requires_grad]


# epoch_in_windows


def epoch_by_slices(model, optimizer, batches, every):
    losses, reader = [], iter(batches)
    while window := list(itertools.islice(reader, every)):
        count = sum(len(targets) for _, targets in window)
        optimizer.zero_grad()
        total = 0.0
        for inputs, targets in window:
            loss = cross_entropy(model(inputs), targets, reduction="sum") / count
            loss.backward()
            total += loss.item()
        optimizer.step()
        losses.append(total)
    return losses


def epoch_by_sums(model, optimizer, batches, every):
    """Without reading ahead: sums, and one division at the step."""
    losses, waiting, samples, total = [], 0, 0, 0.0

    def step():
        for parameter in model.parameters():
            if parameter.grad is not None:
                parameter.grad.div_(samples)
        optimizer.step()
        losses.append(total / samples)
        optimizer.zero_grad()

    optimizer.zero_grad()
    for inputs, targets in batches:
        loss = cross_entropy(model(inputs), targets, reduction="sum")
        loss.backward()
        waiting, samples, total = waiting + 1, samples + len(inputs), total + loss.item()
        if waiting == every:
            step()
            waiting, samples, total = 0, 0, 0.0
    if waiting:
        step()
    return losses


def epoch(weight, last=True, extra=False, **options):
    """An epoch with one thing wrong. `weight` gets a micro-batch's size, the window's sizes and `every`."""

    def run(model, optimizer, batches, every):
        losses, reader = [], iter(batches)
        while window := list(itertools.islice(reader, every)):
            sizes = [len(targets) for _, targets in window]
            if len(window) < every and not last:
                break
            optimizer.zero_grad()
            total = 0.0
            for inputs, targets in window:
                loss = cross_entropy(model(inputs), targets)
                (loss * weight(len(targets), sizes, every)).backward(**options)
                total += loss.item() * len(targets) / sum(sizes)
            optimizer.step()
            losses.append(total)
        if extra:
            optimizer.zero_grad(set_to_none=False)
            optimizer.step()
        return losses

    return run


def right_share(size, sizes, every):
    return size / sum(sizes)


def epoch_read_at_once(model, optimizer, batches, every):
    return epoch_by_slices(model, optimizer, list(batches), every)


def epoch_by_a_running_mean(model, optimizer, batches, every):
    """Weights by the samples of the whole epoch so far."""
    losses, seen = [], 0
    for number, (inputs, targets) in enumerate(batches, start=1):
        seen += len(targets)
        loss = cross_entropy(model(inputs), targets) * len(targets) / seen
        loss.backward()
        if number % every == 0:
            optimizer.step()
            optimizer.zero_grad()
            losses.append(loss.item())
    return losses


def epoch_concatenated(model, optimizer, batches, every):
    losses, reader = [], iter(batches)
    while window := list(itertools.islice(reader, every)):
        losses += windows_as_one_batch(model, optimizer, window, every)
    return losses


# per_sample_gradients


def samples_by_vmap(model, images, targets):
    parameters = {name: p.detach() for name, p in model.named_parameters()}

    def loss(parameters, image, target):
        return cross_entropy(functional_call(model, parameters, (image[None],)), target[None])

    return vmap(grad(loss), in_dims=(None, 0, 0))(parameters, images, targets)


def samples_by_batched_grad(model, images, targets):
    """One graph, and one pass for all samples at a time: the seeds are the rows of the identity."""
    losses = cross_entropy(model(images), targets, reduction="none")
    seeds = torch.eye(len(images), dtype=losses.dtype)
    parts = torch.autograd.grad(losses, list(model.parameters()), seeds, is_grads_batched=True)
    return {name: part for (name, _), part in zip(model.named_parameters(), parts, strict=True)}


def samples_by_jacobian(model, images, targets):
    from torch.func import jacrev

    def losses(parameters):
        return cross_entropy(functional_call(model, parameters, (images,)), targets, reduction="none")

    return jacrev(losses)({name: p.detach() for name, p in model.named_parameters()})


def samples_by_loop(model, images, targets):
    rows = []
    for image, target in zip(images, targets, strict=True):
        loss = cross_entropy(model(image[None]), target[None])
        rows.append(torch.autograd.grad(loss, list(model.parameters())))
    parts = zip(*rows, strict=True)
    return {name: torch.stack(part) for (name, _), part in zip(model.named_parameters(), parts, strict=True)}


def samples_by_retained_passes(model, images, targets):
    losses = cross_entropy(model(images), targets, reduction="none")
    rows = [torch.autograd.grad(loss, list(model.parameters()), retain_graph=True) for loss in losses]
    parts = zip(*rows, strict=True)
    return {name: torch.stack(part) for (name, _), part in zip(model.named_parameters(), parts, strict=True)}


def clip_samples(each, max_norm):
    norms = sum(part.flatten(1).pow(2).sum(1) for part in each.values()).sqrt()
    factors = (max_norm / norms).clamp(max=1.0)
    return {name: torch.tensordot(factors, part, dims=1) / len(norms) for name, part in each.items()}


def clip_samples_row_by_row(each, max_norm):
    """With clip_grad_norm_ on stand-ins, one sample after the other; the model is not run again."""
    count = len(next(iter(each.values())))
    sums = {name: torch.zeros_like(part[0]) for name, part in each.items()}
    for number in range(count):
        rows = [nn.Parameter(torch.zeros_like(part[number])) for part in each.values()]
        for row, part in zip(rows, each.values(), strict=True):
            row.grad = part[number].detach().clone()
        clip_grad_norm_(rows, max_norm)
        for name, row in zip(sums, rows, strict=True):
            sums[name] += row.grad / count
    return sums


def clip_parts(each, max_norm):
    """Each parameter by itself."""
    return {name: clip_samples({name: part}, max_norm)[name] for name, part in each.items()}


def clip_mean(each, max_norm):
    mean = {name: part.mean(0)[None] for name, part in each.items()}
    return clip_samples(mean, max_norm)


def clip_always(each, max_norm):
    norms = sum(part.flatten(1).pow(2).sum(1) for part in each.values()).sqrt()
    return {name: torch.tensordot(max_norm / norms, part, dims=1) / len(norms) for name, part in each.items()}


def clip_numbers(each, max_norm):
    return {name: part.clamp(-max_norm, max_norm).mean(0) for name, part in each.items()}


def sampler(find=samples_by_vmap, clip=clip_samples, change=lambda name, part, count: part, before=None):
    def clip_each_sample(model, images, targets, max_norm):
        if before:
            before(model, images, targets)
        result = clip(find(model, images, targets), max_norm)
        return {name: change(name, part, len(images)) for name, part in result.items()}

    return clip_each_sample


def samples_with_graph(model, images, targets):
    losses = cross_entropy(model(images), targets, reduction="none")
    seeds = torch.eye(len(images), dtype=losses.dtype)
    parameters = list(model.parameters())
    parts = torch.autograd.grad(losses, parameters, seeds, is_grads_batched=True, create_graph=True)
    return {name: part for (name, _), part in zip(model.named_parameters(), parts, strict=True)}


def samples_by_backward(model, images, targets):
    """One image at a time through backward and .grad."""
    rows = []
    for image, target in zip(images, targets, strict=True):
        model.zero_grad()
        cross_entropy(model(image[None]), target[None]).backward()
        rows.append([p.grad.clone() for p in model.parameters()])
    parts = zip(*rows, strict=True)
    return {name: torch.stack(part) for (name, _), part in zip(model.named_parameters(), parts, strict=True)}


def samples_by_copy(model, images, targets):
    """On a copy of the model: nothing of the given one is touched, but each image runs by itself."""
    return samples_by_loop(copy.deepcopy(model), images, targets)


def samples_by_new_model(model, images, targets):
    """On a model made anew, that nobody watches."""
    new = type(model)().double()
    new.load_state_dict(model.state_dict())
    return samples_by_loop(new, images, targets)


def samples_by_hooks(model, images, targets):
    """Without functorch: one pass with expanded copies of the parameters, one for each sample."""
    names = [name for name, _ in model.named_parameters()]
    wide = [p.detach().expand(len(images), *p.shape).clone().requires_grad_() for p in model.parameters()]

    def run(image, *parameters):
        return functional_call(model, dict(zip(names, parameters, strict=True)), (image[None],))[0]

    scores = vmap(run)(images, *wide)
    parts = torch.autograd.grad(cross_entropy(scores, targets, reduction="sum"), wide)
    return dict(zip(names, parts, strict=True))


RIGHT = {
    "predict_none_or_zero": [
        GRADS,
        {name: None if value is None else torch.tensor(value) for name, value in GRADS.items()},
    ],
    "predict_moved": [MOVES, {name: torch.tensor(value) for name, value in MOVES.items()}],
    "train_in_windows": [
        windows_cleared_after_the_step,
        windows_cleared_before_the_first,
        windows_divided_at_the_step,
    ],
    "accumulate": [accumulate_by_share, accumulate_sums, accumulate_by_grad],
    "train_clipped": [clipped_once, clipped_by_hand],
    "step_in_backward": [step_by_hook, step_by_optimizers, step_in_all_names, step_by_node_hooks],
    "epoch_in_windows": [epoch_by_slices, epoch_by_sums],
    "clip_each_sample": [
        sampler(),
        sampler(samples_by_batched_grad, clip_samples_row_by_row),
        sampler(samples_by_jacobian),
        sampler(samples_by_hooks),
    ],
}

MISCONCEIVED = {
    ("predict_none_or_zero", "zero_grad writes zeros"): {**GRADS, "cleared": 0.0},
    ("predict_none_or_zero", "no gradient is zero"): {
        **GRADS,
        **dict.fromkeys(("fresh", "unused", "by_grad", "filled_fresh"), 0.0),
    },
    ("predict_none_or_zero", "zero is None"): {**GRADS, "times_zero": None},
    ("predict_none_or_zero", "overwritten"): {**GRADS, "twice": 4.0, "kept_added": 3.0},
    ("predict_none_or_zero", "step clears"): {**GRADS, "stepped": None},
    ("predict_none_or_zero", "a noted gradient is a copy"): {**GRADS, "kept_added": 3.0, "kept_filled": 3.0},
    ("predict_moved", "zero moves nothing"): {
        **MOVES,
        **dict.fromkeys(("momentum_zero", "decay_zero", "adam_zero", "adamw_fresh_zero"), False),
    },
    ("predict_moved", "None moves"): {**MOVES, **dict.fromkeys(("momentum_none", "decay_none", "adam_none"), True)},
    ("predict_moved", "frozen is safe"): {**MOVES, "frozen_left": False},
    ("train_in_windows", "cleared within the window"): broken_windows,
    ("train_in_windows", "summed, not averaged"): window_loop(scale=lambda loss, every: loss),
    ("train_in_windows", "old gradients"): windows_without_the_first_clear,
    ("train_in_windows", "a step for each micro-batch"): window_loop(step=lambda number, every: True),
    ("accumulate", "all micro-batches alike"): accumulator(lambda size, count, number: 1 / number),
    ("accumulate", "a sum of means"): accumulator(lambda size, count, number: 1),
    ("accumulate", "a sum over samples"): accumulator(lambda size, count, number: size),
    ("accumulate", "old gradients"): accumulator(share, clear=False),
    ("accumulate", "one large graph"): accumulate_in_one_graph,
    ("train_clipped", "clipped while it grows"): clipper(inner=clip_grad_norm_),
    ("train_clipped", "not clipped at the step"): clipper(after=clip_grad_norm_),
    ("train_clipped", "each parameter by itself"): clipper(before=clip_each),
    ("train_clipped", "the scheduler counts micro-batches"): clipper(before=clip_grad_norm_, inner_schedule=True),
    ("train_clipped", "the scheduler first"): clipper(before=clip_grad_norm_, first=True),
    ("train_clipped", "a step for each micro-batch"): clipped_with_steps_inside,
    ("step_in_backward", "gradients left"): hooked(move),
    ("step_in_backward", "frozen parameters"): hooked(move_and_free, choose=lambda p: True),
    ("step_in_backward", "nothing moves"): hooked(only_free),
    ("epoch_in_windows", "the last window dropped"): epoch(right_share, last=False),
    ("epoch_in_windows", "divided by a full window"): epoch(lambda size, sizes, every: 1 / every),
    ("epoch_in_windows", "all micro-batches alike"): epoch(lambda size, sizes, every: 1 / len(sizes)),
    ("epoch_in_windows", "a step too many"): epoch(right_share, extra=True),
    ("clip_each_sample", "one after the other"): sampler(samples_by_loop),
    ("clip_each_sample", "the mean clipped"): sampler(clip=clip_mean),
    ("clip_each_sample", "each parameter by itself"): sampler(clip=clip_parts),
    ("clip_each_sample", "short ones stretched"): sampler(clip=clip_always),
    ("clip_each_sample", "a sum, not a mean"): sampler(change=lambda name, part, count: part * count),
    ("clip_each_sample", "written to .grad"): sampler(before=lambda model, images, targets: model.zero_grad()),
}

WRONG = {
    "predict_none_or_zero": [
        dict.fromkeys(GRADS, None),
        dict.fromkeys(GRADS, 0.0),
        list(GRADS.values()),
        {**GRADS, "frozen": None},
        {**GRADS, "filled": None},
        {name: str(value) for name, value in GRADS.items()},
    ],
    "predict_moved": [
        dict.fromkeys(MOVES, True),
        dict.fromkeys(MOVES, False),
        list(MOVES.values()),
        {name: int(value) for name, value in MOVES.items()},
    ],
    "train_in_windows": [
        windows_as_one_batch,
        windows_in_one_pass,
        window_loop(retain_graph=True),
        seeded(windows_cleared_after_the_step),
        windows_on_inputs_that_require,
        windows_that_change_inputs,
        window_loop(clear=lambda number, every: False),
        window_loop(clear=lambda number, every: (number + 1) % every == 0),  # between backward and step
        window_loop(step=lambda number, every: number % every == 0),
        lambda model, optimizer, micro_batches, every: [0.5, 0.5],
        lambda model, optimizer, micro_batches, every: [[1.0], None, "x"],
    ],
    "accumulate": [
        accumulate_one_batch,
        accumulate_one_by_one,
        accumulate_and_step,
        accumulate_with_zeros,
        accumulate_filling_zeros,
        accumulate_where_live,
        seeded(accumulate_by_share),
        accumulate_thawed,
        accumulate_in_eval,
        accumulator(share, retain_graph=True),
        lambda model, micro_batches: str(accumulate_by_share(model, micro_batches)),
        lambda model, micro_batches: (accumulate_by_share(model, micro_batches), accumulate_one_batch)[0] * 1.001,
        lambda model, micro_batches: accumulate_by_share(model, micro_batches[:-1]),
    ],
    "train_clipped": [
        clipper(),
        clipper(before=clip_grad_value_),
        clipper(before=clip_grad_norm_, weight=False),
        clipper(before=clip_grad_norm_, retain_graph=True),
        clipper(inner=clip_grad_norm_, before=clip_grad_norm_),
        clipped_norms_after,
        seeded(clipped_once),
        lambda model, optimizer, scheduler, windows, max_norm: clipped_once(
            model, optimizer, scheduler, [[tuple(map(torch.cat, zip(*w, strict=True)))] for w in windows], max_norm
        ),
        lambda model, optimizer, scheduler, windows, max_norm: clipped_once(
            model, optimizer, torch.optim.lr_scheduler.ExponentialLR(optimizer, 1.0), windows, max_norm
        ),
    ],
    "step_in_backward": [
        hooked(move_and_zero),
        hooked(move_by_arrival, register="register_hook"),
        hooked(lambda p, lr, arrived: move_and_free(p, -lr, arrived)),
        step_at_the_end,
        step_keeping_gradients,
        step_after_the_pass,
        seeded(step_by_hook),
        step_for_ever,
        step_without_handles,
        step_by_new_parameters,
        lambda model, lr: [None, 3, "x"],
        lambda model, lr: step_by_hook(model, lr) + [model.register_forward_hook(lambda *given: None)][:0],
        lambda model, lr: step_by_hook(model.requires_grad_(True), lr),
        lambda model, lr: step_by_hook(model, lr)[:-1],
    ],
    "epoch_in_windows": [
        epoch(right_share, retain_graph=True),
        epoch(lambda size, sizes, every: size),
        epoch(lambda size, sizes, every: 1),
        epoch(lambda size, sizes, every: size / (every * max(sizes))),
        epoch_read_at_once,
        seeded(epoch_by_sums),
        epoch_by_a_running_mean,
        epoch_concatenated,
        lambda model, optimizer, batches, every: epoch_by_slices(model, optimizer, batches, 1),
        lambda model, optimizer, batches, every: epoch_by_slices(model, optimizer, batches, every)[:1],
    ],
    "clip_each_sample": [
        sampler(samples_by_retained_passes),
        sampler(samples_by_backward),
        sampler(samples_by_copy),
        sampler(samples_with_graph),
        sampler(samples_by_new_model),
        sampler(before=lambda model, images, targets: torch.manual_seed(0)),
        lambda model, images, targets, max_norm: (sampler()(model, images, targets, max_norm), targets.zero_())[0],
        sampler(clip=clip_numbers),
        sampler(clip=lambda each, max_norm: {name: part.mean(0) for name, part in each.items()}),
        sampler(clip=lambda each, max_norm: each),
        sampler(change=lambda name, part, count: part.abs()),
        sampler(before=lambda model, images, targets: model.eval()),
        sampler(before=lambda model, images, targets: images.mul_(1.0).add_(0.1)),
        sampler(before=lambda model, images, targets: model(images)),
        lambda model, images, targets, max_norm: list(sampler()(model, images, targets, max_norm).values()),
        lambda model, images, targets, max_norm: dict.fromkeys(dict(model.named_parameters()), 0.0),
    ],
}

# A handle that is removed twice is removed, in whatever order.
STILL_RIGHT = {("step_in_backward", "reversed list"), ("step_in_backward", "doubled list")}
