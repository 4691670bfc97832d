"""Right and wrong answers to `fit_points`."""

import torch
from torch import nn
from torch.nn.functional import mse_loss

from tests.answers.lesson_09_practical_checklist.training import step
from tests.answers.said import said


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


def points_apart_at_first(points, wanted, steps):
    """What is in one place in the beginning counts as in one place to the end."""
    apart = (points[:, None] != points[None]).any(-1)
    return points_with(lambda squares: torch.where(apart, torch.where(apart, squares, 1.0).sqrt(), 0.0))(
        points, wanted, steps
    )


def points_by_norm(points, wanted, steps):
    points = nn.Parameter(points.clone())
    optimizer = torch.optim.SGD([points], lr=1.0)
    losses = []
    for _ in range(steps):
        lengths = torch.linalg.vector_norm(points.unsqueeze(1) - points.unsqueeze(0), dim=2)
        losses.append(step(optimizer, mse_loss(lengths, wanted)))
    return points.data, losses


def points_by_cdist(points, wanted, steps, mode="donot_use_mm_for_euclid_dist"):
    points, losses = points.clone(), []
    for _ in range(steps):
        points = points.detach().requires_grad_()
        loss = mse_loss(torch.cdist(points, points, compute_mode=mode), wanted)
        loss.backward()
        losses.append(loss.item())
        points = (points - points.grad).detach()
    return points, losses


def points_in_place(points, wanted, steps):
    moved, losses = points_by_norm(points, wanted, steps)
    points.copy_(moved)
    return points, losses


def points_of_formula(points, wanted, steps):
    points, losses = points.clone(), []
    for _ in range(steps):
        lines = points[:, None] - points
        lengths = lines.pow(2).sum(-1).sqrt()
        losses.append((lengths - wanted).pow(2).mean().item())
        away = torch.where(lengths > 0, (lengths - wanted) / lengths, 0.0)
        pulls = (away + away.T)[..., None] * lines
        points = points - 2 / len(points) ** 2 * pulls.sum(1)
    return points, losses


def points_not_new(points, wanted, steps):
    """Without a step, the given points come back."""
    return points_by_norm(points, wanted, steps) if steps else (points, [])


RIGHT = [points_with(safe_root), points_by_norm, points_by_cdist, points_of_formula]

MISCONCEIVED = {
    "a root of zero": points_with(bare_root),
    "large squares subtracted": lambda *given: points_by_cdist(*given, mode="use_mm_for_euclid_dist_if_necessary"),
    "only the diagonal": points_with(root_off_the_diagonal),
    "never zero": points_with(lambda squares: (squares + 1e-6).sqrt()),
    "NaN replaced": points_with(bare_root, lambda gradient: gradient.nan_to_num()),
}


def points_of_pairs(points, wanted, steps):
    """Has nothing to do for a single point."""
    return points_by_norm(points, wanted, steps) if len(points) > 1 else (points.clone(), [])


def points_of_the_first(points, wanted, steps):
    """Moves 25 points, and leaves the others. Its losses may be off by rounding."""
    moved, losses = points_by_norm(points, wanted, steps)
    return torch.cat([moved[:25], points[25:]]), [loss * (1 + 1e-15) for loss in losses]


def points_by_division(points, wanted, steps):
    """Follows the formula, and divides zero by zero."""
    points, losses = points.clone(), []
    for _ in range(steps):
        lines = points[:, None] - points[None]
        lengths = torch.linalg.vector_norm(lines, dim=-1, keepdim=True)
        off = lengths - wanted[..., None]
        losses.append(off.pow(2).mean().item())
        points = points - 2 / len(points) ** 2 * ((off + off.transpose(0, 1)) * lines / lengths).sum(1)
    return points, losses


WRONG = [
    points_of_pairs,
    points_not_new,
    points_apart_at_first,
    points_halved := lambda points, wanted, steps: points_by_norm(points, wanted.mul_(0.5).mul(2.0), steps),
    points_and_more := lambda *given: (*points_by_norm(*given), 0.0),
    points_to_tensors := lambda *given: [points_by_norm(*given)[0], list(map(torch.tensor, points_by_norm(*given)[1]))],
    points_required := lambda *given: [points_by_norm(*given)[0].requires_grad_(), points_by_norm(*given)[1]],
    points_clipped := points_with(safe_root, lambda gradient: gradient.clamp(-0.1, 0.1)),
    lambda points, wanted, steps: points_by_norm(points, wanted.fill_diagonal_(0.0), steps),
    said(points_with(lambda squares: squares.clamp(min=1e-10).sqrt()), "never zero"),
    points_with(lambda squares: torch.where(squares > 1e-9, torch.where(squares > 1e-9, squares, 1.0).sqrt(), 0.0)),
    points_with(lambda squares: safe_root(squares).detach().requires_grad_()),
    points_in_place,
    lambda *given: (points_by_norm(*given), torch.set_grad_enabled(False))[0],
    lambda points, wanted, steps: (points, []),
    points_of_the_first,
    said(points_by_division, "a root of zero"),
]

