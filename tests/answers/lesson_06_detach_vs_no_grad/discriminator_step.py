"""Right and wrong answers to `discriminator_step`."""

import torch
from torch import nn
from torch.func import functional_call

from tests.answers.leaving import clipping, leaving
from tests.answers.lesson_06_detach_vs_no_grad.games import goal, stepped
from tests.answers.lesson_06_detach_vs_no_grad.side_effects import hook_on_module
from tests.answers.near import near
from tests.answers.said import said
from tests.answers.twice import frozen_on_a_walk, modes_on_a_walk


def discriminator_under_no_grad(generator, discriminator, optimizer, real, noise):
    with torch.no_grad():
        fake = generator(noise)
    return stepped(optimizer, goal(discriminator(real), 1.0) + goal(discriminator(fake), 0.0))


def discriminator_in_two_passes(generator, discriminator, optimizer, real, noise):
    optimizer.zero_grad()
    truth = nn.functional.softplus(-discriminator(real)).mean()
    truth.backward()
    with torch.inference_mode():
        fake = generator.forward(noise)
    lie = nn.functional.softplus(discriminator(fake.clone())).mean()
    lie.backward()
    optimizer.step()
    return float(truth) + float(lie)


def discriminator_together(generator, discriminator, optimizer, real, noise):
    frozen = {name: parameter.detach() for name, parameter in generator.named_parameters()}
    logits = discriminator(torch.cat([real, functional_call(generator, frozen, (noise,))]))
    return stepped(optimizer, goal(logits[: len(real)], 1.0) + goal(logits[len(real) :], 0.0))


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
    discriminator[0].train(not discriminator[0].training)
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


def discriminator_in_training(generator, discriminator, optimizer, real, noise):
    """Puts both players into training, and back."""
    modes = [(part, part.training) for player in (generator, discriminator) for part in player.modules()]
    generator.train()
    discriminator.train()
    loss = discriminator_under_no_grad(generator, discriminator, optimizer, real, noise)
    for part, mode in modes:
        part.training = mode
    return loss


def discriminator_peeking(generator, discriminator, optimizer, real, noise):
    """Runs the generator once more, unrecorded."""
    with torch.no_grad():
        generator(noise)
    return discriminator_under_no_grad(generator, discriminator, optimizer, real, noise)


def discriminator_past_the_near(generator, discriminator, optimizer, real, noise):
    """The generator runs with constants in its direct children alone."""
    frozen = {name: parameter.detach() for name, parameter in near(generator).items()}
    fake = functional_call(generator, frozen, (noise,))
    return stepped(optimizer, goal(discriminator(real), 1.0) + goal(discriminator(fake), 0.0))


def discriminator_clearing_the_near(generator, discriminator, optimizer, real, noise):
    with torch.no_grad():
        fake = generator(noise)
    for parameter in near(discriminator).values():
        parameter.grad = None
    loss = goal(discriminator(real), 1.0) + goal(discriminator(fake), 0.0)
    loss.backward()
    optimizer.step()
    return loss.item()


def discriminator_clearing_to_zeros(generator, discriminator, optimizer, real, noise):
    with torch.no_grad():
        fake = generator(noise)
    discriminator.zero_grad(set_to_none=False)
    loss = goal(discriminator(real), 1.0) + goal(discriminator(fake), 0.0)
    loss.backward()
    optimizer.step()
    return loss.item()


def discriminator_filling_with_zeros(generator, *given):
    """Cut, and recorded, with zeros in the generator's .grad."""
    loss = discriminator_with(torch.Tensor.detach, recording=torch.enable_grad)(generator, *given)
    generator.zero_grad(set_to_none=False)
    return loss


RIGHT = [discriminator_under_no_grad, discriminator_in_two_passes, discriminator_together]


def discriminator_of_all_points(generator, discriminator, optimizer, real, noise):
    with torch.no_grad():
        fake = generator(noise)
    logits = torch.cat([discriminator(real), discriminator(fake)])
    answers = torch.cat([torch.ones_like(logits[: len(real)]), torch.zeros_like(logits[len(real) :])])
    return stepped(optimizer, 2 * nn.functional.binary_cross_entropy_with_logits(logits, answers))


MISCONCEIVED = {
    "recorded for nothing": discriminator_with(torch.Tensor.detach, recording=torch.enable_grad),
    "through the generator": discriminator_with(recording=torch.enable_grad),
    "old gradients": discriminator_with(clear=False),
    "all points together": discriminator_of_all_points,
    "nothing learned": discriminator_with(steps=0),
    "zeros for what is frozen": discriminator_clearing_to_zeros,
}


