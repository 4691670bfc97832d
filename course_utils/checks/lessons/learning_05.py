"""Exercises of lesson 05 on training through gradients: two kinds of penalty, and a meta-gradient."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeAlias

import torch
from torch import nn
from torch.func import functional_call

from course_utils.checks.compare import close, describe, listed, right_value
from course_utils.checks.data import Array, Case, Observation, Value
from course_utils.checks.exercise import Exercise, Finding, Misconception
from course_utils.checks.lessons.derivatives_05 import untouched
from course_utils.checks.lessons.predict_05 import LESSON
from course_utils.checks.lessons.remembered import remembered
from course_utils.checks.observing.scenes_05 import adaptable, critic_of, doubles, regularised

Named: TypeAlias = dict[str, torch.Tensor]


# A training step with a penalty on the parameters' gradients.


def _step_cases(seed: int) -> Iterator[Case]:
    yield Case("one step", {"seed": seed + 1, "sizes": [5], "momentum": 0.0, "weight": 0.3})
    yield Case("four steps with momentum", {"seed": seed + 2, "sizes": [5, 3, 4, 6], "momentum": 0.9, "weight": 0.2})


Combine: TypeAlias = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]


def _after(case: Case, combine: Combine) -> tuple[list[float], list[torch.Tensor]]:
    """Take the steps with gradients that `combine` makes of the loss's and the weighted penalty's.

    Return the total of each step, and the parameters at the end.
    """
    model, optimizer, batches = regularised(case)
    weight, totals = case.given["weight"], []
    for inputs, targets in batches:

        def loss(values: Named, inputs: torch.Tensor = inputs, targets: torch.Tensor = targets) -> torch.Tensor:
            return nn.functional.mse_loss(functional_call(model, values, (inputs,)), targets)

        def penalty(values: Named, loss: Callable[[Named], torch.Tensor] = loss) -> torch.Tensor:
            gradients = torch.func.grad(loss)(values).values()
            result: torch.Tensor = weight * sum(
                (g.square().sum() for g in gradients), torch.zeros((), dtype=torch.float64)
            )
            return result

        now = {name: parameter.detach() for name, parameter in model.named_parameters()}
        of_loss, first = torch.func.grad_and_value(loss)(now)
        of_penalty, second = torch.func.grad_and_value(penalty)(now)
        totals.append(float(first + second))
        for name, parameter in model.named_parameters():
            parameter.grad = combine(of_loss[name], of_penalty[name]).detach()
        optimizer.step()
    return totals, [parameter.detach() for parameter in model.parameters()]


@remembered
def _right(case: Case) -> tuple[list[float], list[torch.Tensor]]:
    return _after(case, lambda loss, penalty: loss + penalty)


def _moved_like(case: Case, seen: Observation, combine: Combine) -> bool:
    return all(close(mine, other) for mine, other in zip(seen["parameters"], _after(case, combine)[1], strict=True))


def _judge_step(case: Case, seen: Observation) -> Iterator[Finding]:
    totals, parameters = _right(case)
    count = len(totals)
    for number, (received, total) in enumerate(zip(seen["totals"], totals, strict=True)):
        is_float = type(received) is float
        text = f"Your function returned {describe(received)}; expected a Python float, as in the given code."
        yield Finding("float", is_float, text)
        if is_float:
            yield right_value(received, total, f"What step {number} returned")
    moved = all(close(mine, right) for mine, right in zip(seen["parameters"], parameters, strict=True))
    text = "The parameters did not move along the gradient of loss + weight * penalty."
    yield Finding("parameters", moved, text)
    text = f"Graphs alive after each step: {seen['alive']}. Each step should leave none behind."
    yield Finding("alive", not any(seen["alive"]), text)
    text = "After the last step, .grad of a parameter still has a graph."
    yield Finding("grad", not seen["recorded grad"], text)
    forwards = seen["forwards"]
    yield Finding(
        "forwards", forwards == count, f"The model ran {forwards} times in {count} steps; once a step will do."
    )
    yield Finding("steps", seen["steps"] == count, f"The optimizer stepped {seen['steps']} times; expected {count}.")
    yield untouched(seen)


penalised_step = Exercise(
    id="penalised_step",
    title="Repair a step with a gradient penalty",
    lesson=LESSON,
    difficulty=3,
    minutes=20,
    points=3,
    call="penalised_step(model, optimizer, inputs, targets, weight)",
    cases=_step_cases,
    judge=_judge_step,
    hints=(
        "Two passes run, and both write to `.grad`. What is in there when the optimizer steps? And what does a "
        "parameter refer to when its `.grad` has a graph?",
        "Get the gradients of the loss without writing to `.grad`. Build the penalty from them. One `backward` then "
        "makes what the optimizer needs.",
        "gradients = torch.autograd.grad(loss, list(model.parameters()), create_graph=True); total = loss + weight * "
        "the sum of their squares; zero_grad, total.backward(), step; return total.item().",
    ),
    misconceptions=(
        Misconception(
            "the loss counted twice",
            "The parameters moved along the gradient of twice the loss, plus the penalty. The first pass left its "
            "gradient in `.grad`, and the second pass added to it.",
            lambda case, seen: _moved_like(case, seen, lambda loss, penalty: 2 * loss + penalty),
        ),
        Misconception(
            "a penalty that is a constant",
            "The parameters moved along the gradient of the loss alone. The penalty's number is in the total, but no "
            "graph leads from it to the parameters.",
            lambda case, seen: _moved_like(case, seen, lambda loss, penalty: loss),
        ),
        Misconception(
            "the penalty alone",
            "The parameters moved along the gradient of the penalty alone. The loss took no part in the last pass.",
            lambda case, seen: _moved_like(case, seen, lambda loss, penalty: penalty),
        ),
    ),
)


# The penalty of a Wasserstein GAN's critic.


def _penalty_cases(seed: int) -> Iterator[Case]:
    trials: dict[str, tuple[tuple[int, ...], bool, bool]] = {
        "vectors": ((5, 3), False, False),
        "images": ((3, 2, 5, 4), True, False),
        "a critic with a frozen layer": ((4, 3), False, True),
    }
    for offset, (name, (shape, images, frozen)) in enumerate(trials.items()):
        real, fake = doubles(seed + offset, *shape), doubles(seed + offset + 10, *shape)
        generator = torch.Generator().manual_seed(seed + offset)
        rows = (shape[0], *[1] * (len(shape) - 1))
        mix = torch.rand(rows, generator=generator, dtype=torch.float64) * 0.8 + 0.1
        given = {"real": Array.of(real), "fake": Array.of(fake), "mix": Array.of(mix)}
        yield Case(name, {**given, "images": images, "frozen": frozen, "seed": seed + offset})


def _gradients_of_scores(case: Case, values: Named, critic: nn.Module, share: float = 1.0) -> torch.Tensor:
    """Return the gradient of each sample's own score at the mixed points. `share` weighs the fake ones."""
    real, fake, mix = (case.given[name].tensor() for name in ("real", "fake", "mix"))
    points = mix * real + share * (1 - mix) * fake

    def score(point: torch.Tensor) -> torch.Tensor:
        result: torch.Tensor = functional_call(critic, values, (point[None],)).sum()
        return result

    result: torch.Tensor = torch.func.vmap(torch.func.grad(score))(points)
    return result


