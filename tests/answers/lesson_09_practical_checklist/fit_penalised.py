"""Right and wrong answers to `fit_penalised`."""

import torch
from torch.nn.functional import mse_loss

from tests.answers.leaving import clipping, zeroing
from tests.answers.lesson_09_practical_checklist.side_effects import MESSES, guarded, leaving, slips
from tests.answers.lesson_09_practical_checklist.training import step
from tests.answers.near import near
from tests.answers.said import said


def penalised(penalty, keep=float, error_of=lambda error: error, clear="before"):
    def fit_penalised(model, optimizer, batches, weight):
        losses = []
        for inputs, targets in batches:
            loss = error_of(mse_loss(model(inputs), targets)) + weight * penalty(model)
            if clear == "before":
                optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if clear == "after":
                optimizer.zero_grad()
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
        optimizer.zero_grad()
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


penalised_over_zeros = zeroing(penalised(squares))

RIGHT = [
    penalised(squares),
    penalised(lambda model: sum(p.norm() ** 2 for p in model.parameters())),
    penalised_in_two_passes,
    penalised_by_formula,
]

MISCONCEIVED = {
    "no way back": penalised_rewrapped,
    "a penalty without a gradient": penalised(lambda model: squares(model).item()),
    "an error without a gradient": penalised(squares, error_of=lambda error: error.detach()),
    "never cleared": penalised(squares, clear="never"),
    "gradients from before": penalised(squares, clear="after"),
    "zeros for what is frozen": penalised_over_zeros,
}


def penalised_with_an_optimizer_of_its_own(model, optimizer, batches, weight):
    return penalised(squares)(model, torch.optim.SGD(model.parameters(), lr=0.1), batches, weight)


def penalised_in_training_mode(model, *given):
    return penalised(squares)(model.train(), *given)


def penalised_where_held(model, optimizer, batches, weight):
    held = optimizer.param_groups[0]["params"]
    return penalised(lambda model: sum(p.pow(2).sum() for p in held))(model, optimizer, batches, weight)


def penalised_thawed(model, *given):
    """Everything learns meanwhile, and is frozen again."""
    frozen = [p.requires_grad_() for p in model.parameters() if not p.requires_grad]
    losses = penalised(squares)(model, *given)
    for p in frozen:
        p.requires_grad_(False)
        p.grad = None
    return losses


def squares_of_unlike(model):
    """Each one once, told apart by its numbers."""
    return sum(p.pow(2).sum() for p in {str(p.tolist()): p for p in model.parameters()}.values())


penalised_of_live = penalised(lambda model: sum(p.pow(2).sum() for p in model.parameters() if p.requires_grad))
penalised_by_name = penalised(
    lambda model: sum(p.pow(2).sum() for _, p in model.named_parameters(remove_duplicate=False))
)


def penalised_with_what_came_after(model, optimizer, batches, weight):
    losses = []
    for inputs, targets in batches:
        error = mse_loss(model(inputs), targets)
        step(optimizer, error + weight * squares(model))
        losses.append(error.item() + weight * squares(model).item())
    return losses


MISCONCEIVED |= {
    "the frozen ones left out": penalised_of_live,
    "one counted by its names": penalised_by_name,
    "the penalty after the step": penalised_with_what_came_after,
}

SLIPS = slips(penalised(squares))
LEFT = [leaving(penalised(squares), mess) for mess in MESSES]

WRONG = [
    penalised(lambda model: sum(p.pow(2).sum() for p in near(model).values())),
    clipping(penalised(squares), 1e4),
    *SLIPS.values(),
    said(
        penalised(lambda model: squares(model).item(), clear="never"), "a penalty without a gradient", "never cleared"
    ),
    said(penalised(squares, error_of=float, clear="never"), "an error without a gradient", "never cleared"),
    penalised_with_an_optimizer_of_its_own,
    lambda model, optimizer, batches, weight: penalised(squares)(model, optimizer, batches, min(weight, 1.0)),
    penalised_in_training_mode,
    penalised_where_held,
    penalised_thawed,
    penalised(squares_of_unlike),
    penalised_by_decay,
    penalised_by_decay_and_back,
    said(penalised_of_live, "the frozen ones left out"),
    penalised(lambda model: sum(p.pow(2).sum() for p in model.state_dict(keep_vars=True).values())),
    said(penalised_by_name, "one counted by its names"),
    *LEFT,
    penalised(squares, keep=lambda loss: loss),
    losses_as_tensors := penalised(squares, keep=lambda loss: loss.detach()),
    penalised(lambda model: squares(model[0]) + squares(model[2]).detach()),
    penalised(lambda model: sum(p.norm() for p in model.parameters())),
    penalised(lambda model: squares(model) if model.training else 0, keep=lambda loss: loss.detach()),
    penalised(lambda model: sum(p.pow(2).sum() for n, p in model.named_parameters() if "weight" in n)),
]

EQUIVALENT = {
    "penalised.fit_penalised: loss = error_of(mse_loss(model(inputs), targets)) + weight * penalty(model) | optimizer.zero_grad() -> (swapped)": "Neither line reads what the other one writes.",
    "penalised.fit_penalised: optimizer.step() | losses.append(keep(loss)) -> (swapped)": "Neither line reads what the other one writes.",
    "penalised_in_two_passes: penalty.backward() -> penalty.backward(retain_graph=True)": "What the penalty's graph saves are the parameters themselves, and it goes with its loss.",
    "penalised_in_two_passes: optimizer.zero_grad() | error, penalty = (mse_loss(model(inputs), targets), weight * squares(model)) -> (swapped)": "Neither line reads what the other one writes.",
    "penalised_in_two_passes: error.backward() | penalty.backward() -> (swapped)": "Neither line reads what the other one writes.",
    "penalised_in_two_passes: optimizer.step() | losses.append((error + penalty).item()) -> (swapped)": "Neither line reads what the other one writes.",
    "penalised_by_formula: losses.append(error.item() + weight * squares(model).item()) | optimizer.zero_grad() -> (swapped)": "Neither line reads what the other one writes.",
    "penalised_by_formula: error.backward() | for p in model.parameters(): ... -> (swapped)": "Neither line reads what the other one writes.",
}

GUARDS = {
    **guarded(SLIPS, hooks=LEFT[4], flags=LEFT[3]),
    "plus `weight` times the sum of the squares of all parameters": {
        "value": MISCONCEIVED["a penalty without a gradient"]
    },
    "each one once": {"value": penalised_by_name},
    "the frozen ones and the unused ones as well": {"value": penalised_of_live},
    "along the gradient of the whole loss": {"value": penalised_where_held},
    "returns the list of losses as Python floats": {"floats": losses_as_tensors},
}

# The root has no slope at zero, where a fresh bias stands.
WRONG.append(penalised(lambda model: sum(p.pow(2).sum().sqrt() ** 2 for p in model.parameters())))
