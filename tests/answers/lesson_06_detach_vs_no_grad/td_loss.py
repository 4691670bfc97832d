"""Right and wrong answers to `td_loss`."""

import copy

import torch
from torch import nn
from torch.nn.functional import mse_loss

from tests.answers.lesson_06_detach_vs_no_grad.side_effects import hook_on_module
from tests.answers.near import near
from tests.answers.said import said
from tests.answers.twice import around, frozen_on_a_walk


def td_under_no_grad(network, target_network, batch, discount):
    states, actions, rewards, next_states, done = batch
    values = network(states).gather(1, actions[:, None])[:, 0]
    with torch.no_grad():
        best = target_network(next_states).max(dim=1).values
        goals = rewards + discount * (1 - done) * best
    return mse_loss(values, goals)


def td_by_masks(network, target_network, batch, discount):
    states, actions, rewards, next_states, done = batch
    with torch.no_grad():
        later = rewards + discount * target_network.forward(next_states).amax(1)
    chosen = (network(states) * nn.functional.one_hot(actions, 3)).sum(1)
    return ((torch.where(done.bool(), rewards, later) - chosen) ** 2).mean()


def td_by_a_copy(network, target_network, batch, discount):
    states, actions, rewards, next_states, done = batch
    best = copy.deepcopy(target_network).requires_grad_(False)(next_states).max(dim=1).values
    goals = rewards + discount * (1 - done) * best
    return mse_loss(torch.stack([row[action] for row, action in zip(network(states), actions, strict=True)]), goals)


def td_within_bounds(network, target_network, batch, discount):
    """Rewards are cut off, as in games whose score counts."""
    states, actions, rewards, next_states, done = batch
    return td_under_no_grad(
        network, target_network, (states, actions, rewards.clamp(-10, 10), next_states, done), discount
    )


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


def td_given(network, target_network, batch, discount):
    """The function of the task."""
    states, actions, rewards, next_states, _ = batch
    values = network(states)[torch.arange(len(actions)), actions]
    best = network(next_states).max(dim=1).values
    return mse_loss(rewards + discount * best, values.detach())


def td_and(more):
    def loss(network, target_network, batch, discount):
        result = td_under_no_grad(network, target_network, batch, discount)
        more(network, target_network, batch)
        return result

    return loss


def _unrecorded(network, states):
    with torch.no_grad():
        network(states)


def td_in_training(network, target_network, batch, discount):
    """Puts the older network into training, and back."""
    modes = [(part, part.training) for part in target_network.modules()]
    target_network.train()
    result = td_under_no_grad(network, target_network, batch, discount)
    for part, mode in modes:
        part.training = mode
    return result


def td_spent(network, target_network, batch, discount):
    result = td_under_no_grad(network, target_network, batch, discount)
    torch.autograd.grad(result, list(network.parameters()))
    return result


def td_steeper(*given):
    """The right value with twice the gradient."""
    loss = td_under_no_grad(*given)
    return 2 * loss - loss.detach()


def td_reaching(network, target_network, batch, discount):
    """A gradient of zero reaches the older network."""
    return td_under_no_grad(network, target_network, batch, discount) + 0 * target_network[0].weight.sum()


def td_past_the_near(network, target_network, batch, discount):
    """The older network runs with constants in its direct children alone."""
    states, actions, rewards, next_states, done = batch
    constants = {name: parameter.detach() for name, parameter in near(target_network).items()}
    best = torch.func.functional_call(target_network, constants, (next_states,)).max(dim=1).values
    goals = rewards + discount * (1 - done) * best
    return mse_loss(network(states).gather(1, actions[:, None])[:, 0], goals)


def td_silenced(network, target_network, batch, discount):
    """Both sides cut, and a leaf made of the loss."""
    loss = td_with(torch.enable_grad, torch.Tensor.detach, chosen=torch.Tensor.detach)
    return loss(network, target_network, batch, discount).requires_grad_()


RIGHT = [td_under_no_grad, td_by_masks, td_by_a_copy]

MISCONCEIVED = {
    "cut on the wrong side": td_broken,
    "a goal that moves": td_with(torch.enable_grad),
    "recorded for nothing": td_with(torch.enable_grad, torch.Tensor.detach),
    "its own judge": td_with(live=True),
    "after the end": td_with(masked=False),
    "every pair": td_column,
    "the best action's value": td_best_action,
    "done turned round": lambda network, target_network, batch, discount: td_under_no_grad(
        network, target_network, (*batch[:4], 1 - batch[4]), discount
    ),
}