Penalty: TypeAlias = Callable[[torch.Tensor], torch.Tensor]


def _mean_square(gradients: torch.Tensor) -> torch.Tensor:
    result: torch.Tensor = (gradients.flatten(1).norm(dim=1) - 1).square().mean()
    return result


def _penalty(case: Case, of: Penalty = _mean_square) -> tuple[torch.Tensor, list[torch.Tensor]]:
    """Return a penalty, and its gradients for the critic's parameters that learn."""
    critic = critic_of(case)
    learning = {name: p.detach() for name, p in critic.named_parameters() if p.requires_grad}
    gradients, value = torch.func.grad_and_value(lambda values: of(_gradients_of_scores(case, values, critic)))(
        learning
    )
    return value.detach(), [gradient.detach() for gradient in gradients.values()]


@remembered
def _right_penalty(case: Case) -> tuple[torch.Tensor, list[torch.Tensor]]:
    return _penalty(case)


def _judge_penalty(case: Case, seen: Observation) -> Iterator[Finding]:
    value, gradients = _right_penalty(case)
    yield right_value(seen["returned"], value, "The penalty")
    text = "The penalty has no graph, so no gradient reaches the critic's parameters."
    yield Finding("recorded", seen["recorded"], text)
    received = seen["gradients"]
    if isinstance(received, list) and len(received) == len(gradients):
        yield from _same_gradients(received, gradients)
    elif isinstance(received, str):
        spent = "a pass has already gone through it" if "second time" in received else received
        yield Finding("usable", False, f"No gradient can be taken of the penalty: {spent.removesuffix('.')}.")
    elif seen["recorded"]:
        yield Finding("one number", False, "The penalty is not one number, so no backward pass can start from it.")
    text = "A gradient of the penalty reaches what made `fake`. Only the critic is to learn from it."
    yield Finding("maker", not seen["maker"], text)
    yield Finding("calls", seen["calls"] == 1, f"The critic ran {seen['calls']} times; once will do.")
    text = "Your function changed a parameter of the critic: its numbers, its .grad or requires_grad."
    yield Finding("untouched", seen["untouched"], text)
    yield untouched(seen)
    yield Finding("changed", not seen["changed"], f"Your function changed the numbers in {listed(seen['changed'])}.")
    touched = sorted({*seen["requiring"], *seen["held"]})
    text = f"Your function changed requires_grad or .grad of {listed(touched)}."
    yield Finding("inputs", not touched, text)


def _same_gradients(received: list[Value], right: list[torch.Tensor]) -> Iterator[Finding]:
    for mine, gradient in zip(received, right, strict=True):
        if mine is None and not bool(gradient.any()):
            continue  # the last bias has no part in the penalty
        shape = tuple(gradient.shape)
        yield right_value(mine, gradient, f"The gradient of the penalty for a parameter of shape {shape}")


