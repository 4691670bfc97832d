"""Right and wrong answers to the exercises of lesson 08."""

import copy
from functools import partial

import torch
from torch import nn
from torch.autograd.graph import get_gradient_edge

TABLE = {
    "never": None,
    "before_use": 4.0,
    "after_use": 4.0,
    "too_late": None,
    "two_uses": 9.0,
    "same_graph_twice": 8.0,
    "second_loss": "error",
    "rebound": None,
    "in_place": 5.0,
    "detached": "error",
    "by_function": 4.0,
    "with_hook": 40.0,
}

ORDER = ["forward", "output", "layer, before", "weight", "weight stored", "layer", "input"]

DIAGNOSIS = {
    **{"A_block": 3, "A_cause": "saturated", "B_block": 5, "B_cause": "dead", "C_block": 6, "C_cause": "small weights"},
    **{"D_block": 2, "D_cause": "cut", "E_block": "all", "E_cause": "all blocks"},
}


# reverse_gradient


def hooked(change):
    """Return a function that gives x's numbers and changes the gradient by a hook on a new tensor."""

    def function(x, amount):
        y = x.view_as(x)
        if y.requires_grad:
            y.register_hook(lambda gradient: change(gradient, amount))
        return y

    return function


def hooked_on_x(change):
    def function(x, amount):
        if x.requires_grad:
            x.register_hook(lambda gradient: change(gradient, amount))
        return x

    return function


class Reversal(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, strength):
        ctx.strength = strength
        return x.clone()

    @staticmethod
    def backward(ctx, gradient):
        return -ctx.strength * gradient, None


def turn(gradient, strength):
    return -strength * gradient


def reverse_by_arithmetic(x, strength):
    return (1 + strength) * x.detach() - strength * x


def reverse_by_node(x, strength):
    y = x * 1
    if y.grad_fn is not None:
        y.grad_fn.register_prehook(lambda gradients: (-strength * gradients[0],))
    return y


def reverse_in_place(x, strength):
    if x.requires_grad:
        x.register_hook(lambda gradient: gradient.mul_(-strength))
    return x.clone()


def for_one_dtype(function):
    return lambda x, amount: function(x.float(), amount)


def and_then(function, action):
    """Return `function` with a side effect."""

    def both(*given):
        result = function(*given)
        action(*given)
        return result

    return both


def retain(x, amount):
    if x.requires_grad:
        x.retain_grad()


def switch_on(*given):
    torch.set_grad_enabled(True)


def switch_off(*given):
    torch.set_grad_enabled(False)


# clip_passing


def shorten(gradient, most):
    return gradient * torch.clamp(most / gradient.norm(), max=1)


def clip_with_if(gradient, most):
    size = gradient.norm()
    return gradient * (most / size) if size > most else gradient


class Clip(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, most):
        ctx.most = most
        return x.view_as(x)

    @staticmethod
    def backward(ctx, gradient):
        return gradient * min(1.0, ctx.most / (float(gradient.norm()) + 1e-6)), None


def clip_rows(gradient, most):
    return gradient * torch.clamp(most / gradient.norm(dim=1, keepdim=True), max=1)


def clip_what_leaves(x, most):
    """Clips after the derivative of x's own operation, where there is one."""
    y = x.view_as(x)
    if x.grad_fn is not None:
        x.grad_fn.register_hook(lambda given, _: tuple(None if g is None else shorten(g, most) for g in given))
    elif y.requires_grad:
        y.register_hook(lambda gradient: shorten(gradient, most))
    return y


def clip_once(x, most):
    """The factor of the first pass is used for all."""
    y, factors = x.view_as(x), []

    def change(gradient):
        factors.append(min(1.0, most / float(gradient.norm())))
        return gradient * factors[0]

    if y.requires_grad:
        y.register_hook(change)
    return y


# saliency


