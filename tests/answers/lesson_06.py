"""Right and wrong answers to the exercises of lesson 06."""

import copy

import numpy as np
import torch
from torch import nn
from torch.func import functional_call
from torch.nn.functional import binary_cross_entropy_with_logits, mse_loss

SWITCHES = {
    "detached_factor": True,
    "after_the_block": True,
    "made_inside": True,
    "written_inside": True,
    "enabled_in_no_grad": True,
    "enabled_in_inference": False,
    "frozen_live_input": True,
    "frozen_data": False,
    "evaluating": True,
    "clone_then_detach": False,
    "rounded": True,
    "best": False,
}


# straight_through


def straight_by_detach(x):
    return x + (x.round() - x).detach()


def straight_by_no_grad(x):
    with torch.no_grad():
        change = x.round() - x
    return x + change


class Straight(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.round()

    @staticmethod
    def backward(ctx, gradient):
        return gradient


def straight_half_up(x):
    """Rounds halves up, where torch.round goes to the even neighbour."""
    return x + ((x + 0.5).floor() - x).detach()


def straight_with(before):
    """Leaves something behind on x."""

    def through(x):
        before(x)
        return straight_by_detach(x)

    return through


def hook_left(x):
    if x.requires_grad:
        x.register_hook(lambda gradient: gradient)


def keeps_gradient(x):
    if x.requires_grad and not x.is_leaf:
        x.retain_grad()


def straight_in_place(x):
    x.data.round_()
    return x * 1


# uncut_loss


def uncut_by_norm(points, scale, weights):
    lengths = points.norm(dim=1)
    return (torch.exp(-lengths * scale) * weights).sum()


def uncut_by_stacking(points, scale, weights):
    lengths = torch.stack([row.pow(2).sum().sqrt() for row in points])
    return weights @ (-scale * lengths).exp()


def uncut_by_position(p, s, w):
    return torch.dot(w, torch.exp(-s * torch.linalg.vector_norm(p, dim=-1)))


def loss_that_differentiates(points, scale, weights):
    """Runs a pass that ends at the inputs, before it reaches any leaf."""
    loss = uncut_by_norm(points, scale, weights)
    torch.autograd.grad(loss, [points, scale, weights], retain_graph=True)
    return loss


def loss_and(extra):
    """A right loss, and something left behind."""

    def loss(points, scale, weights):
        result = uncut_by_norm(points, scale, weights)
        extra(points)
        return result

    return loss


def cut_loss(lengths="", factor="", shares="", last=""):
    """A loss with chosen cuts."""

    def loss(points, scale, weights):
        length = (
            torch.tensor([row.norm().item() for row in points], dtype=points.dtype) if lengths else points.norm(dim=1)
        )
        times = scale.item() if factor else scale
        share = torch.exp(-length * times)
        return ((share.detach() if shares else share) * (weights.data if last else weights)).sum()

    return loss


def broken_loss(points, scale, weights):
    lengths = torch.tensor([row.norm().item() for row in points], dtype=points.dtype)
    shares = np.exp(-lengths.numpy() * scale.item())
    total = (torch.from_numpy(shares) * weights.data).sum()
    return total.requires_grad_()


def loss_with_new_leaves(points, scale, weights):
    points, scale, weights = (tensor.detach().requires_grad_() for tensor in (points, scale, weights))
    return uncut_by_norm(points, scale, weights)


def loss_that_writes(points, scale, weights):
    loss = uncut_by_norm(points.clone(), scale.clone(), weights.clone())
    points.data.mul_(2)
    return loss


def loss_that_runs_back(points, scale, weights):
    loss = uncut_by_norm(points, scale, weights)
    loss.backward(retain_graph=True)
    return loss


# ema_update


@torch.no_grad()
def ema_by_lerp(target, source, decay):
    for mine, its in zip(target.parameters(), source.parameters(), strict=True):
        mine.lerp_(its, 1 - decay)
    for mine, its in zip(target.buffers(), source.buffers(), strict=True):
        mine.copy_(its)


def ema_by_name(target, source, decay):
    theirs = dict(source.named_parameters())
    with torch.inference_mode(False), torch.no_grad():
        for name, parameter in target.named_parameters():
            parameter.mul_(decay).add_(theirs[name], alpha=1 - decay)
        for name, buffer in source.named_buffers():
            target.get_buffer(name).copy_(buffer)


def ema_by_foreach(target, source, decay):
    with torch.no_grad():
        mine, its = list(target.parameters()), list(source.parameters())
        torch._foreach_lerp_(mine, its, 1 - decay)
        for here, there in zip(target.buffers(), source.buffers(), strict=True):
            here[...] = there


def ema(parameters=None, buffers=True, after=None):
    """An update with one thing wrong."""

    def update(target, source, decay):
        with torch.no_grad():
            for mine, its in zip(target.parameters(), source.parameters(), strict=True):
                (parameters or (lambda a, b, d: a.lerp_(b, 1 - d)))(mine, its, decay)
            if buffers:
                for mine, its in zip(target.buffers(), source.buffers(), strict=True):
                    mine.copy_(its)
            if after:
                after(target, source)

    return update


def written_by_data(mine, its, decay):
    mine.data.mul_(decay).add_(its.data, alpha=1 - decay)


def written_by_numpy(mine, its, decay):
    mine.detach().numpy()[...] = decay * mine.detach().numpy() + (1 - decay) * its.detach().numpy()


def new_memory(mine, its, decay):
    mine.data = decay * mine + (1 - decay) * its


def ema_by_state_dict(target, source, decay):
    theirs = source.state_dict()
    with torch.no_grad():
        for name, tensor in target.state_dict().items():
            if tensor.is_floating_point() and "running" not in name:
                tensor.lerp_(theirs[name], 1 - decay)
            else:
                tensor.copy_(theirs[name])


def ema_by_loading(target, source, decay):
    """Right: the new numbers are computed first, and each shared weight gets the same ones twice."""
    theirs = source.state_dict()
    mixed = {}
    for name, tensor in target.state_dict().items():
        is_buffer = name in dict(target.named_buffers())
        mixed[name] = theirs[name] if is_buffer else decay * tensor + (1 - decay) * theirs[name]
    target.load_state_dict(mixed)


def ema_all_averaged(target, source, decay):
    with torch.no_grad():
        for mine, its in zip(target.parameters(), source.parameters(), strict=True):
            mine.lerp_(its, 1 - decay)
        for mine, its in zip(target.buffers(), source.buffers(), strict=True):
            mine.copy_(mine * decay + its * (1 - decay))


def ema_recorded(target, source, decay):
    for mine, its in zip(target.parameters(), source.parameters(), strict=True):
        mine.lerp_(its, 1 - decay)


def ema_grad_off(target, source, decay):
    ema_by_lerp(target, source, decay)
    torch.set_grad_enabled(False)


def ema_switching_on(target, source, decay):
    """Switches recording on at the end, also where it was off."""
    ema_by_lerp(target, source, decay)
    torch.set_grad_enabled(True)


def ema_of_live_sources(target, source, decay):
    """Passes over what is frozen in the source."""
    with torch.no_grad():
        for mine, its in zip(target.parameters(), source.parameters(), strict=True):
            if its.requires_grad:
                mine.lerp_(its, 1 - decay)
        for mine, its in zip(target.buffers(), source.buffers(), strict=True):
            mine.copy_(its)


def clear_target(target, source):
    for parameter in target.parameters():
        parameter.grad = None


def hook_on_module(model):
    model.register_forward_hook(lambda module, given, result: None)


def ema_frozen(target, source, decay):
    target.requires_grad_(False)
    for mine, its in zip(target.parameters(), source.detach().parameters(), strict=True):
        mine.lerp_(its, 1 - decay)


# evaluate


def evaluate_noting_modes(model, loss_function, batches):
    modes = [(module, module.training) for module in model.modules()]
    total = count = 0
    try:
        model.eval()
        with torch.no_grad():
            for inputs, targets in batches:
                total += loss_function(model(inputs), targets).item() * len(targets)
                count += len(targets)
    finally:
        for module, training in modes:
            module.training = training
    return total / count


@torch.inference_mode()
def evaluate_in_inference_mode(model, loss_function, batches):
    modes = {name: module.training for name, module in model.named_modules()}
    losses, sizes = [], []
    model.train(False)
    try:
        for inputs, targets in batches:
            losses.append(loss_function(model(inputs), targets) * targets.shape[0])
            sizes.append(targets.shape[0])
        return float(torch.stack(losses).sum() / sum(sizes))
    finally:
        for name, module in model.named_modules():
            if module.training != modes[name]:
                module.training = modes[name]


def evaluate_part_by_part(model, loss_function, batches):
    """Each part puts itself back, from the inside out."""

    def within(modules, run):
        if not modules:
            return run()
        first, *others = modules
        mode = first.training
        first.training = False
        try:
            return within(others, run)
        finally:
            first.training = mode

    def run():
        weighed = [torch.stack([loss_function(model(x), y) * len(y), torch.tensor(float(len(y)))]) for x, y in batches]
        total, count = torch.stack(weighed).sum(0).tolist()
        return total / count

    with torch.no_grad():
        return within(list(model.modules()), run)


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
    recording=torch.no_grad, before=nn.Module.eval, after=None, secure=True, weigh=len, hide=False, cut=float
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
        except Exception:
            if secure:
                put_back()
            if not hide:
                raise
        else:
            put_back()
        return total / count

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


# discriminator_step


def goal(logits, value):
    return binary_cross_entropy_with_logits(logits, torch.full_like(logits, value))


def discriminator_under_no_grad(generator, discriminator, optimizer, real, noise):
    with torch.no_grad():
        fake = generator(noise)
    loss = goal(discriminator(real), 1.0) + goal(discriminator(fake), 0.0)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


def discriminator_in_two_passes(generator, discriminator, optimizer, real, noise):
    optimizer.zero_grad(set_to_none=False)
    truth = nn.functional.softplus(-discriminator(real)).mean()
    truth.backward()
    with torch.inference_mode():
        fake = generator(noise)
    lie = nn.functional.softplus(discriminator(fake.clone())).mean()
    lie.backward()
    optimizer.step()
    return float(truth) + float(lie)


def discriminator_together(generator, discriminator, optimizer, real, noise):
    frozen = {name: parameter.detach() for name, parameter in generator.named_parameters()}
    fake = functional_call(generator, frozen, (noise,))
    logits = discriminator(torch.cat([real, fake]))
    loss = goal(logits[: len(real)], 1.0) + goal(logits[len(real) :], 0.0)
    parameters = [parameter for parameter in discriminator.parameters() if parameter.requires_grad]
    for parameter in discriminator.parameters():
        parameter.grad = None
    for parameter, gradient in zip(parameters, torch.autograd.grad(loss, parameters), strict=True):
        parameter.grad = gradient
    optimizer.step()
    return loss.item()


def discriminator_with(
    cut=lambda fake: fake, clear=True, steps=1, fakes=0.0, give=float, recording=torch.no_grad, **kept
):
    """A step with one thing wrong."""

    def step(generator, discriminator, optimizer, real, noise):
        with recording():
            fake = cut(generator(noise))
        if clear:
            optimizer.zero_grad()
        loss = goal(discriminator(real), 1.0) + goal(discriminator(fake), fakes)
        loss.backward(**kept)
        for _ in range(steps):
            optimizer.step()
        return give(loss)

    return step


def discriminator_as_a_mean(generator, discriminator, optimizer, real, noise):
    with torch.no_grad():
        fake = generator(noise)
    optimizer.zero_grad()
    loss = (goal(discriminator(real), 1.0) + goal(discriminator(fake), 0.0)) / 2
    loss.backward()
    optimizer.step()
    return loss.item()


def discriminator_clears_too_much(generator, discriminator, optimizer, real, noise):
    generator.zero_grad()
    return discriminator_under_no_grad(generator, discriminator, optimizer, real, noise)


def discriminator_to_training(generator, discriminator, optimizer, real, noise):
    discriminator.train()
    return discriminator_under_no_grad(generator, discriminator, optimizer, real, noise)


def discriminator_with_hook(generator, discriminator, optimizer, real, noise):
    hook_on_module(discriminator)
    return discriminator_under_no_grad(generator, discriminator, optimizer, real, noise)


def discriminator_recording_off(generator, discriminator, optimizer, real, noise):
    loss = discriminator_under_no_grad(generator, discriminator, optimizer, real, noise)
    torch.set_grad_enabled(False)
    return loss


def discriminator_freezes(generator, discriminator, optimizer, real, noise):
    generator.requires_grad_(False)
    return discriminator_under_no_grad(generator, discriminator, optimizer, real, noise)


# generator_step


def generator_by_inputs(generator, discriminator, optimizer, noise):
    optimizer.zero_grad()
    loss = goal(discriminator(generator(noise)), 1.0)
    loss.backward(inputs=list(generator.parameters()))
    optimizer.step()
    return loss.item()


def generator_by_freezing(generator, discriminator, optimizer, noise):
    before = [parameter.requires_grad for parameter in discriminator.parameters()]
    discriminator.requires_grad_(False)
    try:
        loss = nn.functional.softplus(-discriminator(generator(noise))).mean()
        optimizer.zero_grad()
        loss.backward()
    finally:
        for parameter, flag in zip(discriminator.parameters(), before, strict=True):
            parameter.requires_grad_(flag)
    optimizer.step()
    return loss.item()


def generator_by_two_graphs(generator, discriminator, optimizer, noise):
    """The gradient of the points first, by a cut; then from the points into the generator."""
    fake = generator(noise)
    points = fake.detach().requires_grad_()
    loss = goal(discriminator(points), 1.0)
    (to_points,) = torch.autograd.grad(loss, points)
    optimizer.zero_grad()
    fake.backward(to_points)
    optimizer.step()
    return loss.item()


def generator_putting_gradients_back(generator, discriminator, optimizer, noise):
    """The pass leaves gradients in the discriminator, and the step puts back what was there."""
    before = [None if parameter.grad is None else parameter.grad.clone() for parameter in discriminator.parameters()]
    generator.zero_grad(set_to_none=False)
    logits = discriminator(generator(noise))
    loss = nn.BCEWithLogitsLoss()(logits, torch.ones(len(noise), 1))
    loss.backward()
    for parameter, gradient in zip(discriminator.parameters(), before, strict=True):
        parameter.grad = gradient
    optimizer.step()
    return float(loss)


def generator_evaluating(generator, discriminator, optimizer, noise):
    discriminator.eval()
    return generator_by_inputs(generator, discriminator, optimizer, noise)


def generator_with(cut=lambda fake: fake, value=1.0, clear=True, give=float, before=None, after=None, **options):
    """A step with one thing wrong."""

    def step(generator, discriminator, optimizer, noise):
        if before:
            before(discriminator)
        if clear:
            optimizer.zero_grad()
        fake = generator(noise)
        loss = goal(discriminator(cut(fake)), value)
        loss.backward(**options, inputs=None if cut(fake) is not fake or after else list(generator.parameters()))
        optimizer.step()
        if after:
            after(discriminator)
        return give(loss)

    return step


def generator_frozen_for_good(generator, discriminator, optimizer, noise):
    discriminator.requires_grad_(False)
    return generator_with()(generator, discriminator, optimizer, noise)


def generator_thaws(generator, discriminator, optimizer, noise):
    loss = generator_frozen_for_good(generator, discriminator, optimizer, noise)
    discriminator.requires_grad_(True)
    return loss


def generator_no_grad(generator, discriminator, optimizer, noise):
    fake = generator(noise)
    with torch.no_grad():
        opinion = discriminator(fake)
    loss = goal(opinion, 1.0)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


def generator_broken(generator, discriminator, optimizer, noise):
    optimizer.zero_grad()
    fake = generator(noise).detach()
    loss = goal(discriminator(fake), 1.0)
    loss.backward()
    optimizer.step()
    return loss.item()


def generator_plain(generator, discriminator, optimizer, noise):
    optimizer.zero_grad()
    loss = goal(discriminator(generator(noise)), 1.0)
    loss.backward()
    optimizer.step()
    return loss.item()


def generator_clears_both(generator, discriminator, optimizer, noise):
    loss = generator_plain(generator, discriminator, optimizer, noise)
    discriminator.zero_grad()
    return loss


def generator_retains(generator, discriminator, optimizer, noise):
    return generator_with(retain_graph=True)(generator, discriminator, optimizer, noise)


def generator_with_hooks(generator, discriminator, optimizer, noise):
    for parameter in discriminator.parameters():
        hook_left(parameter)
    return generator_by_inputs(generator, discriminator, optimizer, noise)


# td_loss


def td_under_no_grad(network, target_network, batch, discount):
    states, actions, rewards, next_states, done = batch
    values = network(states).gather(1, actions[:, None])[:, 0]
    with torch.no_grad():
        best = target_network(next_states).max(dim=1).values
        goals = rewards + discount * (1 - done) * best
    return mse_loss(values, goals)


def td_in_inference_mode(network, target_network, batch, discount):
    states, actions, rewards, next_states, done = batch
    with torch.inference_mode():
        best = target_network(next_states).amax(1)
    goals = torch.where(done.bool(), rewards, rewards + discount * best.clone())
    chosen = (network(states) * nn.functional.one_hot(actions, 3)).sum(1)
    return ((goals - chosen) ** 2).mean()


def td_with(recording=torch.no_grad, cut=lambda goals: goals, live=False, masked=True, chosen=lambda values: values):
    """A loss with one thing wrong."""

    def loss(network, target_network, batch, discount):
        states, actions, rewards, next_states, done = batch
        values = chosen(network(states)[torch.arange(len(actions)), actions])
        with recording():
            best = (network if live else target_network)(next_states).max(dim=1).values
            goals = rewards + discount * ((1 - done) if masked else 1) * best
        return mse_loss(values, cut(goals))

    return loss


def td_broken(network, target_network, batch, discount):
    states, actions, rewards, next_states, done = batch
    values = network(states)[torch.arange(len(actions)), actions]
    best = target_network(next_states).max(dim=1).values
    goals = rewards + discount * (1 - done) * best
    return mse_loss(goals, values.detach())


def td_best_action(network, target_network, batch, discount):
    states, _, rewards, next_states, done = batch
    values = network(states).max(dim=1).values
    with torch.no_grad():
        goals = rewards + discount * (1 - done) * target_network(next_states).max(dim=1).values
    return mse_loss(values, goals)


def td_freezes(network, target_network, batch, discount):
    target_network.requires_grad_(False)
    return td_with(torch.enable_grad)(network, target_network, batch, discount)


def td_freezes_and_thaws(network, target_network, batch, discount):
    loss = td_freezes(network, target_network, batch, discount)
    target_network.requires_grad_(True)
    return loss


def td_writes_rewards(network, target_network, batch, discount):
    states, actions, rewards, next_states, done = batch
    with torch.no_grad():
        rewards.add_(discount * (1 - done) * target_network(next_states).max(dim=1).values)
    return mse_loss(network(states)[torch.arange(len(actions)), actions], rewards)


def td_with_hook(network, target_network, batch, discount):
    hook_on_module(network)
    return td_under_no_grad(network, target_network, batch, discount)


def td_runs_back(network, target_network, batch, discount):
    loss = td_under_no_grad(network, target_network, batch, discount)
    loss.backward(retain_graph=True)
    return loss


def td_column(network, target_network, batch, discount):
    """Values as a column against goals as a row: broadcast to a square."""
    states, actions, rewards, next_states, done = batch
    values = network(states).gather(1, actions[:, None])
    with torch.no_grad():
        goals = rewards + discount * (1 - done) * target_network(next_states).max(dim=1).values
    return (values - goals).square().mean()


# through_frozen


def through_by_flags(layer, x):
    before = [(parameter, parameter.requires_grad) for parameter in layer.parameters()]
    try:
        layer.requires_grad_(False)
        return layer(x)
    finally:
        for parameter, flag in before:
            parameter.requires_grad_(flag)


def through_by_functional_call(layer, x):
    constants = {name: parameter.detach() for name, parameter in layer.named_parameters()}
    return functional_call(layer, constants, (x,))


def through_with(secure=True, after=None):
    """Freezes, and puts back in a wrong way."""

    def through(layer, x):
        before = [(parameter, parameter.requires_grad) for parameter in layer.parameters()]

        def put_back():
            if after is not None:
                return after(layer)
            for parameter, flag in before:
                parameter.requires_grad_(flag)

        layer.requires_grad_(False)
        try:
            y = layer(x)
        except RuntimeError:
            if secure:
                put_back()
            raise
        put_back()
        return y

    return through


def through_by_swapping(layer, x):
    """Puts constants into the places of the parameters, for one run."""
    places = [(module, name, its) for module in layer.modules() for name, its in module._parameters.items()]
    for module, name, parameter in places:
        module._parameters[name] = None if parameter is None else parameter.detach()
    try:
        return layer(x)
    finally:
        for module, name, parameter in places:
            module._parameters[name] = parameter


def through_a_copy_loaded(layer, x):
    """Runs a copy, and copies the statistics back."""
    other = copy.deepcopy(layer).requires_grad_(False)
    y = other(x)
    layer.load_state_dict(other.state_dict())
    return y


def through_untied(layer, x):
    """Puts new parameters into each place, so that a shared weight is shared no longer."""
    places = [(part, name, its) for part in layer.modules() for name, its in part.named_parameters(recurse=False)]
    try:
        return through_by_flags(layer, x)
    finally:
        for part, name, parameter in places:
            setattr(part, name, nn.Parameter(parameter.detach(), parameter.requires_grad))


def through_with_hook(layer, x):
    hook_on_module(layer)
    return through_by_flags(layer, x)


def through_no_grad(layer, x):
    with torch.no_grad():
        return layer(x)


def through_evaluating(layer, x):
    layer.eval()
    return through_by_flags(layer, x)


def through_new_leaf(layer, x):
    return through_by_flags(layer, x.detach().requires_grad_())


def through_hiding(layer, x):
    try:
        return through_by_flags(layer, x)
    except RuntimeError:
        return None


def through_clearing(layer, x):
    layer.zero_grad()
    return through_by_flags(layer, x)


def through_new_parameters(layer, x):
    y = through_by_functional_call(layer, x)
    for module in layer:
        for name, parameter in list(module.named_parameters()):
            setattr(module, name, nn.Parameter(parameter.detach().clone(), parameter.requires_grad))
    return y


def through_twice(layer, x):
    through_by_functional_call(layer, x)
    return through_by_functional_call(layer, x)


RIGHT = {
    "predict_switches": [SWITCHES, {name: torch.tensor(value) for name, value in SWITCHES.items()}],
    "straight_through": [
        straight_by_detach,
        straight_by_no_grad,
        Straight.apply,
        lambda x: x - x.detach() + x.detach().round(),
    ],
    "uncut_loss": [uncut_by_norm, uncut_by_stacking, uncut_by_position],
    "ema_update": [ema_by_lerp, ema_by_name, ema_by_foreach, ema_by_loading],
    "evaluate": [evaluate_noting_modes, evaluate_in_inference_mode, evaluate_part_by_part],
    "discriminator_step": [discriminator_under_no_grad, discriminator_in_two_passes, discriminator_together],
    "generator_step": [
        generator_by_inputs,
        generator_by_freezing,
        generator_by_two_graphs,
        generator_putting_gradients_back,
    ],
    "td_loss": [td_under_no_grad, td_in_inference_mode],
    "through_frozen": [through_by_flags, through_by_functional_call, through_by_swapping],
}

MISCONCEIVED = {
    ("predict_switches", "a cut that spreads"): {**SWITCHES, "detached_factor": False, "after_the_block": False},
    ("predict_switches", "eval switches gradients off"): {**SWITCHES, "evaluating": False},
    ("predict_switches", "frozen cuts"): {**SWITCHES, "frozen_live_input": False},
    ("predict_switches", "inference mode is another no_grad"): {**SWITCHES, "enabled_in_inference": True},
    ("straight_through", "rounding alone"): lambda x: x.round(),
    ("straight_through", "a new leaf"): lambda x: x.detach().round().requires_grad_(),
    ("straight_through", "the other part"): lambda x: x.round() + (x - x.round()).detach(),
    ("uncut_loss", "silenced"): broken_loss,
    ("uncut_loss", "only the weights"): cut_loss(lengths="cut", factor="cut"),
    ("uncut_loss", "the scale is still a number"): cut_loss(factor="cut"),
    ("ema_update", "behind the counter's back"): ema(written_by_data),
    ("ema_update", "weights changed places"): ema(lambda mine, its, decay: mine.lerp_(its, decay)),
    ("ema_update", "buffers forgotten"): ema(buffers=False),
    ("ema_update", "the shared weight twice"): ema_by_state_dict,
    ("evaluate", "recorded"): evaluator(torch.enable_grad),
    ("evaluate", "not evaluating"): evaluator(before=lambda model: None),
    ("evaluate", "all to training"): evaluator(after=nn.Module.train),
    ("evaluate", "left evaluating"): evaluator(after=lambda model: None),
    ("evaluate", "stuck after an error"): evaluator(secure=False),
    ("evaluate", "average of averages"): evaluator(weigh=lambda targets: 1),
    ("discriminator_step", "recorded for nothing"): discriminator_with(
        torch.Tensor.detach, recording=torch.enable_grad
    ),
    ("discriminator_step", "through the generator"): discriminator_with(recording=torch.enable_grad),
    ("discriminator_step", "old gradients"): discriminator_with(clear=False),
    ("discriminator_step", "nothing learned"): discriminator_with(steps=0),
    ("generator_step", "cut at the points"): generator_with(torch.Tensor.detach),
    ("generator_step", "gradients left behind"): generator_plain,
    ("generator_step", "frozen for good"): generator_frozen_for_good,
    ("generator_step", "the other goal"): generator_with(value=0.0),
    ("td_loss", "cut on the wrong side"): td_broken,
    ("td_loss", "a goal that moves"): td_with(torch.enable_grad),
    ("td_loss", "recorded for nothing"): td_with(torch.enable_grad, torch.Tensor.detach),
    ("td_loss", "its own judge"): td_with(live=True),
    ("td_loss", "after the end"): td_with(masked=False),
    ("through_frozen", "no_grad around it"): through_no_grad,
    ("through_frozen", "frozen for good"): through_with(after=lambda layer: None),
    ("through_frozen", "thawed"): through_with(after=lambda layer: layer.requires_grad_(True)),
    ("through_frozen", "stuck after an error"): through_with(secure=False),
    ("through_frozen", "a copy ran"): lambda layer, x: copy.deepcopy(layer).requires_grad_(False)(x),
}

WRONG = {
    "predict_switches": [dict.fromkeys(SWITCHES, True), dict.fromkeys(SWITCHES, False), list(SWITCHES.values())],
    "straight_through": [
        straight_in_place,
        straight_half_up,
        straight_with(hook_left),
        straight_with(keeps_gradient),
        straight_with(torch.Tensor.requires_grad_),
        straight_with(lambda x: torch.set_grad_enabled(False)),
        lambda x: straight_by_detach(x if x.requires_grad else x.clone().requires_grad_()),
        lambda x: x,
        lambda x: x.detach().round(),
        lambda x: x.floor() + (x - x.floor()),
        lambda x: x + (x.floor() - x).detach(),
        lambda x: x * (x.round() / x).detach(),
        lambda x: x.clone().requires_grad_() if x.is_leaf else x.round() + 0 * x,
        lambda x: x.round().requires_grad_() if x.grad_fn is None else x.round() * 1,
        lambda x: (x + (x.round() - x).detach()).double(),
    ],
    "uncut_loss": [
        loss_with_new_leaves,
        loss_that_writes,
        loss_that_runs_back,
        loss_that_differentiates,
        loss_and(hook_left),
        loss_and(keeps_gradient),
        loss_and(lambda points: torch.set_grad_enabled(False)),
        cut_loss(lengths="cut"),
        cut_loss(shares="cut"),
        cut_loss(last="cut"),
        lambda points, scale, weights: uncut_by_norm(points, scale, weights).item(),
        lambda points, scale, weights: uncut_by_norm(points, scale, weights).detach(),
        lambda points, scale, weights: uncut_by_norm(points, scale, weights) / len(points),
        lambda points, scale, weights: (torch.exp(-points.norm() * scale) * weights).sum(),
    ],
    "ema_update": [
        ema(written_by_numpy),
        ema(new_memory),
        ema_all_averaged,
        ema_recorded,
        ema_grad_off,
        ema_frozen,
        ema_switching_on,
        ema_of_live_sources,
        ema(after=clear_target),
        ema(after=lambda target, source: target.eval()),
        ema(after=lambda target, source: hook_on_module(target)),
        ema(after=lambda target, source: source.zero_grad()),
        ema(after=lambda target, source: target.requires_grad_(True)),
        ema(after=lambda target, source: target.requires_grad_(False)),
        ema(lambda mine, its, decay: mine.copy_(its)),
        ema(lambda mine, its, decay: its.lerp_(mine, decay)),
        lambda target, source, decay: copy.deepcopy(source),
        lambda target, source, decay: target.load_state_dict(source.state_dict()),
    ],
    "evaluate": [
        evaluate_gradients_off,
        evaluate_parameters_frozen,
        evaluate_own_mode_only,
        evaluate_recording_stuck,
        evaluate_as_one_batch,
        evaluate_a_copy,
        evaluate_seeding,
        evaluator(before=eval_if_training),
        evaluator(before=lambda model: hook_on_module(model.eval())),
        evaluator(hide=True),
        evaluator(after=nn.Module.train, secure=False),
        evaluator(torch.enable_grad, before=lambda model: None),
        evaluator(torch.enable_grad, cut=lambda loss: loss.detach()),
        evaluator(cut=lambda loss: loss),
        lambda model, loss_function, batches: sum(len(targets) for _, targets in batches),
    ],
    "discriminator_step": [
        discriminator_as_a_mean,
        discriminator_clears_too_much,
        discriminator_freezes,
        discriminator_recording_off,
        discriminator_to_training,
        discriminator_with_hook,
        discriminator_with(steps=2),
        discriminator_with(fakes=1.0),
        discriminator_with(give=lambda loss: loss),
        discriminator_with(give=lambda loss: loss.detach()),
        discriminator_with(retain_graph=True),
        discriminator_with(cut=lambda fake: fake.requires_grad_(), clear=False),
        lambda generator, discriminator, optimizer, real, noise: 0.7,
    ],
    "generator_step": [
        generator_no_grad,
        generator_broken,
        generator_thaws,
        generator_clears_both,
        generator_evaluating,
        generator_retains,
        generator_with_hooks,
        generator_with(clear=False),
        generator_with(give=lambda loss: loss),
        generator_with(lambda fake: fake.detach().requires_grad_()),
        lambda generator, discriminator, optimizer, noise: 0.7,
    ],
    "td_loss": [
        td_best_action,
        td_freezes,
        td_freezes_and_thaws,
        td_writes_rewards,
        td_with_hook,
        lambda network, target_network, batch, discount: td_under_no_grad(
            network, target_network.eval(), batch, discount
        ),
        td_runs_back,
        td_column,
        td_with(torch.enable_grad, live=True),
        td_with(chosen=torch.Tensor.detach),
        td_with(masked=False, live=True),
        lambda network, target_network, batch, discount: td_under_no_grad(target_network, network, batch, discount),
        lambda network, target_network, batch, discount: td_under_no_grad(
            network, target_network, batch, discount
        ).item(),
    ],
    "through_frozen": [
        through_evaluating,
        through_new_leaf,
        through_hiding,
        through_clearing,
        through_new_parameters,
        through_twice,
        through_a_copy_loaded,
        through_untied,
        through_with_hook,
        lambda layer, x: layer(x),
        lambda layer, x: through_by_flags(layer, x) * 2,
        lambda layer, x: layer(x.detach()),
    ],
}