def _gave(of: Penalty) -> Callable[[Case, Observation], bool]:
    return lambda case, seen: bool(seen["recorded"]) and close(seen["returned"], _penalty(case, of)[0])


def _pixelwise(gradients: torch.Tensor) -> torch.Tensor:
    result: torch.Tensor = (gradients.norm(dim=1) - 1).square().mean()
    return result


gradient_penalty = Exercise(
    id="gradient_penalty",
    title="The gradient penalty of a critic",
    lesson=LESSON,
    difficulty=4,
    minutes=25,
    points=4,
    call="gradient_penalty(critic, real, fake, mix)",
    cases=_penalty_cases,
    judge=_judge_penalty,
    hints=(
        "The gradient is taken for the points, and then differentiated for the parameters. One pass runs in "
        "your function; the caller runs the other.",
        "Each sample's score depends on that sample alone, so one pass from the sum of the scores gives all the "
        "gradients. The norm of a sample runs over everything but the first dimension.",
        "points = (mix * real + (1 - mix) * fake).detach().requires_grad_(); gradients of critic(points).sum() for "
        "points with create_graph=True; flatten(1), norm over dimension 1, minus 1, squared, mean.",
    ),
    misconceptions=(
        Misconception(
            "not recorded",
            "The number is right, but it has no graph: the pass that made the gradient was not recorded. Added to a "
            "loss, it would change nothing.",
            lambda case, seen: not seen["recorded"] and close(seen["returned"], _penalty(case)[0]),
        ),
        Misconception(
            "one norm for the batch",
            "You took one norm over all samples together. Then one sample's large gradient hides the small ones.",
            _gave(lambda gradients: (gradients.norm() - 1).square()),
        ),
        Misconception(
            "scores averaged",
            "Your gradients are too small by the number of samples: the pass started from the mean of the scores.",
            _gave(lambda gradients: _mean_square(gradients / len(gradients))),
        ),
        Misconception(
            "a norm for each pixel",
            "For images you took the norm over the channels only, so each pixel has one. A sample has one gradient.",
            lambda case, seen: case.given["images"] and _gave(_pixelwise)(case, seen),
        ),
    ),
)


# The gradient through inner steps. What is right is measured, with central differences of ordinary training.


def _meta_cases(seed: int) -> Iterator[Case]:
    trials: dict[str, tuple[int, float, list[str]]] = {
        "one inner step": (1, 0.3, []),
        "three inner steps": (3, 0.2, []),
        "a frozen weight, two inner steps": (2, 0.4, ["first.weight"]),
        "no inner step": (0, 0.3, []),
    }
    for offset, (name, (steps, lr, frozen)) in enumerate(trials.items()):
        given = {"seed": seed + offset, "steps": steps, "lr": lr, "frozen": frozen}
        for part, size in {"support": 5, "query": 4}.items():
            given[f"{part} inputs"] = Array.of(doubles(seed + 10 * size + offset, size, 2))
            given[f"{part} targets"] = Array.of(doubles(seed + 10 * size + offset + 5, size, 1))
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


def _judge_meta(case: Case, seen: Observation) -> Iterator[Finding]:
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
    yield Finding("recorded", not seen["recorded"], "What you returned has a graph. Nobody differentiates it again.")
    text = f"Your function wrote to {listed(seen['moved'])} of the model, or put something else in its place."
    yield Finding("moved", not seen["moved"], text)
    text = f"Your function changed requires_grad of {listed(seen['switched'])}."
    yield Finding("switched", not seen["switched"], text)
    text = f"Your function changed .grad of {listed(seen['graded'])}. Leave it as it was."
    yield Finding("graded", not seen["graded"], text)
    yield untouched(seen)
    runs, most = seen["runs"], 3 * (case.given["steps"] + 1)
    text = f"The model ran {runs} times. For {case.given['steps']} inner steps at most {most} are allowed."
    yield Finding("runs", runs <= most, text)
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


meta_gradient = Exercise(
    id="meta_gradient",
    title="A gradient through inner steps",
    lesson=LESSON,
    difficulty=5,
    minutes=35,
    points=5,
    call="meta_gradient(model, support, query, lr, steps)",
    cases=_meta_cases,
    judge=_judge_meta,
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
            "Your answer treats the inner gradients as constants: it is the ordinary gradient of the query loss at "
            "the adapted parameters. They depend on the initial ones as well.",
            lambda case, seen: not seen["moved"] and _all_close(seen["returned"], _plain_gradient(case, adapted=True)),
        ),
        Misconception(
            "no inner step",
            "Your answer is the gradient of the query loss at the initial parameters. No inner step went into it.",
            lambda case, seen: _all_close(seen["returned"], _plain_gradient(case, adapted=False)),
        ),
        Misconception(
            "the model itself was trained",
            "Your inner steps wrote to the model's own parameters. After that the initial ones, whose gradient was "
            "asked for, are gone.",
            lambda case, seen: bool(seen["moved"]) and case.given["steps"] > 0,
        ),
    ),
)
