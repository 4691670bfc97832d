"""Judging `connected_loss`: repair a loss whose graph is cut."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import torch
from torch import nn

from course_utils.checks.compare import counted, listed, right_value
from course_utils.checks.data import Array, Case, Observation, Value
from course_utils.checks.exercise import Exercise, Finding, Misconception
from course_utils.checks.judges.lesson_01_graph_structure import LESSON
from course_utils.checks.scenes.lesson_01_graph_structure.connected_loss import broken_loss, gated_model, move_on


def _input_overwritten(case: Case, seen: Observation) -> bool:
    return bool(seen["x"] != case.given["x"])


def _loss_cases(seed: int) -> list[Case]:
    generator = torch.Generator().manual_seed(seed)
    sizes = {"stem.weight": (3, 5), "stem.bias": (3,), "gate.weight": (3, 3), "gate.bias": (3,)}
    sizes |= {"head.weight": (2, 3), "head.bias": (2,), "log_scale": ()}

    def numbers(size: tuple[int, ...]) -> torch.Tensor:
        return torch.rand(size, generator=generator, dtype=torch.float64) * 1.4 - 0.5

    cases = []
    # As many samples as numbers in each, and a small scale; a single one, a large scale and a target as far.
    for name, rows, scale, far in (
        *(("five samples of float64", 5, -3, 1.0), ("one sample of float64", 1, 8, 1e3)),
        ("a scale and biases of zero", 3, 0, 0.1),
    ):
        made = {part: numbers(size) for part, size in {**sizes, "x": (rows, 5), "target": (rows, 2)}.items()}
        made["log_scale"] += scale
        for part in ("log_scale", "stem.bias", "gate.bias", "head.bias"):
            made[part] *= scale != 0
        made["target"] *= far
        made["x"][:, :2] *= 1e-6  # beside the others so small that x, when moved and moved back, is another
        cases.append(Case(name, {part: Array.of(value) for part, value in made.items()}))
    return cases


def _one_path_cut(case: Case, seen: Observation) -> bool:
    """Tell whether everything is reached, and each wrong gradient is one that comes to it where some path is cut."""
    failed = {finding.prop for finding in _judge_loss(case, seen) if not finding.ok}
    grads = {name: seen["grads"].get(name) for name in _parameters(case)}
    right = {name for name, grad in grads.items() if _right_slope(case, name, grad)}
    fewer = all(name in right or _slope_on_fewer_paths(case, name, grad) for name, grad in grads.items())
    return failed == {"gradient"} and bool(right) and fewer


def _made_leaves(seen: Observation) -> bool:
    """Tell whether the graph ends in leaves that the function made."""
    strangers = seen.get("strangers", [])
    return bool(strangers) and all(isinstance(leaf, list) for leaf in strangers) and seen["recorded"]


def _wrapped_again(case: Case, seen: Observation) -> bool:
    failed = {finding.prop for finding in _judge_loss(case, seen) if not finding.ok}
    return _made_leaves(seen) and bool(failed & {"reached", "gradient"})


def _one_leaf_more(case: Case, seen: Observation) -> bool:
    failed = {finding.prop for finding in _judge_loss(case, seen) if not finding.ok}
    return _made_leaves(seen) and failed == {"own leaves"}


def _flag_on_a_copy(case: Case, seen: Observation) -> bool:
    return isinstance(seen["returned"], Array) and seen["flagged"] and not seen["recorded"]


def _judge_loss(case: Case, seen: Observation) -> Iterator[Finding]:
    value = right_value(seen["returned"], _cut_loss(gated_model(case), case), "Your loss")
    yield value
    given = [name for name in ("x", "target") if seen[name] != case.given[name]]
    yield Finding("inputs", not given, f"Your function changed the numbers or the shape of {listed(given)}.")
    back = [name for name in ("x", "target") if name in seen["written"] and name not in given]
    yield Finding("inputs", not back, f"Your function wrote into {listed(back)}, though the numbers are as before.")
    changed = seen["changed"]
    yield Finding("parameters", not changed, f"Your function changed the numbers in {listed(changed)}.")
    frozen = seen["frozen"]
    yield Finding("parameters", not frozen, f"Your function left {listed(frozen)} without requires_grad.")
    if value.ok and not given and not changed:
        what = "Called again after the parameters and x had got other numbers, your loss"
        yield replace(right_value(seen["again"], _next_loss(case), what), prop="again")
    graded = seen["graded"]
    yield Finding("grad", not graded, f"Your function changed .grad of {listed(graded)}.")
    count = seen["passes"]
    ran = counted(count)
    yield Finding("passes", not count, f"Your function ran {ran}. It builds the loss, and the caller runs backward.")
    if not seen["recorded"]:
        yield Finding("graph", False, "The loss that you returned was not made by a recorded operation.")
        return
    if "reached" not in seen:  # not one number: that is said already
        return
    names = _parameters(case)
    missing = [name for name in names if name not in seen["reached"]]
    yield Finding("reached", not missing, f"The graph of your loss does not reach {listed(missing)}.")
    strangers = seen["strangers"]
    yield Finding("own leaves", not strangers, _ends_in(strangers))
    refused = seen["refused"]
    yield Finding("backward", not refused, f"A backward pass from your loss raises: {refused}")
    if not value.ok:
        return
    compared = [name for name in names if name not in (*missing, *frozen) and not refused]
    wrong = [name for name in compared if not _right_slope(case, name, seen["grads"].get(name))]
    yield Finding("gradient", not wrong, f"The gradient of {listed(wrong)} is not the slope of the loss.")


def _debrief(seen: Sequence[tuple[Case, Observation]]) -> Iterator[str]:
    found = seen[0][1]
    count = sum(grad.tensor().numel() for grad in found["grads"].values())
    yield (
        f"Your graph reaches {len(found['reached'])} parameters, and one backward pass gave all {count} slopes. Each "
        f"slope by itself, measured by two runs of the loss, would have taken {2 * count} runs."
    )


EXERCISE = Exercise(
    id="connected_loss",
    title="Repair a loss whose graph is cut",
    lesson=LESSON,
    difficulty=4,
    minutes=15,
    points=4,
    call="connected_loss(model, x, target)",
    cases=_loss_cases,
    judge=_judge_loss,
    hints=(
        "Trace what broken_loss returns. Then go up through its lines and trace every intermediate result.",
        "A result stays in the graph only if it comes from recorded operations. item(), numpy(), detach(), "
        "torch.tensor(...) and nn.Parameter(...) each give a tensor or number without history. "
        "x -= ... writes into the caller's tensor.",
        "Keep the formula. Make a new tensor in place of writing to x, multiply by the gate itself, use the product "
        "without wrapping it, multiply by exp() of the scale as a tensor, and return the mean itself.",
    ),
    misconceptions=(
        Misconception(
            "a flag on a copy",
            "Your loss is a new leaf with requires_grad=True. The flag lets backward() start without an error, "
            "but nothing behind the loss is recorded, so no parameter gets a gradient.",
            _flag_on_a_copy,
        ),
        Misconception(
            "a leaf made on the way",
            "The graph of your loss ends in a leaf that your function made: by nn.Parameter, by requires_grad_(), or "
            "by copying the model. Gradients stop there and do not reach what it was made from.",
            _wrapped_again,
        ),
        Misconception(
            "a leaf too many",
            "Every parameter gets its gradient. But your function also puts a leaf of its own into the graph, made "
            "with requires_grad=True: nobody needs its gradient. Make it without.",
            _one_leaf_more,
        ),
        Misconception(
            "one path still cut",
            "Every parameter is reached, and yet some gradients are wrong. A parameter can be reached on one path "
            "while another path to it is still cut.",
            _one_path_cut,
        ),
        Misconception(
            "input overwritten",
            "Your function writes into the caller's x. The second epoch would start from other data than the first.",
            _input_overwritten,
        ),
    ),
    debrief=_debrief,
)


def _ends_in(strangers: list[str | list[int]]) -> str:
    given = [leaf for leaf in strangers if isinstance(leaf, str)]
    shapes = [str(tuple(leaf)) for leaf in strangers if not isinstance(leaf, str)]
    made = (
        f"{len(shapes)} leaves of the shapes {listed(shapes)}"
        if len(shapes) > 1
        else f"a leaf of shape {''.join(shapes)}"
    )
    are = "is no parameter" if len(strangers) == 1 else "are no parameters"
    return f"The graph of your loss ends in {listed([*given, *([made] if shapes else [])])}, which {are} of the model."


def _cut_loss(model: nn.Module, case: Case) -> torch.Tensor:
    return broken_loss(model, case.given["x"].tensor(), case.given["target"].tensor()).detach()


def _next_loss(case: Case) -> torch.Tensor:
    model, x = gated_model(case), case.given["x"].tensor()
    move_on(model, x)
    return broken_loss(model, x, case.given["target"].tensor()).detach()


def _parameters(case: Case) -> list[str]:
    return [name for name in case.given if name not in ("x", "target")]


def _right_slope(case: Case, name: str, received: Value) -> bool:
    """Compare a gradient with a finite difference along a random direction."""
    return _along(case, name, received, _slope(case, name))


def _slope_on_fewer_paths(case: Case, name: str, received: Value) -> bool:
    """Tell whether a gradient is what comes by the gate alone, past the gate alone, or nothing."""
    past = _slope(case, name, gate_held=True)
    return any(_along(case, name, received, it) for it in (past, _slope(case, name) - past, torch.zeros_like(past)))


def _along(case: Case, name: str, received: Value, slope: torch.Tensor) -> bool:
    if not isinstance(received, Array) or received.shape != case.given[name].shape:
        return False
    mine = (received.tensor() * _direction(received.shape)).sum().double()
    return bool(torch.isclose(mine, slope, rtol=1e-5, atol=1e-8))


def _direction(shape: tuple[int, ...]) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(5), dtype=torch.float64)


def _slope(case: Case, name: str, gate_held: bool = False) -> torch.Tensor:
    """Return a finite difference along a random direction. The cut loss has the right numbers.

    Where the gate is held, it goes on giving what it gave before the step.
    """
    model = gated_model(case)
    parameter = model.get_parameter(name).data
    given: list[torch.Tensor] = []

    def hold(module: nn.Module, inputs: object, output: torch.Tensor) -> torch.Tensor:
        given.append(output)
        return given[0]

    if gate_held:
        model.get_submodule("gate").register_forward_hook(hold)
        _cut_loss(model, case)
    step, direction = 1e-5, _direction(tuple(parameter.shape))
    parameter += step * direction
    above = _cut_loss(model, case)
    parameter -= 2 * step * direction
    return (above - _cut_loss(model, case)) / (2 * step)
