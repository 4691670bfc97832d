"""Right and wrong answers to `step_in_backward`."""

import torch
from torch import nn

from tests.answers.lesson_07_gradient_accumulation.side_effects import seeded
from tests.answers.near import near
from tests.answers.said import said


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


def step_where_recording_is_off(model, lr):
    """Relies on a pass that is not recorded."""

    def step(parameter):
        if not torch.is_grad_enabled():
            move_and_free(parameter, lr, None)

    return [p.register_post_accumulate_grad_hook(step) for p in model.parameters() if p.requires_grad]


def step_at_the_end(model, lr):
    """Waits until all gradients are there."""
    live = [p for p in model.parameters() if p.requires_grad]

    def step(parameter):
        if sum(p.grad is not None for p in live) == 4:
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


def step_near(model, lr):
    """Hooks on the model's own parameters and those of its direct children."""
    live = [parameter for parameter in near(model).values() if parameter.requires_grad]
    return [p.register_post_accumulate_grad_hook(lambda arrived: move_and_free(arrived, lr, None)) for p in live]


RIGHT = [step_by_hook, step_by_optimizers, step_in_all_names, step_by_node_hooks]


def step_keeping(made):
    """Steps rightly, and keeps what it makes of each gradient."""

    def step_in_backward(model, lr):
        kept = []

        def step(parameter):
            kept.append(made(parameter.grad, lr))
            move_and_free(parameter, lr, parameter)

        return [p.register_post_accumulate_grad_hook(step) for p in model.parameters() if p.requires_grad]

    return step_in_backward


def step_after_zeros(model, lr):
    """Fills .grad beforehand, also of what no pass reaches."""
    for parameter in model.parameters():
        if parameter.requires_grad:
            parameter.grad = torch.zeros_like(parameter)
    return hooked(move_and_free)(model, lr)


def step_on_data(model, lr):
    """Registers hooks on detached tensors."""
    return [p.data.register_hook(lambda gradient: None) for p in model.parameters() if p.requires_grad]


def step_for_each_name(model, lr):
    """Hooks on a parameter for each name that it has."""
    handles = []
    for _, p in model.named_parameters(remove_duplicate=False):
        if p.requires_grad:

            def move(gradient, p=p):
                p.data.add_(gradient.detach(), alpha=-lr)

            def free(p):
                p.grad = None

            handles += [p.register_hook(move), p.register_post_accumulate_grad_hook(free)]
    return handles


MISCONCEIVED = {
    "a hook for each name": step_for_each_name,
    "gradients left": hooked(move),
    "zeros left": hooked(move_and_zero),
    "frozen parameters": hooked(move_and_free, choose=lambda p: True),
    "nothing moves": hooked(only_free),
}


def step_and_zeros_in_the_end(model, lr):
    """From the second pass on, the last gradient to come is replaced by zeros."""
    arrivals = []

    def step(parameter):
        move_and_free(parameter, lr, None)
        arrivals.append(None)
        if len(arrivals) == 8:
            parameter.grad = torch.zeros_like(parameter)

    return [p.register_post_accumulate_grad_hook(step) for p in model.parameters() if p.requires_grad]


def step_with_another_parameter(model, lr):
    handles = step_by_hook(model, lr)
    model.spare.weight = torch.nn.Parameter(model.spare.weight.detach().clone())
    return handles


ONE_SLIP = {
    "handles": lambda model, lr: [*step_by_hook(model, lr), None],
    "gradients": step_and_zeros_in_the_end,
    "removed": lambda model, lr: step_by_node_hooks(model, lr)[:1],
    "uphill": hooked(lambda p, lr, arrived: move_and_free(p, -lr, arrived)),
    "modes": seeded(step_by_hook),
    "same": step_with_another_parameter,
}

WRONG = [
    step_near,
    *ONE_SLIP.values(),
    *(step_keeping(torch.Tensor.mul), step_keeping(lambda gradient, lr: gradient.clone())),
    said(step_after_zeros, "zeros left"),
    said(hooked(move_by_arrival, register="register_hook"), "gradients left"),
    hooked(move_and_free, choose=lambda p: p.requires_grad and p.dim() > 1),
    step_where_recording_is_off,
    hooked(lambda p, lr, arrived: (p.grad.clamp_(-1e3, 1e3), move_and_free(p, lr, None))),
    hooked(lambda p, lr, arrived: move_and_free(p, max(lr, 1e-4), None)),
    hooked(lambda p, lr, arrived: move_and_free(p, min(lr, 1.0), None)),
    step_at_the_end,
    step_keeping_gradients,
    said(step_on_data, "frozen parameters"),
    lambda model, lr: [step_by_hook(model, lr)],
    step_after_the_pass,
    step_for_ever,
    step_without_handles,
    step_by_new_parameters,
    said(lambda model, lr: [None, 3, "x"], "nothing moves"),
    lambda model, lr: step_by_hook(model.requires_grad_(True), lr),
    lambda model, lr: step_by_hook(model, lr)[:-1],
]

STILL_RIGHT = {"reversed list", "doubled list"}

EQUIVALENT = {
    "step_in_all_names: model.named_parameters(remove_duplicate=False) -> model.named_parameters()": "One hook for each parameter is right; this answer allows for a second one, which finds no gradient.",
    "step_in_all_names: model.named_parameters(remove_duplicate=False) -> model.named_parameters(remove_duplicate=True)": "One hook for each parameter is right; this answer allows for a second one, which finds no gradient.",
}

GUARDS = {
    "each backward pass, with `create_graph=True` too": {"value": step_where_recording_is_off},
    "one layer is known by two names": {"value": step_for_each_name},
    "by plain SGD, `p = p - lr * gradient`": {"value": ONE_SLIP["uphill"]},
    "no earlier one, nor a copy or a multiple of it, may be in memory, in `.grad` or elsewhere": {
        "waiting": step_at_the_end,
        "alive": step_keeping_gradients,
    },
    "After a pass each `.grad` is None.": {"gradients": ONE_SLIP["gradients"]},
    "returns a list or a tuple of the handles": {"handles": ONE_SLIP["handles"]},
    "Calling `remove()` on each handle brings back normal behaviour": {"removed": ONE_SLIP["removed"]},
    "The parameters stay the same objects": {"same": ONE_SLIP["same"], "modes": ONE_SLIP["modes"]},
}


def step_cleared_by_the_next(model, lr):
    """Clears .grad when the next gradient of the same parameter arrives, before that is added."""

    def moving(parameter):
        def move(gradient):
            with torch.no_grad():
                parameter.sub_(lr * gradient)
            parameter.grad = None

        return move

    return [it.register_hook(moving(it)) for it in model.parameters() if it.requires_grad]


WRONG += [said(step_cleared_by_the_next, "gradients left")]


def step_row_by_row(model, lr):
    """A parameter of one number has no rows."""

    def step(parameter):
        with torch.no_grad():
            parameter[:] -= lr * parameter.grad
        parameter.grad = None

    return [p.register_post_accumulate_grad_hook(step) for p in model.parameters() if p.requires_grad]


WRONG += [
    lambda model, lr: step_by_hook(model, lr) + [model.register_forward_hook(lambda *given: None)][:0],
    step_row_by_row,
    said(step_for_each_name, "a hook for each name"),
]


def step_and_what_came(model, lr):
    """Keeps each gradient as it arrives, before it is added to .grad."""
    came = []
    live = [parameter for parameter in model.parameters() if parameter.requires_grad]
    return [parameter.register_hook(came.append) for parameter in live] + step_by_hook(model, lr)


WRONG += [step_and_what_came]