def maps_of(model, images, labels, score=None, strongest=lambda gradient: gradient.abs().amax(1), evaluating=True):
    modes = {module: module.training for module in model.modules()}
    if evaluating:
        model.eval()
    try:
        with torch.enable_grad():
            pixels = images.detach().clone().requires_grad_()
            scores = model(pixels)
            chosen = scores[torch.arange(len(labels)), labels].sum() if score is None else score(scores, labels)
        (gradient,) = torch.autograd.grad(chosen, pixels)
    finally:
        for module, training in modes.items():
            module.training = training
    return strongest(gradient)


def saliency_by_seed(model, images, labels):
    modes = [(module, module.training) for module in model.modules()]
    model.train(False)
    pixels = images.clone()
    pixels.requires_grad = True
    with torch.enable_grad():
        scores = model(pixels)
    seed = nn.functional.one_hot(labels, scores.shape[1]).to(scores)
    scores.backward(seed, inputs=[pixels])
    for module, training in modes:
        module.training = training
    return pixels.grad.abs().max(dim=1).values


def saliency_on_a_copy(model, images, labels):
    model = copy.deepcopy(model).eval().requires_grad_(False)
    with torch.enable_grad():
        pixels = images.clone().requires_grad_()
        model(pixels).gather(1, labels[:, None]).sum().backward()
    return pixels.grad.abs().amax(1)


def saliency_by_func(model, images, labels):
    modes = {module: module.training for module in model.modules()}
    model.eval()
    try:
        return torch.func.grad(lambda x: model(x)[range(len(labels)), labels].sum())(images).detach().abs().amax(1)
    finally:
        for module, training in modes.items():
            module.training = training


def saliency_with_norms_in_evaluation(model, images, labels):
    """Puts batch norms into evaluation mode, and no other module."""
    norms = [module for module in model.modules() if isinstance(module, nn.BatchNorm2d) and module.training]
    for norm in norms:
        norm.eval()
    result = maps_of(model, images, labels, evaluating=False)
    for norm in norms:
        norm.train()
    return result


def saliency_and_gradients(model, images, labels):
    """Runs backward, which reaches the parameters."""
    modes = {module: module.training for module in model.modules()}
    model.eval()
    with torch.enable_grad():
        pixels = images.clone().requires_grad_()
        model(pixels)[torch.arange(len(labels)), labels].sum().backward()
    for module, training in modes.items():
        module.training = training
    return pixels.grad.abs().amax(1)


def saliency_and_zero_grad(model, images, labels):
    result = saliency_and_gradients(model, images, labels)
    model.zero_grad()
    return result


def saliency_and_train(model, images, labels):
    result = maps_of(model, images, labels)
    model.train()
    return result


def saliency_and_eval(model, images, labels):
    result = maps_of(model, images, labels)
    model.eval()
    return result


def saliency_freezing(model, images, labels):
    model.requires_grad_(False)
    return saliency_and_gradients(model, images, labels)


def saliency_on_the_images(model, images, labels):
    modes = {module: module.training for module in model.modules()}
    model.eval()
    with torch.enable_grad():
        model(images.requires_grad_())[torch.arange(len(labels)), labels].sum().backward(inputs=[images])
    for module, training in modes.items():
        module.training = training
    return images.grad.abs().amax(1)


def saliency_one_by_one(model, images, labels):
    return torch.cat([maps_of(model, image[None], label[None]) for image, label in zip(images, labels, strict=True)])


# layer_gradients


def parameters_of(model):
    return [parameter for parameter in model.parameters() if parameter.requires_grad]


def gradients_by_hooks(model, names, x, loss_fn):
    found = {name: [] for name in names}

    def note(places, module, given, result):
        number = len(places)
        places.append(None)
        if result.requires_grad:
            result.register_hook(lambda gradient: places.__setitem__(number, gradient))

    handles = [model.get_submodule(name).register_forward_hook(partial(note, found[name])) for name in names]
    try:
        loss = loss_fn(model(x))
        torch.autograd.grad(loss, parameters_of(model), allow_unused=True)
    finally:
        for handle in handles:
            handle.remove()
    return found


