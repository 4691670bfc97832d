"""Judging `connected_loss`: repair a loss whose graph is cut."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import torch
from torch import nn

from course_utils.checks.compare import listed, right_value
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
    for name, rows, scale, far in (("five samples of float64", 5, -3, 1.0), ("one sample of float64", 1, 8, 1e3)):
        made = {part: numbers(size) for part, size in {**sizes, "x": (rows, 5), "target": (rows, 2)}.items()}
        made["log_scale"] += scale
        made["target"] *= far
        made["x"][:, :2] *= 1e-6  # beside the others so small that x, when moved and moved back, is another
        cases.append(Case(name, {part: Array.of(value) for part, value in made.items()}))
    return cases


def _one_path_cut(case: Case, seen: Observation) -> bool:
    """Tell whether everything is reached and still a gradient is wrong."""
    failed = {finding.prop for finding in _judge_loss(case, seen) if not finding.ok}
    return failed == {"gradient"}


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
    yield Finding("inputs", not given, f"Your function changed the numbers in {listed(given)}.")
    back = [name for name in ("x", "target") if name in seen["written"] and name not in given]
    yield Finding("inputs", not back, f"Your function wrote into {listed(back)}, and put the numbers back.")
    changed = seen["changed"]
    yield Finding("parameters", not changed, f"Your function changed the numbers in {listed(changed)}.")
    if value.ok and not given and not changed:
        what = "Called again after the parameters and x had got other numbers, your loss"
        yield replace(right_value(seen["again"], _next_loss(case), what), prop="again")
    graded = seen["graded"]
    yield Finding("grad", not graded, f"Your function changed .grad of {listed(graded)}.")
    count = seen["passes"]
    ran = f"{count} backward pass{'es' if count != 1 else ''}"
    yield Finding("passes", not count, f"Your function ran {ran}. It builds the loss, and the caller runs backward.")
    if not seen["recorded"]:
        yield Finding("graph", False, "The loss that you returned was not made by a recorded operation.")
        return
    if "reached" not in seen:  # not one number: that is said already
        return
    names = [name for name in case.given if name not in ("x", "target")]
    missing = [name for name in names if name not in seen["reached"]]
    yield Finding("reached", not missing, f"The graph of your loss does not reach {listed(missing)}.")
    strangers = seen["strangers"]
    yield Finding("own leaves", not strangers, _ends_in(strangers))
    refused = seen["refused"]
    yield Finding("backward", not refused, f"A backward pass from your loss raises: {refused}")
    if not value.ok:
        return
    compared = [name for name in names if name not in missing and not refused]
    wrong = [name for name in compared if not _right_slope(case, name, seen["grads"].get(name))]
    message = f"The gradient of {listed(wrong)} is not the slope of the loss: a path to it is missing, or one too many."
    yield Finding("gradient", not wrong, message)


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


def _right_slope(case: Case, name: str, received: Value) -> bool:
    """Compare a gradient with a finite difference along a random direction. The cut loss has the right numbers."""
    model = gated_model(case)
    parameter = model.get_parameter(name).data
    if not isinstance(received, Array) or received.shape != tuple(parameter.shape):
        return False
    step, generator = 1e-5, torch.Generator().manual_seed(5)
    direction = torch.randn(parameter.shape, generator=generator, dtype=torch.float64)
    parameter += step * direction
    above = _cut_loss(model, case)
    parameter -= 2 * step * direction
    slope = (above - _cut_loss(model, case)) / (2 * step)
    return bool(torch.isclose((received.tensor() * direction).sum().double(), slope, rtol=1e-5, atol=1e-8))
