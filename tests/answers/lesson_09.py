"""Right and wrong answers to the exercises of lesson 09."""

import copy
from itertools import pairwise

import torch
from torch import nn
from torch.nn.functional import cross_entropy, mse_loss, nll_loss

SYMPTOMS = {
    "zero_between": "stands still",
    "rewrapped": "stands still",
    "under_no_grad": "raises",
    "in_eval": "moves",
    "rounded": "stands still",
    "twice": "raises",
    "scheduler_first": "warns",
    "replaced": "stands still",
    "wrong_shape": "warns",
    "one_frozen": "moves",
    "hard_choice": "raises",
}


def by_grad(parameters, optimizer, loss):
    """A step whose gradients come from torch.autograd.grad."""
    for p, gradient in zip(parameters, torch.autograd.grad(loss, parameters), strict=True):
        p.grad = gradient
    optimizer.step()
    return loss.item()


def leaving(answer, mess):
    """A right answer that leaves something behind: mess(model) runs when it is done."""

    def left_behind(model, *given):
        returned = answer(model, *given)
        mess(model)
        return returned

    return left_behind


MESSES = [
    lambda model: torch.set_grad_enabled(False),
    lambda model: torch.autograd.set_detect_anomaly(True),
    lambda model: torch.set_default_dtype(torch.float64),
    lambda model: next(model.parameters()).requires_grad_(False),
    lambda model: model.register_full_backward_pre_hook(lambda *given: None),
]


def step(optimizer, loss):
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


# fit_classes


def classifier(loss_of=cross_entropy, clear=True, keep=float, hits_of=lambda hit: hit.sum().item(), again=False):
    def fit_classes(model, optimizer, batches):
        losses, hits, total = [], 0, 0
        for inputs, targets in batches:
            scores = model(inputs)
            loss = loss_of(scores, targets)
            if clear:
                optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if again:
                scores = model(inputs)
            losses.append(keep(loss))
            hits += hits_of(scores.argmax(1) == targets)
            total += len(targets)
        return losses, hits / total

    return fit_classes


def classes_by_hand(model, optimizer, batches):
    losses, right = [], []
    for inputs, targets in batches:
        logarithms = model(inputs).log_softmax(dim=1)
        losses.append(step(optimizer, nll_loss(logarithms, targets)))
        right += (logarithms.exp().argmax(dim=1) == targets).tolist()
        optimizer.zero_grad()
    return [losses, sum(right) / len(right)]


def classes_by_grad(model, optimizer, batches):
    losses, right = [], []
    for inputs, targets in batches:
        scores = model(inputs)
        right.append(scores.argmax(dim=-1) == targets)
        losses.append(by_grad(list(model.parameters()), optimizer, cross_entropy(scores, targets)))
    return losses, torch.cat(right).double().mean().item()


# fit_penalised


def penalised(penalty, keep=float):
    def fit_penalised(model, optimizer, batches, weight):
        losses = []
        for inputs, targets in batches:
            loss = mse_loss(model(inputs), targets) + weight * penalty(model)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(keep(loss))
        return losses

    return fit_penalised


def penalised_in_two_passes(model, optimizer, batches, weight):
    losses = []
    for inputs, targets in batches:
        optimizer.zero_grad()
        error, penalty = mse_loss(model(inputs), targets), weight * squares(model)
        error.backward()
        penalty.backward()
        optimizer.step()
        losses.append((error + penalty).item())
    return losses


def penalised_by_formula(model, optimizer, batches, weight):
    """The penalty's gradient is 2 * weight * p. It is added by hand."""
    losses = []
    for inputs, targets in batches:
        error = mse_loss(model(inputs), targets)
        losses.append(error.item() + weight * squares(model).item())
        optimizer.zero_grad(set_to_none=False)
        error.backward()
        for p in model.parameters():
            if p.requires_grad:
                p.grad = 2 * weight * p.detach() + (0 if p.grad is None else p.grad)
        optimizer.step()
    return losses


def penalised_rewrapped(model, optimizer, batches, weight):
    losses = []
    for inputs, targets in batches:
        penalty = sum(p.pow(2).sum().item() for p in model.parameters())
        error = mse_loss(model(inputs), targets)
        losses.append(step(optimizer, torch.tensor(error.item() + weight * penalty, requires_grad=True)))
    return losses


def penalised_by_decay(model, optimizer, batches, weight):
    """Nearly the same steps by weight decay, which stays in the caller's optimizer and skips unused parameters."""
    for group in optimizer.param_groups:
        group["weight_decay"] = 2 * weight
    losses = []
    for inputs, targets in batches:
        loss = mse_loss(model(inputs), targets)
        losses.append(loss.item() + weight * sum(float(p.detach().pow(2).sum()) for p in model.parameters()))
        step(optimizer, loss)
    return losses


