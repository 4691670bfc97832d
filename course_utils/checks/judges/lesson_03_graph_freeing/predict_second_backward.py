"""Judging `predict_second_backward`: which second backward raises?"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import torch

from course_utils.checks.exercise import Exercise, Misconception
from course_utils.checks.judges.lesson_03_graph_freeing import LESSON
from course_utils.checks.judges.predictions import Table, one_case, raises


def _twice(forward: Callable[..., torch.Tensor]) -> None:
    loss = forward(torch.rand(2, 3, requires_grad=True))
    loss.backward()
    loss.backward()


def _new_forward() -> None:
    x = torch.rand(2, 3, requires_grad=True)
    for _ in range(2):
        x.exp().sum().backward()


def _shared(trunk: Callable[..., torch.Tensor]) -> None:
    h = trunk(torch.rand(2, 3, requires_grad=True))
    h.sin().sum().backward()
    (h + 1).sum().backward()


def _only_the_lower_part() -> None:
    h = torch.rand(2, 3, requires_grad=True).exp()
    y = h.sin().sum()
    torch.autograd.grad(y, h)
    (h + 1).sum().backward()


_SECOND: dict[str, Callable[[], None]] = {
    "plus_one": partial(_twice, lambda x: (x + 1).sum()),
    "exp": partial(_twice, lambda x: x.exp().sum()),
    "mean_of_rows": partial(_twice, lambda x: x.t().reshape(6).mean()),
    "times_three": partial(_twice, lambda x: (3 * x).sum()),
    "times_data": partial(_twice, lambda x: (x * torch.ones(2, 3)).sum()),
    "detached_exp": partial(_twice, lambda x: (x.exp().detach() - x).sum()),
    "new_forward": _new_forward,
    "shared_exp": partial(_shared, lambda x: x.exp()),
    "shared_sum": partial(_shared, lambda x: x + 2),
    "upper_part_first": _only_the_lower_part,
}

_REASONS = {
    "plus_one": "A sum needs no number for its backward, so its nodes saved no tensor that a pass could free.",
    "exp": "exp saved its result, and the first pass freed it.",
    "mean_of_rows": "Transpose, reshape and mean keep shapes and counts, and no tensor.",
    "times_three": "The product keeps the 3, as a tensor, for the slope with respect to x. The first pass freed it.",
    "times_data": "The product keeps the constant factor. The first pass freed it.",
    "detached_exp": "No pass goes through exp, which detach cut off; the difference saved no tensor.",
    "new_forward": "Each forward makes a graph of its own, and each pass frees its own.",
    "shared_exp": "Both passes run exp, and the first freed its result.",
    "shared_sum": "Both passes run the sum, which saved no tensor. What sin saved is needed by the first alone.",
    "upper_part_first": "The first pass ended at h and ran sin alone. exp still has what it saved.",
}

_SECOND_BACKWARD = Table(lambda: {name: raises(action) for name, action in _SECOND.items()}, _REASONS)

_CALLS_TWICE = ("plus_one", "exp", "mean_of_rows", "times_three", "times_data", "detached_exp")

EXERCISE = Exercise(
    id="predict_second_backward",
    title="Which second backward raises?",
    lesson=LESSON,
    difficulty=1,
    minutes=6,
    points=2,
    call=None,
    cases=one_case,
    judge=_SECOND_BACKWARD.judge,
    debrief=_SECOND_BACKWARD.debrief,
    hints=(
        "The error comes from a node that needs a saved tensor that is gone. A node that saves nothing cannot raise.",
        "For each entry list the nodes that both passes run. Ask of each whether its backward needs any number.",
        "A product needs both factors, a constant factor too; exp needs its result. A sum, a difference, a mean, "
        "a transpose or a reshape needs no numbers. Then ask: did the first pass run that very node?",
    ),
    misconceptions=(
        Misconception(
            "only once",
            "You said that every second backward() through the same loss raises. Some of these graphs saved nothing, "
            "so there is nothing that a second pass could miss.",
            _SECOND_BACKWARD.but(**dict.fromkeys(_CALLS_TWICE, True)),
        ),
        Misconception(
            "constants are free",
            "You treated a product with a constant like a sum. Its backward multiplies by the constant, so the node "
            "keeps the constant until a pass has run.",
            lambda case, seen: any(
                _SECOND_BACKWARD.but(**dict.fromkeys(products, False))(case, seen)
                for products in (("times_three", "times_data"), ("times_three",), ("times_data",))
            ),
        ),
        Misconception(
            "any shared node",
            "You said that two losses on a shared part always clash. They clash where the shared part saved something.",
            _SECOND_BACKWARD.but(shared_sum=True),
        ),
    ),
)