def gradients_by_edges(model, names, x, loss_fn):
    """Edges are taken when a result is made, and the one pass is asked for all of them."""
    edges, handles = [], []
    try:
        for name in names:

            def note(module, given, result, name=name):
                edges.append((name, get_gradient_edge(result) if result.requires_grad else None))

            handles.append(model.get_submodule(name).register_forward_hook(note))
        loss = loss_fn(model(x))
    finally:
        for handle in handles:
            handle.remove()
    wanted = [edge for _, edge in edges if edge is not None]
    gradients = iter(torch.autograd.grad(loss, wanted, allow_unused=True))
    found = {name: [] for name in names}
    for name, edge in edges:
        found[name].append(None if edge is None else next(gradients))
    return found


def gradients_by_moving(model, names, x, loss_fn):
    """Zeros are added to each result, and the gradient is asked for those."""
    moves = {name: [] for name in names}

    def move(name):
        def hook(module, given, result):
            moves[name].append(torch.zeros_like(result, requires_grad=True) if result.requires_grad else None)
            return result if moves[name][-1] is None else result + moves[name][-1]

        return hook

    handles = [model.get_submodule(name).register_forward_hook(move(name)) for name in names]
    try:
        loss = loss_fn(model(x))
    finally:
        [handle.remove() for handle in handles]
    wanted = [item for items in moves.values() for item in items if item is not None]
    gradients = dict(zip(map(id, wanted), torch.autograd.grad(loss, wanted, allow_unused=True), strict=True))
    return {name: [None if item is None else gradients[id(item)] for item in items] for name, items in moves.items()}


def gradients_retained(model, names, x, loss_fn):
    """retain_grad follows a tensor through writes in place."""
    found = {name: [] for name in names}

    def note(places, module, given, result):
        places.append(result)
        if result.requires_grad:
            result.retain_grad()

    handles = [model.get_submodule(name).register_forward_hook(partial(note, found[name])) for name in names]
    try:
        torch.autograd.grad(loss_fn(model(x)), parameters_of(model), allow_unused=True)
    finally:
        for handle in handles:
            handle.remove()
    return {name: [r.grad if r.requires_grad else None for r in results] for name, results in found.items()}


def gradients_with(remove=True, always=True, backward=False, last=False, reverse=False, clean=False):
    """The first right answer with one thing wrong."""

    def layer_gradients(model, names, x, loss_fn):
        found, ran = {name: [] for name in names}, {name: [] for name in names}

        def note(name, module, given, result):
            number = len(found[name])
            found[name].append(None)

            def keep(gradient):
                found[name][number] = gradient
                ran[name].append(gradient)

            if result.requires_grad:
                result.register_hook(keep)

        handles = [model.get_submodule(name).register_forward_hook(partial(note, name)) for name in names]
        try:
            loss = loss_fn(model(x))
            if backward:
                loss.backward()
            else:
                torch.autograd.grad(loss, parameters_of(model), allow_unused=True)
        except Exception:
            if remove and always:
                [handle.remove() for handle in handles]
            raise
        if remove:
            [handle.remove() for handle in handles]
        if clean:
            model.zero_grad()
        if last:
            return {name: places[-1:] for name, places in found.items()}
        if reverse:
            return {name: ran[name] if len(ran[name]) > 1 else found[name] for name in names}
        return found

    return layer_gradients


def gradients_on_a_copy(model, names, x, loss_fn):
    return gradients_with(backward=True, remove=False)(copy.deepcopy(model), names, x, loss_fn)


def gradients_swallowing(model, names, x, loss_fn):
    try:
        return gradients_by_hooks(model, names, x, loss_fn)
    except Exception:
        return {}


def gradients_one_by_one(model, names, x, loss_fn):
    found = {}
    for name in names:
        found |= gradients_by_hooks(model, [name], x, loss_fn)
    return found


def gradients_clearing_all_hooks(model, names, x, loss_fn):
    try:
        return gradients_with(remove=False)(model, names, x, loss_fn)
    finally:
        for module in model.modules():
            module._forward_hooks.clear()


def gradients_without_writes(model, names, x, loss_fn):
    """Switches off writes in place, and leaves them off."""
    for module in model.modules():
        if isinstance(module, nn.ReLU):
            module.inplace = False
    return gradients_by_hooks(model, names, x, loss_fn)


