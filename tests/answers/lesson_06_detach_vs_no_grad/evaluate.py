"""Right and wrong answers to `evaluate`."""

import copy

import torch
from torch import nn

from tests.answers.leaving import leaving
from tests.answers.lesson_06_detach_vs_no_grad.side_effects import hook_on_module
from tests.answers.said import said
from tests.answers.twice import around, frozen_on_a_walk, modes_on_a_walk


def average(model, loss_function, batches):
    pairs = [(loss_function(model(x), y).item(), len(y)) for x, y in batches]
    return sum(loss * size for loss, size in pairs) / sum(size for _, size in pairs)


def evaluate_noting_modes(model, loss_function, batches):
    modes = [(module, module.training) for module in model.modules()]
    try:
        model.eval()
        with torch.no_grad():
            return average(model, loss_function, batches)
    finally:
        for module, training in modes:
            module.training = training


def evaluate_restoring_by_train(model, loss_function, batches):
    modes = [(module, module.training) for module in model.modules()]
    try:
        with torch.no_grad():
            return average(model.eval(), loss_function, batches)
    finally:
        for module, training in modes:
            module.train(training)  # and all its parts, also one that was given its mode already


@torch.inference_mode()
def evaluate_in_inference_mode(model, loss_function, batches):
    modes = {name: module.training for name, module in model.named_modules()}
    model.train(False)
    try:
        return average(model.forward, loss_function, batches)
    finally:
        for name, module in model.named_modules():
            module.training = modes[name]


def evaluate_part_by_part(model, loss_function, batches):
    """Each part puts itself back, from the inside out."""

    def within(modules):
        if not modules:
            return average(model, loss_function, batches)
        first, *others = modules
        mode = first.training
        first.training = False
        try:
            return within(others)
        finally:
            first.training = mode

    with torch.no_grad():
        return within(list(model.modules()))


def evaluate_a_copy(model, loss_function, batches):
    return evaluate_noting_modes(copy.deepcopy(model), loss_function, batches)


def evaluate_seeding(model, loss_function, batches):
    torch.manual_seed(0)
    return evaluate_noting_modes(model, loss_function, batches)


def eval_if_training(model):
    """Asks the model, not its parts."""
    if model.training:
        model.eval()


def evaluate_recording_stuck(model, loss_function, batches):
    """Switches recording back on, but only if all goes well."""
    before = torch.is_grad_enabled()
    torch.set_grad_enabled(False)
    result = evaluate_noting_modes(model, loss_function, batches)
    torch.set_grad_enabled(before)
    return result


def evaluator(
    recording=torch.no_grad,
    before=nn.Module.eval,
    after=None,
    secure=True,
    weigh=len,
    hide=False,
    cut=float,
    kind=BaseException,
):
    """An evaluation with one thing wrong. `after` puts modes back; by default each its own."""

    def evaluate(model, loss_function, batches):
        modes = [(module, module.training) for module in model.modules()]

        def put_back():
            if after is not None:
                return after(model)
            for module, training in modes:
                module.training = training

        before(model)
        total = count = 0
        try:
            with recording():
                for inputs, targets in batches:
                    total += cut(loss_function(model(inputs), targets)) * weigh(targets)
                    count += weigh(targets)
        except kind:
            if secure:
                put_back()
            if not hide:
                raise
        else:
            put_back()
        return total / max(count, 1)

    return evaluate


def evaluate_gradients_off(model, loss_function, batches):
    torch.set_grad_enabled(False)
    try:
        return evaluate_noting_modes(model, loss_function, batches)
    finally:
        torch.set_grad_enabled(True)


def evaluate_parameters_frozen(model, loss_function, batches):
    for parameter in model.parameters():
        parameter.requires_grad_(False)
    try:
        return evaluator(torch.enable_grad)(model, loss_function, batches)
    finally:
        for parameter in model.parameters():
            parameter.requires_grad_(True)


def evaluate_own_mode_only(model, loss_function, batches):
    """Notes the mode of the model, not of its parts."""
    training = model.training
    model.eval()
    try:
        with torch.no_grad():
            pairs = [(loss_function(model(x), y).item(), len(y)) for x, y in batches]
    finally:
        model.train(training)
    return sum(loss * size for loss, size in pairs) / sum(size for _, size in pairs)


def evaluate_as_one_batch(model, loss_function, batches):
    pairs = list(batches)
    inputs, targets = torch.cat([x for x, _ in pairs]), torch.cat([y for _, y in pairs])
    return evaluate_noting_modes(model, loss_function, [(inputs, targets)])


def evaluate_twice_through(model, loss_function, batches):
    """Counts the samples first, and then goes through the batches again."""
    count, mean = sum(len(targets) for _, targets in batches), 0.0
    modes = [(module, module.training) for module in model.modules()]
    try:
        model.eval()
        with torch.no_grad():
            for inputs, targets in batches:
                mean += loss_function(model(inputs), targets).item() * len(targets) / count
    finally:
        for module, training in modes:
            module.training = training
    return mean


def evaluate_running_more(model, loss_function, batches):
    """Runs the model twice on each batch."""
    modes = [(module, module.training) for module in model.modules()]
    total = count = 0
    try:
        model.eval()
        with torch.no_grad():
            for inputs, targets in batches:
                model.forward(inputs)
                total += loss_function(model(inputs), targets).item() * len(targets)
                count += len(targets)
    finally:
        for module, training in modes:
            module.training = training
    return total / count


