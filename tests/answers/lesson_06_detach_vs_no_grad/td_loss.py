"""Right and wrong answers to `td_loss`."""

import torch
from torch import nn
from torch.nn.functional import mse_loss

from tests.answers.lesson_06_detach_vs_no_grad.side_effects import hook_on_module
from tests.answers.said import said


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


RIGHT = [td_under_no_grad, td_in_inference_mode]

MISCONCEIVED = {
    "cut on the wrong side": td_broken,
    "a goal that moves": td_with(torch.enable_grad),
    "recorded for nothing": td_with(torch.enable_grad, torch.Tensor.detach),
    "its own judge": td_with(live=True),
    "after the end": td_with(masked=False),
}

WRONG = [
    td_best_action,
    td_freezes,
    td_freezes_and_thaws,
    td_writes_rewards,
    td_with_hook,
    lambda network, target_network, batch, discount: td_under_no_grad(network, target_network.eval(), batch, discount),
    td_runs_back,
    td_column,
    said(td_with(torch.enable_grad, live=True), "its own judge"),
    td_with(chosen=torch.Tensor.detach),
    td_with(masked=False, live=True),
    said(
        lambda network, target_network, batch, discount: td_under_no_grad(target_network, network, batch, discount),
        "cut on the wrong side",
    ),
    lambda network, target_network, batch, discount: td_under_no_grad(network, target_network, batch, discount).item(),
]