def gradients_of_inputs(model, names, x, loss_fn):
    found, handles = {name: [] for name in names}, []
    for name in names:
        module = model.get_submodule(name)
        handles.append(
            module.register_full_backward_hook(lambda m, given, out, name=name: found[name].append(given[0]))
        )
    try:
        torch.autograd.grad(loss_fn(model(x)), parameters_of(model), allow_unused=True)
    finally:
        [handle.remove() for handle in handles]
    return found


# gradient_log


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


def log_with(convert=float, of=1, pile=False, late=False, backward=False, finish=True, keep=None):
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
        except Exception:
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
                module.register_full_backward_hook(
                    lambda module, given, received: norms.update({name: received[0].norm()})  # noqa: B023
                )
        loss_fn(model(inputs), targets).backward()
        log.append(norms)
    return log


# rescue


def rescue_by_kaiming(model):
    relu = any(isinstance(module, nn.ReLU) for module in model.modules())
    for module in model.modules():
        if isinstance(module, nn.Linear):
            if relu:
                nn.init.kaiming_normal_(module.weight, nonlinearity="relu")
            else:
                nn.init.xavier_normal_(module.weight, gain=nn.init.calculate_gain("tanh"))
            nn.init.zeros_(module.bias)


def rescue_by_orthogonal(model):
    for layer, after in zip(model, [*model[1:], None], strict=True):
        if isinstance(layer, nn.Linear):
            nn.init.orthogonal_(layer.weight, gain=2**0.5 if isinstance(after, nn.ReLU) else 1.3)
            layer.bias.data.zero_()


def rescue_by_scaling(model):
    """PyTorch's start has a variance of 1 / (3 n): this only scales it, and halves the biases."""
    relu = any(type(module).__name__ == "ReLU" for module in model)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_((6 if relu else 4) ** 0.5 if parameter.dim() == 2 else 0.5)


def rescue_with(weights):
    def rescue(model):
        for module in model.modules():
            if isinstance(module, nn.Linear):
                weights(module.weight)
                nn.init.zeros_(module.bias)

    return rescue


def rescue_with_new_parameters(model):
    for module in model.modules():
        if isinstance(module, nn.Linear):
            module.weight = nn.Parameter(torch.randn_like(module.weight) * (2 / module.in_features) ** 0.5)
            module.bias = nn.Parameter(torch.zeros_like(module.bias))


def rescue_by_hooks(model):
    for module in model:
        if not isinstance(module, nn.Linear):
            module.register_full_backward_hook(lambda m, given, out: (given[0] / given[0].norm(),))


def rescue_by_new_layers(model):
    for number, layer in enumerate(model):
        if isinstance(layer, nn.ReLU | nn.Tanh):
            model[number] = nn.Identity()
    rescue_with(nn.init.orthogonal_)(model)


def rescue_deaf(model):
    """Gradients arrive, but the first layer hardly listens to the input."""
    rescue_by_kaiming(model)
    model[0].weight.data.mul_(1e-4)
    nn.init.normal_(model[0].bias)


def rescue_with_ones(model):
    rescue_with(lambda weight: nn.init.constant_(weight, 1 / weight.shape[1]))(model)


RIGHT = {
    "predict_retain_grad": [TABLE, {name: int(v) if isinstance(v, float) else v for name, v in TABLE.items()}],
    "hook_order": [ORDER, tuple(ORDER)],
    "reverse_gradient": [hooked(turn), lambda x, s: Reversal.apply(x, s), reverse_by_arithmetic, reverse_by_node],
    "clip_passing": [hooked(shorten), lambda x, most: Clip.apply(x, most), hooked(clip_with_if)],
    "saliency": [maps_of, saliency_by_seed, saliency_on_a_copy, saliency_by_func],
    "layer_gradients": [gradients_by_hooks, gradients_by_edges, gradients_by_moving],
    "gradient_log": [log_by_backward_hooks, log_by_results],
    "diagnosis": [DIAGNOSIS, dict(reversed(DIAGNOSIS.items()))],
    "rescue": [rescue_by_kaiming, rescue_by_orthogonal, rescue_by_scaling],
}