def penalised_by_decay_and_back(model, optimizer, batches, weight):
    losses = penalised_by_decay(model, optimizer, batches, weight)
    optimizer.param_groups[0]["weight_decay"] = 0
    return losses


def squares(model):
    return sum(p.pow(2).sum() for p in model.parameters())


# make_model


class Net(nn.Module):
    def __init__(self, sizes, mean):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(a, b) for a, b in pairwise(sizes))
        self.scale = nn.Parameter(torch.ones(sizes[-1]))
        self.register_buffer("mean", mean)

    def forward(self, x):
        x = x - self.mean
        for layer in self.layers[:-1]:
            x = layer(x).relu()
        return self.scale * self.layers[-1](x)


class ListNet(Net):
    def __init__(self, sizes, mean):
        super().__init__(sizes, mean)
        layers = list(self.layers)
        del self.layers
        self.layers = layers


class FixedScale(Net):
    def __init__(self, sizes, mean):
        super().__init__(sizes, mean)
        del self.scale
        self.scale = torch.ones(sizes[-1], requires_grad=True)


class BufferScale(Net):
    def __init__(self, sizes, mean):
        super().__init__(sizes, mean)
        del self.scale
        self.register_buffer("scale", torch.ones(sizes[-1]))


class TrainedMean(Net):
    def __init__(self, sizes, mean):
        super().__init__(sizes, mean)
        del self.mean
        self.mean = nn.Parameter(mean)


class LooseMean(Net):
    def __init__(self, sizes, mean):
        super().__init__(sizes, mean)
        del self.mean
        self.mean = mean


class PassingMean(Net):
    def __init__(self, sizes, mean):
        super().__init__(sizes, mean)
        del self.mean
        self.register_buffer("mean", mean, persistent=False)


class ReluLast(Net):
    def forward(self, x):
        x = x - self.mean
        for layer in self.layers:
            x = layer(x).relu()
        return self.scale * x


class ScaleOfOneRow(Net):
    def __init__(self, sizes, mean):
        super().__init__(sizes, mean)
        self.scale = nn.Parameter(torch.ones(1, sizes[-1]))


class ConstantStart(Net):
    def __init__(self, sizes, mean):
        super().__init__(sizes, mean)
        for layer in self.layers:
            nn.init.zeros_(layer.weight)


KEPT = {}


def one_model_for_all(sizes, mean):
    return KEPT.setdefault(tuple(sizes), Net(sizes, mean))


class Shift(nn.Module):
    def __init__(self, mean):
        super().__init__()
        self.register_buffer("by", mean)

    def forward(self, x):
        return x - self.by


