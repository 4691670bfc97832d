"""Judging `loss_hessian`: the Hessian of a loss."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch

from course_utils.checks.compare import OF_VALUES, close, counted, listed, right_value
from course_utils.checks.data import Case, Observation
from course_utils.checks.exercise import Exercise, Finding, Misconception
from course_utils.checks.judges.lesson_05_higher_order_gradients import LESSON
from course_utils.checks.judges.lesson_05_higher_order_gradients.untouched import no_graph, untouched
from course_utils.checks.judges.remembered import remembered
from course_utils.checks.scenes.lesson_05_higher_order_gradients.loss_hessian import LOSSES, parameters_of


def _cases(seed: int) -> Iterator[Case]:
    trials = {
        "two layers": ("two layers", ""),
        "a loss that is linear in one parameter": ("straight in one", ""),
        "a parameter without influence": ("a spare", ""),
        "a loss that is linear in all parameters": ("straight", "the first"),
        "a loss that is linear in each of two parameters": ("a product", ""),
        "a single number of float32": ("one number", "all"),
        "one matrix, as wide as high": ("a square", ""),
        "a float32 parameter in a loss of float64": ("straight in one", "the first"),
        "a gradient that is zero": ("at rest", ""),
    }
    for offset, (name, (loss, single)) in enumerate(trials.items()):
        yield Case(name, {"loss": loss, "single": single, "seed": seed + offset})


@remembered
def _exact(case: Case) -> torch.Tensor:
    parameters = [parameter.detach() for parameter in parameters_of(case)]
    shapes = [parameter.shape for parameter in parameters]
    sizes = [parameter.numel() for parameter in parameters]
    loss = LOSSES[case.given["loss"]][1]

    def joined(flat: torch.Tensor) -> torch.Tensor:
        return loss([part.reshape(shape) for part, shape in zip(flat.split(sizes), shapes, strict=True)])

    result: torch.Tensor = torch.func.hessian(joined)(
        torch.cat([parameter.reshape(-1) for parameter in parameters])
    ).detach()
    return result


def _judge(case: Case, seen: Observation) -> Iterator[Finding]:
    right = _exact(case)
    yield right_value(seen["returned"], right, "What you returned")
    yield no_graph(seen)
    text = f"Your function changed a parameter: {listed(seen['touched'])}. Leave it as it was."
    yield Finding("untouched", seen["touched"] == [], text)
    yield Finding("list", seen["list"], "Your function changed the list of parameters that it was given.")
    most = len(right) + 1
    ran = counted(seen["passes"])
    text = f"{ran} ran. One for the gradient and one for each number in it, {most - 1} here, are enough."
    yield Finding("passes", seen["passes"] <= most, text)
    yield untouched(seen)


def _blocks(case: Case) -> torch.Tensor:
    """Return a mask of the blocks on the diagonal."""
    parameters = parameters_of(case)
    result: torch.Tensor = torch.block_diag(
        *(torch.ones(p.numel(), p.numel(), dtype=torch.float64) for p in parameters)
    )
    return result


def _gradient_of(case: Case) -> torch.Tensor:
    parameters = parameters_of(case)
    gradients = torch.autograd.grad(LOSSES[case.given["loss"]][1](parameters), parameters, materialize_grads=True)
    return torch.cat([gradient.reshape(-1) for gradient in gradients])


def _diagonal_alone(case: Case, seen: Observation) -> bool | None:
    """Tell zeros beside a right diagonal; None where that is zero, too."""
    diagonal = _exact(case).diag()
    alone = close(seen["returned"], diagonal.diag()) and not close(seen["returned"], _exact(case))
    return None if alone and not bool(diagonal.any()) else alone


def _of_products(case: Case, seen: Observation) -> bool:
    """Tell the products of first derivatives, which may be so small that zeros look like them."""
    returned, gradient = seen["returned"], _gradient_of(case)
    return close(returned, torch.outer(gradient, gradient)) and bool(returned.tensor().any())


def _debrief(seen: Sequence[tuple[Case, Observation]]) -> Iterator[str]:
    passes = {case.name: ran["passes"] for case, ran in seen}
    many, straight = passes["two layers"], passes["a loss that is linear in all parameters"]
    yield f"For the 12 numbers of two layers the check saw {counted(many)}."
    yield f"For a loss that is linear in all parameters it saw {counted(straight)}: the gradient had no graph."
    if many > 2:
        yield "The passes for the rows go through one graph: is_grads_batched=True runs them as a single one."


EXERCISE = Exercise(
    id="loss_hessian",
    title="The Hessian of a loss",
    lesson=LESSON,
    difficulty=3,
    minutes=30,
    points=3,
    call="loss_hessian(loss, parameters)",
    cases=_cases,
    judge=_judge,
    debrief=_debrief,
    hints=(
        "First one long gradient, recorded. Then its rows: the Hessian is the Jacobian of that gradient.",
        "Some gradients have no graph, because they depend on nothing, and some parameters play no part. "
        "`materialize_grads=True` gives zeros for the second; for the first ask requires_grad. With "
        "is_grads_batched=True those zeros lack the dimension of the rows: use allow_unused, and fill in your own.",
        "Gradients of the loss with create_graph and materialize_grads; flatten and join them. For each number of the "
        "joined gradient: grad(number, parameters, retain_graph=True, materialize_grads=True), flattened and joined, "
        "is one row. If the joined gradient does not require grad, the matrix is zero.",
    ),
    misconceptions=(
        Misconception(
            "blocks on the diagonal only",
            "Your matrix is right within each parameter, and zero between two of them. The gradient of one parameter "
            "depends on the others, too.",
            lambda case, seen: (
                bool((_exact(case) * (1 - _blocks(case))).any())
                and close(seen["returned"], _exact(case) * _blocks(case))
            ),
        ),
        Misconception(
            "the diagonal alone",
            "Your matrix is right on its diagonal, and zero beside it. The derivative for one number changes with the "
            "other numbers, too.",
            _diagonal_alone,
        ),
        Misconception(
            "gradients multiplied",
            "Your matrix holds products of two first derivatives. These are not second derivatives.",
            _of_products,
        ),
        Misconception(
            "row sums on the diagonal",
            "Your matrix is diagonal and holds the sums of the Hessian's rows, as a pass from the sum of the gradient "
            "gives them.",
            lambda case, seen: (
                len(_exact(case)) > 1
                and bool(_exact(case).any())  # where all is zero, so are the sums, and nobody added
                and close(seen["returned"], _exact(case).sum(1).diag())
            ),
            among=OF_VALUES,
        ),
    ),
)