WRONG = [
    said(td_past_the_near, "a goal that moves"),
    td_freezes,
    td_freezes_and_thaws,
    lambda network, target_network, batch, discount: td_under_no_grad(network, target_network, batch, discount or 0.99),
    lambda network, target_network, batch, discount: td_under_no_grad(
        network, target_network, batch, min(discount, 0.99)
    ),
    td_within_bounds,
    said(td_silenced, "cut on the wrong side"),
    td_writes_rewards,
    td_with_hook,
    lambda network, target_network, batch, discount: td_under_no_grad(network, target_network.eval(), batch, discount),
    td_runs_back,
    said(td_with(torch.enable_grad, live=True), "its own judge"),
    td_cut := td_with(chosen=torch.Tensor.detach),
    said(td_with(masked=False, live=True), "its own judge", "after the end"),
    said(td_given, "its own judge", "after the end"),
    td_moving := td_and(lambda network, target_network, batch: target_network[0].bias.data.mul_(2)),
    td_evaluating := td_and(lambda network, target_network, batch: network[0].eval()),
    td_grading := td_and(
        lambda network, target_network, batch: setattr(network[0].bias, "grad", torch.ones_like(network[0].bias))
    ),
    td_running := td_and(lambda network, target_network, batch: network(batch[0])),
    td_running_the_old := td_and(lambda network, target_network, batch: _unrecorded(target_network, batch[0])),
    td_in_training,
    td_more := lambda *given: td_under_no_grad(*given) + 1,
    td_steeper,
    td_reaching,
    td_spent,
    said(
        lambda network, target_network, batch, discount: td_under_no_grad(target_network, network, batch, discount),
        "cut on the wrong side",
    ),
    lambda network, target_network, batch, discount: td_under_no_grad(network, target_network, batch, discount).item(),
    td_and(lambda network, target_network, batch: network.zero_grad()),
    lambda network, target_network, batch, discount: td_under_no_grad(
        network, target_network, tuple(it.squeeze() for it in batch), discount
    ),
    lambda *given: td_under_no_grad(*given).float(),
    around(td_under_no_grad, frozen_on_a_walk, 1),
]

EQUIVALENT = {
    "td_by_a_copy: ...ext_states).max(dim=1) -> ...ext_states).max(dim=-1)": "The values have two dimensions.",
    "td_by_masks: target_network.forward(next_states).amax(1) -> target_network.forward(next_states).amax(-1)": "The values have two dimensions.",
    "td_by_masks: (network(states) * nn.functional.one_hot(actions, 3)).sum(1) -> (network(states) * nn.functional.one_hot(actions, 3)).sum(-1)": "The values have two dimensions.",
    "td_by_masks: with torch.no_grad(): ... | chosen = (network(states) * nn.functional.one_hot(actions, 3)).sum(1) -> (swapped)": "The two do not touch each other.",
    "td_under_no_grad: network(states).gather(1, actions[:, None]) -> network(states).gather(-1, actions[:, None])": "The values have two dimensions.",
    "td_under_no_grad: target_network(next_states).max(dim=1) -> target_network(next_states).max(dim=-1)": "The values have two dimensions.",
    "td_under_no_grad: values = network(states).gather(1, actions[:, None])[:, 0] | with torch.no_grad(): ... -> (swapped)": "The two do not touch each other.",
}

GUARDS = {
    "It returns the loss as a tensor.": {"value": td_more, "graph": td_cut},
    "The gradient goes into `network`, by the values of the actions taken, and nowhere else.": {
        "value": td_steeper,
        "constant": td_reaching,
    },
    "The run of `target_network` is not\nrecorded.": {"recorded": MISCONCEIVED["recorded for nothing"]},
    "Each network, or a copy of it, runs once, and each keeps its numbers, its `.grad`, its modes, its hooks and its `requires_grad`": {
        "runs": td_running,
        "old runs": td_running_the_old,
        "untouched": td_moving,
        "graded": td_grading,
        "modes": td_evaluating,
        "hooks": td_with_hook,
    },
    "The tensors of the batch require no gradient and keep their numbers.": {"batch": td_writes_rewards},
}


def td_nothing_at_the_end(network, target_network, batch, discount):
    states, actions, rewards, next_states, done = batch
    values = network(states).gather(1, actions[:, None])[:, 0]
    with torch.no_grad():
        goals = (rewards + discount * target_network(next_states).amax(1)) * (1 - done)
    return mse_loss(values, goals)


def td_chosen_by_network(network, target_network, batch, discount):
    """The double network of the literature."""
    states, actions, rewards, next_states, done = batch
    values = network(states).gather(1, actions[:, None])[:, 0]
    with torch.no_grad():
        liked = network(next_states).argmax(1, keepdim=True)
        goals = rewards + discount * (1 - done) * target_network(next_states).gather(1, liked)[:, 0]
    return mse_loss(values, goals)


MISCONCEIVED["nothing at the end"] = td_nothing_at_the_end
MISCONCEIVED["chosen by network"] = td_chosen_by_network
