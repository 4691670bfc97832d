"""Judging `meta_gradient`: a gradient through inner steps."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch
from torch.func import functional_call

from course_utils.checks.compare import OF_VALUES, describe, listed, right_value
from course_utils.checks.data import Array, Case, Observation
from course_utils.checks.exercise import Exercise, Finding, Misconception
from course_utils.checks.judges.lesson_05_higher_order_gradients import LESSON
from course_utils.checks.judges.lesson_05_higher_order_gradients.untouched import no_graph, untouched
from course_utils.checks.judges.loops import times
from course_utils.checks.judges.remembered import Named, remembered
from course_utils.checks.scenes.lesson_05_higher_order_gradients.maps import doubles
from course_utils.checks.scenes.lesson_05_higher_order_gradients.meta_gradient import adaptable


def _cases(seed: int) -> Iterator[Case]:
    trials: dict[str, tuple[int, float, list[str], float]] = {
        "one inner step": (1, 3e-3, [], 1e2),
        "three inner steps": (3, 0.2, [], 1.0),
        "a frozen weight and a frozen bias, three inner steps": (3, 0.4, ["first.0.0.weight", "last.bias"], 1.0),
        "no inner step": (0, 0.3, [], 1e2),
    }
    for offset, (name, (steps, lr, frozen, far)) in enumerate(trials.items()):  # gradients are long for far targets
        given = {"seed": seed + offset, "steps": steps, "lr": lr, "frozen": frozen}
        for part, size in {"support": 5, "query": 4}.items():
            given[f"{part} inputs"] = Array.of(doubles(seed + 10 * size + offset, size, 2))
            given[f"{part} targets"] = Array.of(far * doubles(seed + 10 * size + offset + 5, size, 2))
        yield Case(name, given)


def _losses(case: Case, many: Named, part: str) -> torch.Tensor:
    """Return the loss of each of many models, whose parameters are stacked in a first dimension."""
    model = adaptable(case)
    inputs, targets = case.given[f"{part} inputs"].tensor(), case.given[f"{part} targets"].tensor()
    predictions = torch.func.vmap(lambda values: functional_call(model, values, (inputs,)))(many)
    result: torch.Tensor = (predictions - targets).square().mean((1, 2))
    return result


def _trained(case: Case, many: Named) -> Named:
    """Train each of many models by ordinary gradient descent on the support set."""
    for _ in range(case.given["steps"]):
        own = {name: value.detach().requires_grad_() for name, value in many.items()}
        gradients = torch.autograd.grad(_losses(case, own, "support").sum(), list(own.values()))
        pairs = zip(own.items(), gradients, strict=True)
        many = {name: value.detach() - case.given["lr"] * gradient for (name, value), gradient in pairs}
    return many


def _start(case: Case) -> Named:
    return {name: p.detach() for name, p in adaptable(case).named_parameters() if p.requires_grad}


@remembered
def _measured(case: Case) -> Named:
    """Return how the query loss after training answers to each number of the initial parameters."""
    start = _start(case)
    sizes = [value.numel() for value in start.values()]
    moves = torch.eye(sum(sizes), dtype=torch.float64)
    h = 1e-3

    def query(shift: float) -> torch.Tensor:
        parts = (shift * moves).split(sizes, 1)
        pairs = zip(start.items(), parts, strict=True)
        many = {name: value + part.reshape(-1, *value.shape) for (name, value), part in pairs}
        return _losses(case, _trained(case, many), "query").detach()

    slopes = (8 * (query(h) - query(-h)) - (query(2 * h) - query(-2 * h))) / (12 * h)
    pairs = zip(start.items(), slopes.split(sizes), strict=True)
    return {name: part.reshape(value.shape) for (name, value), part in pairs}


def _plain_gradient(case: Case, adapted: bool, part: str = "query") -> Named:
    """Return the ordinary gradient of a loss, at the initial or at the adapted parameters."""
    many = {name: value[None] for name, value in _start(case).items()}
    own = {name: value.requires_grad_() for name, value in (_trained(case, many) if adapted else many).items()}
    gradients = torch.autograd.grad(_losses(case, own, part).sum(), list(own.values()))
    return {name: gradient[0] for name, gradient in zip(own, gradients, strict=True)}


def _all_close(received: object, right: Named) -> bool:
    return (
        isinstance(received, dict)
        and received.keys() == right.keys()
        and all(_within(received[name], value) for name, value in right.items())
    )


def _within(received: object, right: torch.Tensor) -> bool:
    """Compare with the accuracy that measured slopes have."""
    if not isinstance(received, Array) or received.shape != tuple(right.shape):
        return False
    values = received.tensor()
    return not values.is_complex() and bool(torch.allclose(values.double(), right, rtol=1e-6, atol=1e-8))


def _judge(case: Case, seen: Observation) -> Iterator[Finding]:
    returned, right = seen["returned"], _measured(case)
    if not isinstance(returned, dict):
        text = f"You returned {describe(returned)}; expected a dict from parameter names to gradients."
        yield Finding("dict", False, text)
    elif set(returned) != set(right):
        yield from _names(set(returned), set(right))
    else:
        for name, value in right.items():
            finding = right_value(returned[name], value, f"The gradient of {name}")
            near = finding.prop == "value" and _within(returned[name], value)
            yield Finding("value", True) if near else finding
    yield no_graph(seen)
    text = f"Your function wrote to {listed(seen['moved'])} of the model, or put something else in its place."
    yield Finding("moved", not seen["moved"], text)
    text = f"Your function changed requires_grad of {listed(seen['switched'])}."
    yield Finding("switched", not seen["switched"], text)
    text = f"Your function changed .grad of {listed(seen['graded'])}. Leave it as it was."
    yield Finding("graded", not seen["graded"], text)
    yield untouched(seen)
    runs, steps = seen["runs"], case.given["steps"]
    most = 3 * (steps + 1)
    inner = "1 inner step" if steps == 1 else f"{steps} inner steps"
    text = f"The model ran {times(runs)}. For {inner} at most {most} runs are allowed."
    if runs < steps + 1:
        needed = "1 run" if steps == 0 else f"{steps + 1} runs"
        text = f"The model ran {times(runs)}. {inner} and the loss after training need {needed}."
    yield Finding("runs", steps + 1 <= runs <= most, text)
    text = (
        "Your function ran the model for several sets of parameters at once, through vmap. One set at a time is enough."
    )
    yield Finding("batched", not seen["batched"], text)


def _names(received: set[str], right: set[str]) -> Iterator[Finding]:
    missing, extra = sorted(right - received), sorted(received - right)
    if missing:
        yield Finding("missing", False, f"Your dict has no entry for {listed(missing)}.")
    if extra:
        text = f"Your dict has entries for {listed(extra)}, which are no parameters that require a gradient."
        yield Finding("extra", False, text)


def _was_trained(case: Case, seen: Observation) -> bool:
    """Tell parameters that the inner steps have moved to where they lead."""
    ends = _trained(case, {name: value[None] for name, value in _start(case).items()})
    now = seen["parameters"]
    return bool(seen["moved"]) and all(_within(now.get(name), value[0]) for name, value in ends.items())


def _debrief(seen: Sequence[tuple[Case, Observation]]) -> Iterator[str]:
    case, ran = next((case, ran) for case, ran in seen if case.name == "three inner steps")
    exact, short = _measured(case), _plain_gradient(case, adapted=True)
    signs = sum(int((exact[name] * short[name] < 0).sum()) for name in exact)
    count = sum(value.numel() for value in exact.values())
    yield f"For three inner steps your function ran the model {times(ran['runs'])}."
    yield (
        "With the inner gradients as constants the answer would be cheaper and another one: there "
        f"{signs} of its {count} numbers have the wrong sign."
    )


EXERCISE = Exercise(
    id="meta_gradient",
    title="A gradient through inner steps",
    lesson=LESSON,
    difficulty=5,
    minutes=40,
    points=5,
    call="meta_gradient(model, support, query, lr, steps)",
    counted=True,
    cases=_cases,
    judge=_judge,
    debrief=_debrief,
    hints=(
        "An inner step makes new tensors from the old ones by a formula. Nothing is written in place, and the model's "
        "own parameters stay what they are.",
        "torch.func.functional_call runs the model with a dict of tensors in place of its parameters. Each inner "
        "gradient must be recorded, because it depends on the parameters as well.",
        "values = the parameters that require grad, as new leaves or as they are. `steps` times: the support loss "
        "with values; its gradients with create_graph=True; values minus lr times gradients, as a new dict. Then the "
        "query loss with the last values, and its gradient for the first ones.",
    ),
    misconceptions=(
        Misconception(
            "first order only",
            "Your answer is the ordinary gradient of the query loss at the adapted parameters. So it is where the "
            "inner gradients have no graph, and where the last gradient is asked for by the adapted parameters: asked "
            "for are the initial ones, on which the inner gradients depend as well.",
            lambda case, seen: not seen["moved"] and _all_close(seen["returned"], _plain_gradient(case, adapted=True)),
            among=OF_VALUES,
        ),
        Misconception(
            "no inner step",
            "Your answer is the gradient of the query loss at the initial parameters. No inner step went into it.",
            lambda case, seen: _all_close(seen["returned"], _plain_gradient(case, adapted=False)),
            among=OF_VALUES,
        ),
        Misconception(
            "the model itself was trained",
            "The model's own parameters are now those after the inner steps: your function wrote to them. The initial "
            "ones, whose gradient is asked for, are gone.",
            _was_trained,
        ),
    ),
)