MISCONCEIVED = {
    ("predict_retain_grad", "before the first use"): {**TABLE, "after_use": None},
    ("predict_retain_grad", "retain_grad is retain_graph"): {**TABLE, "second_loss": 9},
    ("predict_retain_grad", "reading raises"): {**TABLE, "never": "error", "too_late": "error", "rebound": "error"},
    ("predict_retain_grad", "the last pass wins"): {**TABLE, "same_graph_twice": 4},
    ("predict_retain_grad", "backward only"): {**TABLE, "by_function": None},
    ("hook_order", "as registered"): [
        *("input", "weight stored", "weight", "layer", "forward", "layer, before", "output"),
    ],
    ("hook_order", "the layer before its weight"): [
        *("forward", "output", "layer, before", "layer", "weight", "weight stored", "input"),
    ],
    ("hook_order", "stored first"): [
        *("forward", "output", "layer, before", "weight stored", "weight", "layer", "input"),
    ],
    ("reverse_gradient", "a hook on x"): hooked_on_x(turn),
    ("reverse_gradient", "the numbers are negated"): lambda x, strength: -strength * x,
    ("reverse_gradient", "without the strength"): hooked(lambda gradient, strength: -gradient),
    ("reverse_gradient", "not turned around"): hooked(lambda gradient, strength: strength * gradient),
    ("clip_passing", "number by number"): hooked(lambda gradient, most: gradient.clamp(-most, most)),
    ("clip_passing", "short ones are stretched"): hooked(lambda gradient, most: gradient * (most / gradient.norm())),
    ("clip_passing", "row by row"): hooked(clip_rows),
    ("clip_passing", "a hook on x"): hooked_on_x(shorten),
    ("saliency", "the loss in place of the score"): partial(maps_of, score=nn.functional.cross_entropy),
    ("saliency", "in training mode"): partial(maps_of, evaluating=False),
    ("saliency", "with a sign"): partial(maps_of, strongest=lambda gradient: gradient.amax(1)),
    ("saliency", "parameters got gradients"): saliency_and_gradients,
    ("layer_gradients", "hooks stay"): gradients_with(remove=False),
    ("layer_gradients", "the newest version"): gradients_retained,
    ("layer_gradients", "one entry for a layer"): gradients_with(last=True),
    ("layer_gradients", "in the order of the pass"): gradients_with(reverse=True),
    ("gradient_log", "hooks pile up"): log_with(pile=True),
    ("gradient_log", "the name of the last layer"): log_with(late=True),
    ("gradient_log", "the gradient of the input"): log_with(of=0),
    ("gradient_log", "gradients left behind"): log_with(backward=True),
    ("gradient_log", "tensors in the log"): log_with(convert=lambda norm: norm),
    ("diagnosis", "one block too early"): {
        name: value - 1 if isinstance(value, int) else value for name, value in DIAGNOSIS.items()
    },
    ("diagnosis", "zero is cut"): {**DIAGNOSIS, "B_cause": "cut"},
    ("rescue", "still vanishing"): rescue_with(lambda weight: nn.init.normal_(weight, std=0.02)),
    ("rescue", "too much"): rescue_with(nn.init.normal_),
    ("rescue", "new parameters"): rescue_with_new_parameters,
}