STILL_RIGHT = {"keeps every graph"}

EQUIVALENT = {
    "safe_root: torch.where(apart, squares, 1.0) -> torch.where(apart, squares, 2.0)": "What is not chosen enters neither the numbers nor, behind a second where, the gradient.",
    "safe_root: torch.where(apart, squares, 1.0) -> torch.where(apart, squares, 0.0)": "What is not chosen enters neither the numbers nor, behind a second where, the gradient.",
    "safe_root: torch.where(apart, squares, 1.0) -> torch.where(apart, squares, -1.0)": "What is not chosen enters neither the numbers nor, behind a second where, the gradient.",
    "points_with.fit_points: torch.autograd.grad(loss, points) -> torch.autograd.grad(loss, points, retain_graph=True)": "The graph goes with its result. The task asks nothing of the memory between.",
    "points_with.fit_points: torch.autograd.grad(loss, points) -> torch.autograd.grad(loss, points, create_graph=True)": "The graph goes with its result. The task asks nothing of the memory between.",
    "points_with.fit_points: with torch.no_grad(): ... | losses.append(loss.item()) -> (swapped)": "Neither line reads what the other one writes.",
    "step: optimizer.zero_grad() -> optimizer.zero_grad(set_to_none=False)": "Each parameter that the optimizer holds gets a gradient in every pass, or never had one.",
    "step: loss.backward() -> loss.backward(retain_graph=True)": "The graph goes with its result. The task asks nothing of the memory between.",
    "step: loss.backward() -> loss.backward(create_graph=True)": "The graph goes with its result. The task asks nothing of the memory between.",
    "points_by_cdist: points.detach() -> points": "The tensor is not written to, and a new one is returned.",
    "points_by_cdist: points.detach() -> points.clone()": "The tensor is not written to, and a new one is returned.",
    "points_by_cdist: loss.backward() -> loss.backward(retain_graph=True)": "The graph goes with its result. The task asks nothing of the memory between.",
    "points_by_cdist: loss.backward() -> loss.backward(create_graph=True)": "The graph goes with its result. The task asks nothing of the memory between.",
    "points_by_cdist: loss.backward() | losses.append(loss.item()) -> (swapped)": "Neither line reads what the other one writes.",
    "points_by_cdist: losses.append(loss.item()) | points = (points - points.grad).detach() -> (swapped)": "Neither line reads what the other one writes.",
    "points_of_formula: torch.where(lengths > 0, (lengths - wanted) / lengths, 0.0) -> torch.where(lengths > 0, (lengths - wanted) / lengths, 1.0)": "What is not chosen enters neither the numbers nor, behind a second where, the gradient.",
    "points_of_formula: points = points - 2 / len(points) ** 2 * pulls.sum(1) -> points -= 2 / len(points) ** 2 * pulls.sum(1)": "Nobody else holds the object.",
    "points_of_formula: losses.append((lengths - wanted).pow(2).mean().item()) | away = torch.where(lengths > 0, (lengths - wanted) / lengths, 0... -> (swapped)": "What is not chosen enters neither the numbers nor, behind a second where, the gradient.",
}

GUARDS = {
    "It returns `(points, losses)`": {"parts": points_and_more},
    "a new tensor with the moved points": {"new": points_not_new},
    "which requires no gradient": {"requires a gradient": points_required},
    "the list of losses before each step as Python floats": {"floats": points_to_tensors},
    "A step is 1 times the gradient.": {"value": points_clipped},
    "`points` and `wanted` stay as they were.": {"input": points_halved},
    "they do not push each other": {"value": MISCONCEIVED["only the diagonal"]},
    "Your distances are exact to seven digits": {"value": MISCONCEIVED["large squares subtracted"]},
}


def points_of_others(points, wanted, steps):
    """The mean is over pairs of different points."""
    points, losses = points.clone().requires_grad_(), []
    others = 1 - torch.eye(len(points), dtype=points.dtype)
    for _ in range(steps):
        distances = safe_root((points[:, None] - points[None]).pow(2).sum(-1))
        loss = ((distances - wanted).pow(2) * others).sum() / others.sum()
        (gradient,) = torch.autograd.grad(loss, points)
        points = (points - gradient).detach().requires_grad_()
        losses.append(loss.item())
    return points.detach(), losses


MISCONCEIVED["a point and itself left out"] = points_of_others