def discriminator_by_sigmoid(generator, discriminator, optimizer, real, noise):
    with torch.no_grad():
        fake = generator(noise)
    truth, lie = discriminator(real).sigmoid().log(), (1 - discriminator(fake).sigmoid()).log()
    return stepped(optimizer, -truth.clamp(min=-100).mean() - lie.clamp(min=-100).mean())


def discriminator_clearing_late(generator, discriminator, optimizer, real, noise):
    """Clears between its pass and its step."""
    with torch.no_grad():
        fake = generator(noise)
    loss = goal(discriminator(real), 1.0) + goal(discriminator(fake), 0.0)
    loss.backward()
    optimizer.zero_grad()
    optimizer.step()
    return loss.item()


def discriminator_freezing_on_a_walk(generator, discriminator, optimizer, real, noise):
    put_back = frozen_on_a_walk(generator)
    fake = generator(noise)
    put_back()
    return stepped(optimizer, goal(discriminator(real), 1.0) + goal(discriminator(fake), 0.0))


def discriminator_evaluating_on_a_walk(generator, *given):
    put_back = modes_on_a_walk(generator, False)
    loss = discriminator_under_no_grad(generator, *given)
    put_back()
    return loss


WRONG = [
    said(discriminator_past_the_near, "through the generator"),
    discriminator_clearing_the_near,
    clipping(discriminator_under_no_grad, 1e4),
    discriminator_as_a_mean,
    discriminator_filling_with_zeros,
    discriminator_clears_too_much,
    discriminator_freezes,
    discriminator_recording_off,
    discriminator_to_training,
    discriminator_with_hook,
    discriminator_with(steps=2),
    discriminator_with(fakes=1.0),
    discriminator_to_tensor := discriminator_with(give=lambda loss: loss),
    discriminator_more := discriminator_with(give=lambda loss: loss.item() + 1),
    discriminator_with(give=lambda loss: loss.detach()),
    discriminator_keeping := discriminator_with(retain_graph=True),
    discriminator_in_training,
    discriminator_thawing := leaving(discriminator_under_no_grad, lambda g, d, *rest: d.requires_grad_(True)),
    leaving(discriminator_under_no_grad, lambda g, *rest: g.requires_grad_(True)),
    discriminator_by_sigmoid,
    discriminator_moving := leaving(discriminator_under_no_grad, lambda g, d, *rest: g[0].weight.data.mul_(2)),
    discriminator_idle_step := leaving(
        discriminator_under_no_grad, lambda g, d, optimizer, *rest: (optimizer.zero_grad(), optimizer.step())
    ),
    discriminator_off := leaving(discriminator_under_no_grad, lambda g, d, *rest: d[0].weight.data.mul_(2)),
    discriminator_peeking,
    said(discriminator_with(cut=lambda fake: fake.requires_grad_(), clear=False), "old gradients"),
    lambda generator, discriminator, optimizer, real, noise: 0.7,
    said(discriminator_clearing_late, "nothing learned"),
    discriminator_freezing_on_a_walk,
    discriminator_evaluating_on_a_walk,
]

EQUIVALENT = {
    "discriminator_in_two_passes: torch.inference_mode -> torch.no_grad": "Neither records, and the points are cloned.",
    "discriminator_in_two_passes: optimizer.zero_grad() | truth = nn.functional.softplus(-discriminator(real)).mean() -> (swapped)": "A forward does not read gradients.",
    "discriminator_in_two_passes: truth.backward() | with torch.inference_mode(): ... -> (swapped)": "The two do not touch each other.",
}

GUARDS = {
    "It makes one step of `optimizer`": {"steps": discriminator_idle_step, "moved": discriminator_off},
    "returns the loss as a Python float, from before the step.": {
        "number": discriminator_to_tensor,
        "value": discriminator_more,
    },
    "It stays as it is, its `.grad` too.": {
        "other": discriminator_moving,
        "gradients": discriminator_clears_too_much,
    },
    "Every mode, hook and `requires_grad` stays.": {
        "modes": discriminator_to_training,
        "hooks": discriminator_with_hook,
        "flags": discriminator_freezes,
    },
    "The generator, or a copy of it, runs once, and *its run is not recorded*.": {
        "fakes": discriminator_peeking,
        "recorded": MISCONCEIVED["recorded for nothing"],
    },
    "No pass keeps its graph": {"kept": discriminator_keeping},
}


def discriminator_clearing_what_learns(generator, discriminator, optimizer, real, noise):
    """A frozen parameter moves along what was in its .grad."""
    with torch.no_grad():
        fake = generator(noise)
    for parameter in discriminator.parameters():
        if parameter.requires_grad:
            parameter.grad = None
    loss = goal(discriminator(real), 1.0) + goal(discriminator(fake), 0.0)
    loss.backward()
    optimizer.step()
    return loss.item()


MISCONCEIVED["a frozen parameter moved"] = discriminator_clearing_what_learns