class Stretch(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.factor = nn.Parameter(torch.ones(size))

    def forward(self, x):
        return x * self.factor


def model_of_parts(sizes, mean):
    parts = [Shift(mean)]
    for a, b in pairwise(sizes):
        parts += [nn.Linear(a, b), nn.ReLU()]
    return nn.Sequential(*parts[:-1], Stretch(sizes[-1]))


class Named(nn.Module):
    """A list, and every layer registered by hand besides."""

    def __init__(self, sizes, mean):
        super().__init__()
        self.layers = []
        for number, (a, b) in enumerate(pairwise(sizes)):
            self.layers.append(nn.Linear(a, b))
            self.add_module(f"layer{number}", self.layers[-1])
        self.register_parameter("scale", nn.Parameter(torch.ones(sizes[-1])))
        self.mean = nn.Parameter(mean, requires_grad=False)
        del self.mean
        self.mean = nn.Buffer(mean)

    def forward(self, x):
        x = x - self.mean
        for number, layer in enumerate(self.layers):
            x = layer(x)
            if number < len(self.layers) - 1:
                x = torch.relu(x)
        return x * self.scale


# retrain


def retrain_with(parameters, place=lambda head: head):
    def retrain(model, head, batches):
        model.head = place(head)
        optimizer = torch.optim.SGD(parameters(model), lr=0.1)
        return [step(optimizer, cross_entropy(model(inputs), targets)) for inputs, targets in batches]

    return retrain


def retrain_too_early(model, head, batches):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model.head = head
    return [step(optimizer, cross_entropy(model(inputs), targets)) for inputs, targets in batches]


def retrain_and_add(model, head, batches):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model.head = head
    optimizer.add_param_group({"params": list(head.parameters())})
    losses = []
    for inputs, targets in batches:
        model.zero_grad()
        loss = cross_entropy(model(inputs), targets)
        loss.backward()
        optimizer.step()
        losses.append(float(loss))
    return losses


def retrain_by_copying_numbers(model, head, batches):
    """Trains the new head with the wrong number of classes left in place: numbers right, object wrong."""
    losses = retrain_with(lambda model: model.parameters(), copy.deepcopy)(model, head, batches)
    head.load_state_dict(model.head.state_dict())
    return losses


def retrain_without_optimizer(model, head, batches):
    model.head, losses = head, []
    for inputs, targets in batches:
        loss = cross_entropy(model(inputs), targets)
        gradients = torch.autograd.grad(loss, list(model.parameters()))
        with torch.no_grad():
            for p, gradient in zip(model.parameters(), gradients, strict=True):
                p -= 0.1 * gradient
        losses.append(loss.item())
    return losses


# fit_scheduled


def scheduled_and_put_back(model, optimizer, scheduler, batches, epochs):
    rates = scheduled()(model, optimizer, scheduler, batches, epochs)
    optimizer.param_groups[0]["lr"] = rates[0]
    return rates


def scheduled(before=False, by_batch=False, rate_after=False, hand=False):
    def fit_scheduled(model, optimizer, scheduler, batches, epochs):
        rates = []
        for _ in range(epochs):
            if not rate_after:
                rates.append(scheduler.get_last_lr()[0])
            if before and not by_batch:
                scheduler.step()
            for inputs, targets in batches:
                if before and by_batch:
                    scheduler.step()
                step(optimizer, mse_loss(model(inputs), targets))
                if by_batch and not before:
                    scheduler.step()
            if not before and not by_batch:
                scheduler.step()
            if rate_after:
                rates.append(scheduler.get_last_lr()[0])
        return rates

    return fit_scheduled


def scheduled_by_groups(model, optimizer, scheduler, batches, epochs):
    rates = []
    for epoch in range(epochs):
        if epoch > 0:
            scheduler.step()
        rates.append(optimizer.param_groups[0]["lr"])
        for inputs, targets in batches:
            step(optimizer, (model(inputs) - targets).pow(2).mean())
    scheduler.step()
    return rates


def scheduled_never_turning_last(model, optimizer, scheduler, batches, epochs):
    rates = []
    for epoch in range(epochs):
        if epoch > 0:
            scheduler.step()
        rates.append(optimizer.param_groups[0]["lr"])
        for inputs, targets in batches:
            step(optimizer, mse_loss(model(inputs), targets))
    return rates


# fit_masked


def by_product(hidden, mask):
    return hidden * mask


def by_data(hidden, mask):
    hidden.data.mul_(mask)
    return hidden


def by_method(hidden, mask):
    return hidden.mul_(mask)


def by_constant(hidden, mask):
    return hidden + (hidden * mask - hidden).detach()


def through_where(hidden, mask):
    return torch.where(mask > 0, hidden, 0) * mask


def masked_loop(apply, limit_when="after", how=lambda weight, limit: weight.data.clamp_(-limit, limit)):
    def fit_masked(model, optimizer, batches, limit):
        losses = []
        for inputs, mask, targets in batches:
            loss = mse_loss(model.last(apply(model.first(inputs).tanh(), mask)), targets)
            optimizer.zero_grad()
            if limit_when == "before":
                how(model.last.weight, limit)
            loss.backward()
            optimizer.step()
            if limit_when == "after":
                how(model.last.weight, limit)
            losses.append(loss.item())
        return losses

    return fit_masked


def masked_with_copy(model, optimizer, batches, limit):
    losses = []
    for inputs, mask, targets in batches:
        hidden = torch.tanh(model.first(inputs)).clone()
        hidden *= mask
        losses.append(step(optimizer, mse_loss(model.last(hidden), targets)))
        with torch.no_grad():
            model.last.weight.copy_(model.last.weight.clamp(min=-limit, max=limit))
    return losses


def masked_bias_too(model, optimizer, batches, limit):
    losses = masked_loop(by_product)(model, optimizer, batches, limit)
    model.last.bias.data.clamp_(-limit, limit)
    return losses


def masked_at_the_end(model, optimizer, batches, limit):
    losses = masked_loop(by_product, "never")(model, optimizer, batches, limit)
    model.last.weight.data.clamp_(-limit, limit)
    return losses


# fit_points


def safe_root(squares):
    apart = squares > 0
    return torch.where(apart, torch.where(apart, squares, 1.0).sqrt(), 0.0)


def bare_root(squares):
    return torch.where(squares > 0, squares.sqrt(), 0.0)


def root_off_the_diagonal(squares):
    diagonal = torch.eye(len(squares), dtype=torch.bool)
    return torch.where(diagonal, 0.0, torch.where(diagonal, 1.0, squares).sqrt())


def points_with(root, clean=lambda gradient: gradient):
    def fit_points(points, wanted, steps):
        points, losses = points.clone().requires_grad_(), []
        for _ in range(steps):
            squares = (points[:, None] - points[None]).pow(2).sum(-1)
            loss = (root(squares) - wanted).pow(2).mean()
            (gradient,) = torch.autograd.grad(loss, points)
            with torch.no_grad():
                points -= clean(gradient)
            losses.append(loss.item())
        return points.detach(), losses

    return fit_points


def points_by_norm(points, wanted, steps):
    points = nn.Parameter(points.clone())
    optimizer = torch.optim.SGD([points], lr=1.0)
    losses = []
    for _ in range(steps):
        lengths = torch.linalg.vector_norm(points.unsqueeze(1) - points.unsqueeze(0), dim=2)
        losses.append(step(optimizer, mse_loss(lengths, wanted)))
    return points.data, losses


def points_by_cdist(points, wanted, steps):
    points, losses = points.clone(), []
    for _ in range(steps):
        points = points.detach().requires_grad_()
        loss = mse_loss(torch.cdist(points, points, compute_mode="donot_use_mm_for_euclid_dist"), wanted)
        loss.backward()
        losses.append(loss.item())
        points = (points - points.grad).detach()
    return points, losses


def points_in_place(points, wanted, steps):
    moved, losses = points_by_norm(points, wanted, steps)
    points.copy_(moved)
    return points, losses


def points_of_formula(points, wanted, steps):
    losses = []
    for _ in range(steps):
        lines = points[:, None] - points
        lengths = lines.pow(2).sum(-1).sqrt()
        losses.append((lengths - wanted).pow(2).mean().item())
        away = torch.where(lengths > 0, (lengths - wanted) / lengths, 0.0)
        pulls = (away + away.T)[..., None] * lines
        points = points - 2 / len(points) ** 2 * pulls.sum(1)
    return points, losses


# fine_tune


def tuned(evaluate=True, clear=True, record=False, everything=False, thaw=False, cut=False):
    def fine_tune(backbone, head, optimizer, batches):
        backbone.train(not evaluate)
        for p in backbone.parameters():
            p.requires_grad_(thaw)
        losses = []
        for inputs, targets in batches:
            with torch.set_grad_enabled(record):
                features = backbone(inputs)
            features = features.detach() if cut else features
            with torch.set_grad_enabled(not everything):
                loss = cross_entropy(head(features), targets)
            optimizer.zero_grad() if clear else head.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        return losses

    return fine_tune


def tuned_with_own_care(backbone, head, optimizer, batches):
    held = optimizer.param_groups[0]["params"]
    try:
        return tuned_with_fewer_parameters(backbone, head, optimizer, batches)
    finally:
        optimizer.param_groups[0]["params"] = held


def tuned_with_fewer_parameters(backbone, head, optimizer, batches):
    """The caller's optimizer has lost the backbone afterwards."""
    optimizer.param_groups[0]["params"] = list(head.parameters())
    backbone.eval()
    losses = []
    for inputs, targets in batches:
        with torch.inference_mode():
            features = backbone(inputs)
        loss = cross_entropy(head(features.clone()), targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(float(loss))
    return losses


def tuned_without_recording(backbone, head, optimizer, batches):
    for parameter in backbone.parameters():
        parameter.requires_grad_(False)
        parameter.grad = None
    backbone.eval()
    losses = []
    for inputs, targets in batches:
        head.zero_grad(set_to_none=True)
        loss = cross_entropy(head(backbone(inputs)), targets)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def tuned_with_another_optimizer(backbone, head, optimizer, batches):
    other = torch.optim.SGD(head.parameters(), lr=0.1, momentum=0.9, weight_decay=0.1)
    return tuned()(backbone, head, other, batches)


def tuned_with_batch_norm_alone(backbone, head, optimizer, batches):
    """Dropout stays on."""
    for module in backbone.modules():
        module.train(not isinstance(module, nn.BatchNorm1d))
    losses = []
    for inputs, targets in batches:
        with torch.no_grad():
            features = backbone(inputs)
        losses.append(step(optimizer, cross_entropy(head(features), targets)))
    return losses


def tuned_and_put_back(backbone, head, optimizer, batches):
    before = copy.deepcopy(backbone.state_dict())
    losses = tuned(evaluate=False)(backbone, head, optimizer, batches)
    backbone.load_state_dict(before)
    return losses


def tuned_zeros(backbone, head, optimizer, batches):
    """Gradients of zero: weight decay still moves the backbone."""
    backbone.eval()
    losses = []
    for inputs, targets in batches:
        with torch.no_grad():
            features = backbone(inputs)
        loss = cross_entropy(head(features), targets)
        optimizer.zero_grad(set_to_none=False)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


# fit_best


def best(
    state=lambda model: copy.deepcopy(model.state_dict()),
    keep=float,
    back=True,
    silent=True,
    evaluate=True,
    back_at_end=True,
):
    def fit_best(model, optimizer, batches, validation, epochs):
        best_loss, best_state, history = None, None, []
        for _ in range(epochs):
            if back:
                model.train()
            for inputs, targets in batches:
                step(optimizer, mse_loss(model(inputs), targets))
            if evaluate:
                model.eval()
            inputs, targets = validation
            with torch.set_grad_enabled(not silent):
                loss = mse_loss(model(inputs), targets)
            history.append(keep(loss))
            if best_loss is None or loss < best_loss:
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
    for _ in range(epochs):
        for inputs, targets in batches:
            optimizer.zero_grad()
            mse_loss(model(inputs), targets).backward()
            optimizer.step()
        history.append(validate())
        states.append({name: tensor.clone() for name, tensor in model.state_dict().items()})
    index = history.index(min(history))
    return states[index], history[index], history


# checkup


def checkup(model, optimizer, step):
    held = {id(p) for group in optimizer.param_groups for p in group["params"]}
    frozen = {name: p.detach().clone() for name, p in model.named_parameters() if not p.requires_grad}
    arrived, bad, handles = set(), set(), []
    for name, p in model.named_parameters():
        if p.requires_grad:

            def note(p, name=name):
                arrived.add(name)
                if not p.grad.isfinite().all():
                    bad.add(name)

            handles.append(p.register_post_accumulate_grad_hook(note))
    trained = {name for name, p in model.named_parameters() if p.requires_grad}
    try:
        step()
    finally:
        for handle in handles:
            handle.remove()
    named = dict(model.named_parameters())
    return {
        "no_gradient": trained - arrived,
        "not_in_optimizer": [name for name in trained if id(named[name]) not in held],
        "frozen_but_changed": [name for name, before in frozen.items() if not torch.equal(named[name], before)],
        "not_finite": bad,
    }


def checkup_by_tensor_hooks(model, optimizer, step):
    held = [p for group in optimizer.param_groups for p in group["params"]]
    came, handles, before = {}, [], {}
    for name, p in model.named_parameters():
        if p.requires_grad:
            handles += [p.register_hook(lambda grad, name=name: came.setdefault(name, []).append(grad.clone()))]
        else:
            before[name] = p.clone()
    report = {"no_gradient": [], "not_in_optimizer": [], "frozen_but_changed": [], "not_finite": []}
    try:
        step()
    finally:
        [handle.remove() for handle in handles]
    for name, p in model.named_parameters():
        if name in before:
            if (before[name] != p).any():
                report["frozen_but_changed"].append(name)
            continue
        if name not in came:
            report["no_gradient"].append(name)
        elif not all(torch.isfinite(grad).all() for grad in came[name]):
            report["not_finite"].append(name)
        if all(p is not other for other in held):
            report["not_in_optimizer"].append(name)
    return report


def checkup_by_looking(model, optimizer, step):
    held = {id(p) for group in optimizer.param_groups for p in group["params"]}
    frozen = {name: p.detach().clone() for name, p in model.named_parameters() if not p.requires_grad}
    step()
    named = {name: p for name, p in model.named_parameters() if p.requires_grad}
    return {
        "no_gradient": [name for name, p in named.items() if p.grad is None],
        "not_in_optimizer": [name for name, p in named.items() if id(p) not in held],
        "frozen_but_changed": [
            name for name, p in model.named_parameters() if name in frozen and not torch.equal(p, frozen[name])
        ],
        "not_finite": [name for name, p in named.items() if p.grad is not None and not p.grad.isfinite().all()],
    }


def changed(answer, before=None, after=None):
    """A checkup with something more done before it, or to what it returns."""

    def checkup(model, optimizer, step):
        if before:
            before(model, optimizer)
        report = answer(model, optimizer, step)
        return after(report) if after else report

    return checkup


def checkup_leaving_hooks(model, optimizer, step):
    for p in model.parameters():
        if p.requires_grad:
            p.register_hook(lambda grad: None)
    return checkup(model, optimizer, step)


def checkup_leaving_hooks_after_an_error(model, optimizer, step):
    handles = [p.register_hook(lambda grad: None) for p in model.parameters() if p.requires_grad]
    report = checkup(model, optimizer, step)
    for handle in handles:
        handle.remove()
    return report


def checkup_of_values(model, optimizer, step):
    """Compares numbers where it should compare objects."""
    held = [p for group in optimizer.param_groups for p in group["params"]]
    equal = {
        name for name, p in model.named_parameters() if any(p.shape == q.shape and torch.equal(p, q) for q in held)
    }
    report = checkup(model, optimizer, step)
    report["not_in_optimizer"] = [name for name, p in model.named_parameters() if p.requires_grad and name not in equal]
    return report


def checkup_of_one_group(model, optimizer, step):
    report = checkup(model, optimizer, step)
    held = {id(p) for p in optimizer.param_groups[0]["params"]}
    report["not_in_optimizer"] = [name for name, p in model.named_parameters() if p.requires_grad and id(p) not in held]
    return report


def checkup_of_frozen_too(model, optimizer, step):
    report = checkup(model, optimizer, step)
    held = {id(p) for group in optimizer.param_groups for p in group["params"]}
    report["not_in_optimizer"] = [name for name, p in model.named_parameters() if id(p) not in held]
    return report


def checkup_zeros_are_none(model, optimizer, step):
    """Takes a gradient of zeros for none."""
    came, handles = set(), []
    for name, p in model.named_parameters():
        if p.requires_grad:
            note = lambda grad, name=name: came.add(name) if grad.any() else None  # noqa: E731
            handles.append(p.register_hook(note))
    try:
        report = checkup(model, optimizer, step)
    finally:
        for handle in handles:
            handle.remove()
    report["no_gradient"] = [name for name, p in model.named_parameters() if p.requires_grad and name not in came]
    return report


def checkup_with_frozen(model, optimizer, step):
    report = checkup(model, optimizer, step)
    report["no_gradient"] |= {name for name, p in model.named_parameters() if not p.requires_grad}
    return report


def checkup_swallowing(model, optimizer, step):
    def quietly():
        try:
            step()
        except RuntimeError:
            print("the step failed")

    return checkup(model, optimizer, quietly)


def checkup_by_numbers(model, optimizer, step):
    """Asks whether some tensor with the same numbers is held, and compares after the step."""
    report = checkup(model, optimizer, step)
    held = [p for group in optimizer.param_groups for p in group["params"]]
    report["not_in_optimizer"] = [
        name for name, p in model.named_parameters() if not any(p.shape == q.shape for q in held)
    ]
    return report


RIGHT = {
    "predict_symptoms": [SYMPTOMS, dict(reversed(SYMPTOMS.items()))],
    "fit_classes": [classifier(), classes_by_hand, classes_by_grad],
    "fit_penalised": [
        penalised(squares),
        penalised(lambda model: sum(p.norm() ** 2 for p in model.parameters())),
        penalised_in_two_passes,
        penalised_by_formula,
    ],
    "make_model": [
        lambda sizes, mean: Net(sizes, mean),
        model_of_parts,
        lambda sizes, mean: Named(sizes, mean),
        lambda sizes, mean: ScaleOfOneRow(sizes, mean),
    ],
    "retrain": [retrain_with(lambda model: model.parameters()), retrain_and_add, retrain_without_optimizer],
    "fit_scheduled": [scheduled(), scheduled_by_groups],
    "fit_masked": [
        masked_loop(by_product, how=lambda w, limit: w.detach().clamp_(-limit, limit)),
        masked_with_copy,
        masked_loop(through_where),
    ],
    "fit_points": [points_with(safe_root), points_by_norm, points_by_cdist, points_of_formula],
    "fine_tune": [tuned(), tuned_with_own_care, tuned_without_recording],
    "fit_best": [best(), best_by_index],
    "checkup": [checkup, checkup_by_tensor_hooks],
}

MISCONCEIVED = {
    ("predict_symptoms", "a new leaf is a repair"): {**SYMPTOMS, "rewrapped": "moves"},
    ("predict_symptoms", "eval() is no_grad"): {**SYMPTOMS, "in_eval": "raises"},
    ("predict_symptoms", "no gradient is an error"): {**SYMPTOMS, "rounded": "raises"},
    ("predict_symptoms", "the optimizer follows the model"): {**SYMPTOMS, "replaced": "moves"},
    ("fit_classes", "softmax twice"): classifier(lambda scores, targets: cross_entropy(scores.softmax(1), targets)),
    ("fit_classes", "never cleared"): classifier(clear=False),
    ("fit_classes", "logarithm of a softmax"): classifier(lambda s, targets: nll_loss(s.softmax(1).log(), targets)),
    ("fit_penalised", "no way back"): penalised_rewrapped,
    ("fit_penalised", "a penalty without a gradient"): penalised(lambda model: squares(model).item()),
    ("make_model", "layers in a list"): lambda sizes, mean: ListNet(sizes, mean),
    ("make_model", "the scale is no parameter"): lambda sizes, mean: FixedScale(sizes, mean),
    ("make_model", "the mean is trained"): lambda sizes, mean: TrainedMean(sizes, mean),
    ("make_model", "the mean is no state"): lambda sizes, mean: LooseMean(sizes, mean),
    ("retrain", "an optimizer from before"): retrain_too_early,
    ("retrain", "only the head"): retrain_with(lambda model: model.head.parameters()),
    ("retrain", "a copy of the head"): retrain_with(lambda model: model.parameters(), copy.deepcopy),
    ("fit_scheduled", "scheduler first"): scheduled(before=True),
    ("fit_scheduled", "every batch"): scheduled(by_batch=True),
    ("fit_scheduled", "the next epoch's rate"): scheduled(rate_after=True),
    ("fit_masked", "caught by the counter"): masked_loop(by_method),
    ("fit_masked", "a mask that autograd does not know"): masked_loop(by_constant),
    ("fit_masked", "beyond the limit"): masked_loop(by_product, "never"),
    ("fit_points", "only the diagonal"): points_with(root_off_the_diagonal),
    ("fit_points", "NaN replaced"): points_with(bare_root, lambda gradient: gradient.nan_to_num()),
    ("fine_tune", "old gradients"): tuned(clear=False),
    ("fine_tune", "running statistics"): tuned(evaluate=False),
    ("fine_tune", "recorded for nothing"): tuned(record=True, thaw=True, cut=True),
    ("fine_tune", "everything under no_grad"): tuned(everything=True),
    ("fit_best", "the model's own tensors"): best(state=lambda model: model.state_dict()),
    ("fit_best", "evaluation mode stays"): best(back=False),
    ("fit_best", "validation with a graph"): best(silent=False),
    ("fit_best", "parameters only"): best(
        state=lambda model: {name: p.detach().clone() for name, p in model.named_parameters()}
    ),
    ("checkup", ".grad after the step"): checkup_by_looking,
    ("checkup", "hooks left behind"): checkup_leaving_hooks,
    ("checkup", "frozen is not missing"): checkup_with_frozen,
}

WRONG = {
    "predict_symptoms": [
        dict.fromkeys(SYMPTOMS, "raises"),
        dict.fromkeys(SYMPTOMS, True),
        {**SYMPTOMS, "twice": "Raises"},
        {**SYMPTOMS, "twice": torch.ones(3)},
        list(SYMPTOMS.values()),
    ],
    "fit_classes": [
        classifier(keep=lambda loss: loss),
        classifier(keep=lambda loss: loss.detach()),
        classifier(hits_of=lambda hit: hit.float().mean().item()),
        classifier(again=True),
        classifier(lambda scores, targets: cross_entropy(scores, targets, reduction="sum")),
        lambda model, optimizer, batches: ([], 0.0),
        *(leaving(classifier(), mess) for mess in MESSES),
    ],
    "fit_penalised": [
        penalised_by_decay,
        penalised_by_decay_and_back,
        penalised(lambda model: sum(p.pow(2).sum() for p in model.parameters() if p.requires_grad)),
        penalised(lambda model: sum(p.pow(2).sum() for p in model.state_dict(keep_vars=True).values())),
        penalised(lambda model: sum(p.pow(2).sum() for _, p in model.named_parameters(remove_duplicate=False))),
        *(leaving(penalised(squares), mess) for mess in MESSES),
        penalised(squares, keep=lambda loss: loss),
        penalised(lambda model: squares(model[0]) + squares(model[2]).detach()),
        penalised(lambda model: sum(p.norm() for p in model.parameters())),
        penalised(lambda model: squares(model) if model.training else 0, keep=lambda loss: loss.detach()),
        penalised(lambda model: sum(p.pow(2).sum() for n, p in model.named_parameters() if "weight" in n)),
    ],
    "make_model": [
        lambda sizes, mean: BufferScale(sizes, mean),
        lambda sizes, mean: PassingMean(sizes, mean),
        lambda sizes, mean: ReluLast(sizes, mean),
        lambda sizes, mean: Net(sizes, mean).requires_grad_(False),
        lambda sizes, mean: Net(sizes, torch.zeros_like(mean)),
        lambda sizes, mean: nn.Sequential(*(nn.Linear(a, b) for a, b in pairwise(sizes))),
        lambda sizes, mean: nn.Linear(sizes[0], sizes[-1]),
        lambda sizes, mean: Net(sizes, mean).double(),
        lambda sizes, mean: ConstantStart(sizes, mean),
        one_model_for_all,
    ],
    "retrain": [
        retrain_by_copying_numbers,
        retrain_with(lambda model: model.body.parameters()),
        retrain_with(lambda model: model.parameters(), lambda head: head.eval()),
        lambda model, head, batches: [],
        *(leaving(retrain_with(lambda model: model.parameters()), mess) for mess in MESSES),
    ],
    "fit_scheduled": [
        scheduled(before=True, by_batch=True),
        scheduled(before=True, rate_after=True),
        scheduled_never_turning_last,
        scheduled_and_put_back,
        *(leaving(scheduled(), mess) for mess in MESSES),
        lambda model, optimizer, scheduler, batches, epochs: [],
        lambda model, optimizer, scheduler, batches, epochs: scheduler,
    ],
    "fit_masked": [
        masked_loop(by_data),
        masked_loop(by_data, "before"),
        masked_loop(by_product, "before"),
        masked_loop(by_product, "before", how=lambda w, limit: w.detach().clamp_(-limit, limit)),
        masked_bias_too,
        masked_at_the_end,
        *(leaving(masked_loop(by_product), mess) for mess in MESSES),
        masked_loop(lambda hidden, mask: hidden * (mask > 0)),
    ],
    "fit_points": [
        points_with(bare_root),
        points_with(lambda squares: (squares + 1e-6).sqrt()),
        points_with(lambda squares: safe_root(squares).detach().requires_grad_()),
        points_with(safe_root, lambda gradient: gradient.clamp(-0.1, 0.1)),
        points_in_place,
        lambda *given: [points_by_norm(*given)[0].requires_grad_(), points_by_norm(*given)[1]],
        lambda *given: (points_by_norm(*given), torch.set_grad_enabled(False))[0],
        lambda points, wanted, steps: (points, []),
    ],
    "fine_tune": [
        tuned_and_put_back,
        tuned_zeros,
        tuned_with_fewer_parameters,
        tuned_with_another_optimizer,
        tuned_with_batch_norm_alone,
        lambda backbone, head, *given: leaving(lambda model, *more: tuned()(backbone, model, *more), MESSES[3])(
            head, *given
        ),
        *(leaving(tuned(), mess) for mess in (*MESSES[:3], *MESSES[4:])),
        tuned(evaluate=False, clear=False),
        tuned(record=True, thaw=True),
        lambda backbone, head, optimizer, batches: [],
    ],
    "fit_best": [
        best(state=lambda model: dict(model.state_dict())),
        best(state=lambda model: None),
        best(keep=lambda loss: loss),
        best(keep=lambda loss: loss.detach()),
        best(evaluate=False),
        *(leaving(best(), mess) for mess in MESSES),
        best(back_at_end=False),
        best(silent=False, keep=lambda loss: loss),
        lambda model, optimizer, batches, validation, epochs: ({}, 0.0, []),
        lambda model, optimizer, batches, validation, epochs: ([1], None, 3),
    ],
    "checkup": [
        checkup_leaving_hooks_after_an_error,
        checkup_swallowing,
        checkup_by_numbers,
        checkup_of_values,
        checkup_of_one_group,
        checkup_of_frozen_too,
        checkup_zeros_are_none,
        *(leaving(checkup, mess) for mess in MESSES),
        leaving(checkup, lambda model: model.eval()),
        changed(checkup, before=lambda model, optimizer: optimizer.zero_grad()),
        changed(checkup_by_looking, before=lambda model, optimizer: model.zero_grad()),
        changed(checkup, after=lambda report: {name: [] for name in report}),
        changed(checkup, after=lambda report: {name: len(names) for name, names in report.items()}),
        changed(checkup, after=lambda report: {name: [3] for name in report}),
        lambda model, optimizer, step: [step() for _ in range(2)] and checkup(model, optimizer, lambda: None),
    ],
}

STILL_RIGHT = {
    ("checkup", "reversed list"),
    ("checkup", "keeps every graph"),  # the change reaches the step, which is not the learner's
    ("fit_points", "keeps every graph"),
}
