"""Right and wrong answers to `gradient_penalty`."""

import torch

from tests.answers.leaving import gradients_off, leaving
from tests.answers.said import said


def penalty_by_sum(critic, real, fake, mix):
    points = (mix * real + (1 - mix) * fake).detach().requires_grad_()
    (gradients,) = torch.autograd.grad(critic(points).sum(), points, create_graph=True)
    return (gradients.flatten(1).norm(dim=1) - 1).square().mean()


def penalty_by_seed(critic, real, fake, mix):
    with torch.no_grad():
        points = torch.lerp(fake, real, mix.expand_as(real))
    points.requires_grad_(True)
    scores = critic.forward(points)
    gradients = torch.autograd.grad(scores, points, torch.ones_like(scores), create_graph=True)[0]
    rows = gradients.reshape(len(real), -1)
    norms = (torch.einsum("ni,ni->n", rows, rows) + 1e-12).sqrt()
    return ((norms - 1) ** 2).sum() / len(norms)


def penalty_by_func(critic, real, fake, mix):
    points = mix * real + (1 - mix) * fake.detach()
    gradients = torch.func.grad(lambda x: critic(x).sum())(points)
    return torch.stack([(gradient.norm() - 1) ** 2 for gradient in gradients]).mean()


def penaliser(
    points=lambda real, fake, mix: (mix * real + (1 - mix) * fake).detach(),
    score=torch.sum,
    norm=lambda gradients: gradients.flatten(1).norm(dim=1),
    distance=lambda norms: (norms - 1).square().mean(),
    **options,
):
    """A penalty with one thing wrong."""

    def penalty(critic, real, fake, mix):
        at = points(real, fake, mix)
        at = at if at.requires_grad else at.requires_grad_()
        (gradients,) = torch.autograd.grad(score(critic(at)), at, **{"create_graph": True, **options})
        return distance(norm(gradients))

    return penalty


def penalty_in_eval(critic, real, fake, mix):
    critic.eval()
    result = penalty_by_sum(critic, real, fake, mix)
    critic.train()
    return result


def penalty_by_backward(critic, real, fake, mix):
    points = (mix * real + (1 - mix) * fake).detach().requires_grad_()
    critic(points).sum().backward(create_graph=True)
    return (points.grad.flatten(1).norm(dim=1) - 1).square().mean()


def penalty_in_a_loop(critic, real, fake, mix):
    return torch.stack(
        [penalty_by_sum(critic, *(t[n : n + 1] for t in (real, fake, mix))) for n in range(len(real))]
    ).mean()


def penalty_spent(critic, real, fake, mix):
    result = penalty_by_sum(critic, real, fake, mix)
    parameters = [p for p in critic.parameters() if p.requires_grad]
    torch.autograd.grad(result, parameters, allow_unused=True)
    return result


def penalty_remembered():
    """Takes the mixed points of the first call for all later ones of that shape."""
    known = {}

    def penalty(critic, real, fake, mix):
        at = known.setdefault(real.shape, (real, fake, mix))
        return penalty_by_sum(critic, *at)

    return penalty


def penalty_silenced(critic, real, fake, mix):
    """A leaf: nothing was recorded, and requires_grad_() hides it."""
    return penaliser(create_graph=False)(critic, real, fake, mix).requires_grad_()


penalty_of_a_root = penaliser(norm=lambda gradients: gradients.flatten(1).square().sum(1).sqrt())

RIGHT = [penalty_by_sum, penalty_by_seed, penalty_by_func]

MISCONCEIVED = {
    "not recorded": penaliser(create_graph=False),
    "a root of zero": penalty_of_a_root,
    "one norm for the batch": penaliser(norm=lambda gradients: gradients.norm()),
    "scores averaged": penaliser(score=torch.mean),
    "a norm for each pixel": penaliser(norm=lambda gradients: gradients.norm(2, dim=1)),
}

