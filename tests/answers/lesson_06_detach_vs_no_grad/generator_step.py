"""Right and wrong answers to `generator_step`."""

import torch
from torch import nn
from torch.func import functional_call

from tests.answers.leaving import clipping, leaving
from tests.answers.lesson_06_detach_vs_no_grad.games import goal, stepped
from tests.answers.lesson_06_detach_vs_no_grad.side_effects import hook_left
from tests.answers.near import near
from tests.answers.said import said
from tests.answers.twice import frozen_on_a_walk, modes_on_a_walk


def generator_by_inputs(generator, discriminator, optimizer, noise):
    optimizer.zero_grad()
    loss = goal(discriminator(generator(noise)), 1.0)
    loss.backward(inputs=list(generator.parameters()))
    optimizer.step()
    return loss.item()


def generator_by_freezing(generator, discriminator, optimizer, noise):
    before = [parameter.requires_grad for parameter in discriminator.parameters()]
    discriminator.requires_grad_(False)
    loss = nn.functional.softplus(-discriminator(generator(noise))).mean()
    for parameter, flag in zip(discriminator.parameters(), before, strict=True):
        parameter.requires_grad_(flag)
    return stepped(optimizer, loss)


def generator_by_constants(generator, discriminator, optimizer, noise):
    """The discriminator's numbers without their graph."""
    constants = {name: parameter.detach() for name, parameter in discriminator.named_parameters()}
    return stepped(optimizer, goal(functional_call(discriminator, constants, (generator.forward(noise),)), 1.0))


def generator_putting_gradients_back(generator, discriminator, optimizer, noise):
    """The pass leaves gradients in the discriminator, and the step puts back what was there."""
    before = [parameter.grad.clone() for parameter in discriminator.parameters()]
    loss = stepped(optimizer, goal(discriminator(generator(noise)), 1.0))
    for parameter, gradient in zip(discriminator.parameters(), before, strict=True):
        parameter.grad = gradient
    return loss


def generator_evaluating(generator, discriminator, optimizer, noise):
    discriminator[0].train(not discriminator[0].training)
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


def generator_by_grad_alone(generator, discriminator, optimizer, noise):
    """The gradients stay where grad gave them."""
    loss = goal(discriminator(generator(noise)), 1.0)
    optimizer.zero_grad()
    torch.autograd.grad(loss, list(generator.parameters()))
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


def generator_in_training(generator, discriminator, optimizer, noise):
    """Puts both players into training, and back."""
    modes = [(part, part.training) for player in (generator, discriminator) for part in player.modules()]
    generator.train()
    discriminator.train()
    loss = generator_by_inputs(generator, discriminator, optimizer, noise)
    for part, mode in modes:
        part.training = mode
    return loss


def generator_by_logarithm(generator, discriminator, optimizer, noise):
    """The same loss, until the sigmoid is rounded to 0."""
    optimizer.zero_grad()
    loss = -discriminator(generator(noise)).sigmoid().log().mean()
    loss.backward(inputs=list(generator.parameters()))
    optimizer.step()
    return loss.item()


def generator_peeking(generator, discriminator, optimizer, noise):
    generator(noise)
    return generator_by_inputs(generator, discriminator, optimizer, noise)


def discriminator_peeking(generator, discriminator, optimizer, noise):
    discriminator(torch.zeros(2, 2))
    return generator_by_inputs(generator, discriminator, optimizer, noise)


def generator_of_the_near(generator, discriminator, optimizer, noise):
    """The pass is for the generator's direct children."""
    optimizer.zero_grad()
    loss = goal(discriminator(generator(noise)), 1.0)
    loss.backward(inputs=list(near(generator).values()))
    optimizer.step()
    return loss.item()


def generator_freezing_the_near(generator, discriminator, optimizer, noise):
    """Freezes the discriminator's direct children."""
    before = [(parameter, parameter.requires_grad) for parameter in near(discriminator).values()]
    for parameter, _ in before:
        parameter.requires_grad_(False)
    loss = goal(discriminator(generator(noise)), 1.0)
    for parameter, flag in before:
        parameter.requires_grad_(flag)
    return stepped(optimizer, loss)