def evaluate_in_training(model, loss_function, batches):
    """Puts a part without dropout and batch norm into training."""

    def before(model):
        model.eval()
        model.again.train()

    return evaluator(before=before)(model, loss_function, batches)


def evaluate_counting_numbers(model, loss_function, batches):
    """Weights each batch by the numbers in its targets, and divides by samples."""
    sizes = []

    def counted():
        for inputs, targets in batches:
            sizes.append((targets.numel(), len(targets)))
            yield inputs, targets

    losses = []
    evaluate_noting_modes(model, lambda *given: losses.append(loss_function(*given)) or losses[-1], counted())
    return sum(float(loss) * many for loss, (many, _) in zip(losses, sizes, strict=True)) / sum(n for _, n in sizes)


RIGHT = [evaluate_noting_modes, evaluate_in_inference_mode, evaluate_part_by_part]

MISCONCEIVED = {
    "recorded": evaluator(torch.enable_grad),
    "not evaluating": evaluator(before=lambda model: None),
    "all to training": evaluator(after=nn.Module.train),
    "one mode for all": evaluate_own_mode_only,
    "left evaluating": evaluator(after=lambda model: None),
    "stuck after an error": evaluator(secure=False),
    "average of averages": evaluator(weigh=lambda targets: 1),
}

WRONG = [
    evaluate_gradients_off,
    said(evaluate_restoring_by_train, "given back by train()"),
    said(evaluate_parameters_frozen, "recorded"),
    leaving(evaluate_noting_modes, lambda model, *given: model.requires_grad_()),
    evaluate_recording_stuck,
    evaluate_as_one_batch,
    evaluate_a_copy,
    evaluate_seeding,
    said(evaluator(before=eval_if_training), "not evaluating"),
    evaluate_hooked := evaluator(before=lambda model: hook_on_module(model.eval())),
    evaluate_hiding := evaluator(hide=True),
    *(evaluator(hide=True, kind=kind) for kind in (RuntimeError, ValueError, OSError, IndexError)),
    said(evaluate_stopped := evaluator(kind=Exception), "stuck after an error"),
    said(evaluator(after=nn.Module.train, secure=False), "all to training"),
    said(evaluator(torch.enable_grad, before=lambda model: None), "recorded", "not evaluating"),
    said(evaluator(torch.enable_grad, after=lambda model: None), "recorded"),
    said(evaluator(torch.enable_grad, cut=lambda loss: loss.detach()), "recorded"),
    evaluate_to_tensor := evaluator(cut=lambda loss: loss),
    evaluate_twice_through,
    said(evaluate_in_training, "not evaluating"),
    evaluate_more := lambda *given: evaluate_noting_modes(*given) * 1.01,
    evaluate_running_more,
    evaluate_writing := leaving(evaluate_noting_modes, lambda model, *given: model.again.weight.data.mul_(2)),
    evaluate_counting := leaving(
        evaluate_noting_modes, lambda model, *given: model.body[1].num_batches_tracked.add_(1)
    ),
    lambda model, loss_function, batches: sum(len(targets) for _, targets in batches),
    *(evaluate_counting_numbers, evaluator(weigh=torch.Tensor.numel)),
    around(evaluate_noting_modes, frozen_on_a_walk),
    around(evaluate_noting_modes, lambda model: modes_on_a_walk(model, False)),
]

GUARDS = {
    "returns the average loss over all *samples*": {"value": evaluate_more, "runs": evaluate_running_more},
    "as a Python float": {"number": evaluate_to_tensor},
    "Run the model itself, not a copy.": {"copied": evaluate_a_copy},
    "every part of it is evaluating": {"training": evaluate_in_training},
    "nothing is saved for a backward pass": {"saved": MISCONCEIVED["recorded"]},
    "the mode of each part": {"modes": MISCONCEIVED["left evaluating"]},
    "whether recording is on": {"grad mode": evaluate_gradients_off},
    "parameters, buffers, hooks": {
        "model": evaluate_writing,
        "buffers": evaluate_counting,
        "hooks": evaluate_hooked,
    },
    "the state of the random numbers": {"random": evaluate_seeding},
    "This holds also if reading a batch raises an exception, whatever its kind.": {"modes": evaluate_stopped},
    "Let that exception through.": {"raised": evaluate_hiding},
}


def evaluate_noting_children(model, loss_function, batches):
    """Gives the model and its children their modes back."""
    noted = [(part, part.training) for part in (model, *model.children())]
    try:
        with torch.no_grad():
            return average(model.eval(), loss_function, batches)
    finally:
        for part, mode in noted:
            part.train(mode)


MISCONCEIVED["given back by train()"] = evaluate_noting_children


def evaluate_layer_by_layer(model, loss_function, batches):
    """Runs the layers of the part that is counted once more, one by one."""

    def again(inputs):
        hidden = inputs
        for layer in model.body:
            hidden = layer(hidden)
        return inputs

    with torch.no_grad():
        return RIGHT[0](model, loss_function, ((again(inputs), targets) for inputs, targets in batches))


WRONG.append(evaluate_layer_by_layer)