WRONG = [
    penalty_in_eval,
    said(penalty_silenced, "not recorded"),
    leaving(penalty_by_sum, gradients_off),
    leaving(penalty_by_sum, lambda critic, *given: critic[0].eval()),
    leaving(penalty_by_sum, lambda critic, *given: critic.requires_grad_(False)),
    penalty_hooked := leaving(penalty_by_sum, lambda critic, *given: critic.register_forward_hook(lambda *run: None)),
    penalty_by_backward,
    penalty_in_a_loop,
    penalty_spent,
    penaliser(points=lambda real, fake, mix: real.clone()),
    penaliser(points=lambda real, fake, mix: fake.detach()),
    penaliser(points=lambda real, fake, mix: ((1 - mix) * real + mix * fake).detach()),
    penaliser(points=lambda real, fake, mix: mix * real + (1 - mix) * fake),
    penaliser(points=lambda real, fake, mix: real),
    penaliser(distance=lambda norms: norms.mean()),
    penaliser(distance=lambda norms: (norms - 1).square().sum()),
    penaliser(distance=lambda norms: (norms - 1).clamp(min=0).square().mean()),
    penaliser(distance=lambda norms: (norms.square() - 1).square().mean()),
    penaliser(distance=lambda norms: (norms.mean() - 1).square()),
    penaliser(norm=lambda gradients: gradients.flatten(1).norm(dim=1).detach().requires_grad_()),
    penaliser(norm=lambda gradients: gradients.flatten(1).norm(1, dim=1)),
    penaliser(distance=lambda norms: (norms - 1).square()),
    lambda critic, real, fake, mix: penalty_by_sum(critic, real, fake, mix)[None],
    lambda critic, real, fake, mix: penalty_by_sum(critic, real, fake, mix).detach().requires_grad_(),
    penalty_scaled := lambda critic, real, fake, mix: 10 * penalty_by_sum(critic, real, fake, mix),
    lambda critic, real, fake, mix: (critic(mix * real + (1 - mix) * fake.detach()) - 1).square().mean(),
    lambda critic, real, fake, mix: penalty_by_sum(critic, real, fake, mix).item(),
    penalty_cut := lambda *given: penalty_by_sum(*given).detach(),
    penalty_remembered(),
    penalty_twice := lambda critic, real, fake, mix: (critic.forward(real), penalty_by_sum(critic, real, fake, mix))[1],
    penalty_frozen := leaving(penalty_by_sum, lambda critic, *given: critic[0].requires_grad_(False)),
    penalty_clearing := leaving(penalty_by_sum, lambda critic, *given: critic.zero_grad()),
    penalty_writing := leaving(penalty_by_sum, lambda critic, real, fake, mix: mix.mul_(2)),
    penalty_flagging := leaving(penalty_by_sum, lambda critic, real, fake, mix: mix.requires_grad_()),
    leaving(penalty_by_sum, lambda critic, real, fake, mix: fake.detach_()),
    leaving(penalty_by_sum, lambda critic, real, fake, mix: fake.requires_grad_(False) if fake.is_leaf else None),
    penalty_for_the_maker := lambda critic, real, fake, mix: penalty_by_sum(critic, real, fake, mix) + 0 * fake.sum(),
    penaliser(distance=lambda norms: (norms.clamp(max=1e3) - 1).square().mean()),
    penaliser(points=lambda real, fake, mix: (mix.clamp(0.05, 0.95) * (real - fake) + fake).detach()),
    penaliser(norm=lambda gradients: gradients.squeeze().flatten(1).norm(dim=1)),
    penaliser(norm=lambda gradients: gradients.flatten(1).norm(dim=int(len(gradients) != gradients[0].numel()))),
    penalty_short := lambda *given: penalty_by_sum(*given)[None],
]

EQUIVALENT = {
    "penalty_by_sum: ...s, create_graph=True) -> ...s, create_graph=True, retain_graph=True)": "Recording a pass keeps its graph as well.",
    "penalty_by_seed: ...), create_graph=True) -> ...), create_graph=True, retain_graph=True)": "Recording a pass keeps its graph as well.",
    "penalty_by_sum: gradients.flatten(1).norm(dim=1) -> gradients.flatten(1).norm(dim=-1)": "The tensor has two dimensions.",
}

GUARDS = {
    "The penalty is the mean over samples": {"value": penalty_scaled, "shape": penalty_short},
    "Its gradient has to reach the critic's parameters": {"recorded": penalty_cut, "usable": penalty_spent},
    "as numbers also where a sample's gradient is zero (no NaN)": {"value": penalty_of_a_root},
    "may not reach whatever made `fake`": {"maker": penalty_for_the_maker},
    "The critic runs once.": {"calls": penalty_twice},
    "It stays as it was, and so do the inputs.": {
        "untouched": penalty_clearing,
        "left": penalty_hooked,
        "changed": penalty_writing,
        "inputs": penalty_flagging,
    },
}

STILL_RIGHT = {"keeps every graph"}


def norms_of_the_moving(gradients):
    norms = gradients.flatten(1).norm(dim=1)
    return norms[norms.detach() > 0]


MISCONCEIVED["a gradient of zero left out"] = penaliser(norm=norms_of_the_moving)