def generator_freezing_on_a_walk(generator, discriminator, optimizer, noise):
    put_back = frozen_on_a_walk(discriminator)
    loss = goal(discriminator(generator(noise)), 1.0)
    put_back()
    return stepped(optimizer, loss)


def generator_evaluating_on_a_walk(generator, discriminator, optimizer, noise):
    put_back = modes_on_a_walk(discriminator, False)
    loss = generator_by_inputs(generator, discriminator, optimizer, noise)
    put_back()
    return loss


def generator_putting_the_same_back(generator, discriminator, optimizer, noise):
    """Keeps the tensors in .grad, to which the pass adds."""
    kept = [(parameter, parameter.grad) for parameter in discriminator.parameters()]
    loss = stepped(optimizer, goal(discriminator(generator(noise)), 1.0))
    for parameter, gradient in kept:
        parameter.grad = gradient
    return loss


RIGHT = [
    generator_by_inputs,
    generator_by_freezing,
    generator_by_constants,
    generator_putting_gradients_back,
]

MISCONCEIVED = {
    "cut at the points": generator_with(torch.Tensor.detach),
    "gradients left behind": generator_clears_both,
    "added to the discriminator's gradients": generator_plain,
    "frozen for good": generator_frozen_for_good,
    "old gradients": generator_with(clear=False),
    "the other goal": generator_with(value=0.0),
}

WRONG = [
    generator_of_the_near,
    said(generator_freezing_the_near, "added to the discriminator's gradients"),
    said(generator_putting_the_same_back, "added to the discriminator's gradients"),
    clipping(generator_by_inputs, 1e3),
    generator_no_grad,
    generator_by_logarithm,
    said(generator_broken, "cut at the points"),
    said(generator_thaws, "frozen for good"),
    leaving(generator_by_inputs, lambda generator, *rest: generator.requires_grad_(False)),
    said(generator_by_grad_alone, "cut at the points"),
    said(generator_clears_both, "gradients left behind"),
    generator_evaluating,
    generator_retains,
    generator_with_hooks,
    generator_to_tensor := generator_with(give=lambda loss: loss),
    generator_more := generator_with(give=lambda loss: loss.item() + 1),
    generator_peeking,
    discriminator_peeking,
    generator_in_training,
    generator_idle_step := leaving(
        generator_by_inputs, lambda g, d, optimizer, noise: (optimizer.zero_grad(), optimizer.step())
    ),
    generator_off := leaving(generator_by_inputs, lambda g, d, *rest: g[0].weight.data.mul_(2)),
    generator_moving := leaving(generator_by_inputs, lambda g, d, *rest: d[0].weight.data.mul_(2)),
    said(generator_with(lambda fake: fake.detach().requires_grad_()), "cut at the points"),
    lambda generator, discriminator, optimizer, noise: 0.7,
    said(generator_freezing_on_a_walk, "frozen for good"),
    generator_evaluating_on_a_walk,
]

EQUIVALENT = {
    "generator_by_inputs: optimizer.zero_grad() -> optimizer.zero_grad(set_to_none=False)": "Every gradient that is cleared comes anew.",
    "generator_by_inputs: optimizer.zero_grad() | loss = goal(discriminator(generator(noise)), 1.0) -> (swapped)": "A forward does not read gradients.",
    "stepped: optimizer.zero_grad() -> optimizer.zero_grad(set_to_none=False)": "Every gradient that is cleared comes anew.",
}

GUARDS = {
    "It makes one step": {"steps": generator_idle_step, "moved": generator_off},
    "returns the loss as a Python float, from before the step": {
        "number": generator_to_tensor,
        "value": generator_more,
    },
    "Afterwards the discriminator is as before: its numbers, its `.grad`": {
        "other": generator_moving,
        "gradients": generator_plain,
    },
    "`requires_grad` of each parameter": {"flags": generator_frozen_for_good},
    "Every mode and hook of both stays.": {"modes": generator_evaluating, "hooks": generator_with_hooks},
    "Each player, or a copy of it, runs once": {"fakes": generator_peeking, "opinions": discriminator_peeking},
    "no pass keeps its graph": {"kept": generator_retains},
}