WRONG = {
    "predict_retain_grad": [
        dict.fromkeys(TABLE),
        dict.fromkeys(TABLE, "error"),
        dict.fromkeys(TABLE, 4.0),
        {**TABLE, "in_place": 20.0},
        {**TABLE, "with_hook": 4.0},
        {**TABLE, "two_uses": 5.0},
        {**TABLE, "never": 0.0},
    ],
    "hook_order": [ORDER[::-1], ORDER[:-1], [*ORDER, "input"], [], [1, 2], ", ".join(ORDER), set(ORDER)],
    "reverse_gradient": [
        reverse_in_place,
        hooked(lambda gradient, strength: gradient.mul_(-strength)),
        hooked(lambda gradient, strength: None),
        lambda x, strength: x,
        lambda x, strength: x.detach() - strength * x,
        lambda x, strength: x.detach().requires_grad_(),
        lambda x, strength: (1 + strength) * x.data - strength * x.data,
        lambda x, strength: [Reversal.apply(x, strength)],
        for_one_dtype(hooked(turn)),
        and_then(hooked(turn), retain),
        and_then(hooked(turn), switch_on),
        and_then(hooked(turn), switch_off),
    ],
    "clip_passing": [
        clip_what_leaves,
        clip_once,
        hooked(lambda gradient, most: gradient.mul_(torch.clamp(most / gradient.norm(), max=1))),
        hooked(lambda gradient, most: gradient * torch.clamp(most / gradient.norm(p=1), max=1)),
        hooked(lambda gradient, most: gradient * torch.clamp(most / gradient.abs().max(), max=1)),
        hooked(lambda gradient, most: gradient * torch.clamp(most / gradient.norm() ** 2, max=1)),
        lambda x, most: x * torch.clamp(most / x.norm(), max=1),
        lambda x, most: x.clone(),
        for_one_dtype(hooked(shorten)),
        and_then(hooked(shorten), retain),
        and_then(hooked(shorten), switch_on),
    ],
    "saliency": [
        saliency_and_zero_grad,
        saliency_and_train,
        saliency_and_eval,
        saliency_freezing,
        saliency_on_the_images,
        saliency_one_by_one,
        saliency_with_norms_in_evaluation,
        and_then(maps_of, switch_on),
        partial(maps_of, score=lambda scores, labels: scores.max(1).values.sum()),
        partial(maps_of, score=lambda scores, labels: scores.sum()),
        partial(maps_of, score=lambda scores, labels: scores[:, labels].sum()),
        partial(maps_of, score=lambda scores, labels: scores.softmax(1)[range(len(labels)), labels].sum()),
        partial(maps_of, strongest=lambda gradient: gradient.abs().sum(1)),
        partial(maps_of, strongest=lambda gradient: gradient),
    ],
    "layer_gradients": [
        gradients_with(always=False),
        gradients_with(backward=True),
        gradients_with(backward=True, clean=True),
        gradients_on_a_copy,
        gradients_swallowing,
        gradients_one_by_one,
        gradients_clearing_all_hooks,
        gradients_of_inputs,
        gradients_without_writes,
        and_then(gradients_by_hooks, switch_off),
        lambda model, names, x, loss_fn: {name: [None] for name in names},
        lambda model, names, x, loss_fn: {name: None for name in names},
        lambda model, names, x, loss_fn: [loss_fn(model(x))],
    ],
    "gradient_log": [
        broken_gradient_log,
        log_with(finish=False),
        log_with(keep=True),
        and_then(log_by_results, switch_off),
        log_with(convert=lambda norm: norm.item() ** 2),
        lambda model, batches, loss_fn: log_by_backward_hooks(model, list(batches) * 2, loss_fn),
        lambda model, batches, loss_fn: log_by_backward_hooks(model, list(batches)[:1], loss_fn),
        lambda model, batches, loss_fn: log_by_backward_hooks(copy.deepcopy(model), batches, loss_fn)[::-1],
        lambda model, batches, loss_fn: log_by_backward_hooks(copy.deepcopy(model), batches, loss_fn),
        lambda model, batches, loss_fn: [None for _ in batches],
        lambda model, batches, loss_fn: [{} for _ in batches],
    ],
    "diagnosis": [
        {name: 3 if name.endswith("block") else "dead" for name in DIAGNOSIS},
        {**DIAGNOSIS, "A_cause": "small weights"},
        {**DIAGNOSIS, "E_block": 0},
        list(DIAGNOSIS.values()),
    ],
    "rescue": [
        rescue_by_hooks,
        rescue_by_new_layers,
        rescue_with_ones,
        rescue_deaf,
        rescue_with(nn.init.eye_),
        rescue_with(nn.init.xavier_normal_),
        rescue_with(nn.init.zeros_),
        lambda model: model,
        lambda model: model.eval(),
        lambda model: model.requires_grad_(False),
    ],
}
